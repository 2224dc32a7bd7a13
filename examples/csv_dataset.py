"""From two CSV files to an attack: read them, look at what is wrong with them, choose, train, attack."""

import tempfile
from pathlib import Path

import numpy as np

import grb
from grb.dataset import Choices, own
from grb.dataset.choices import prepare
from grb.dataset.report import report


def write_files(folder: Path) -> None:
    """A made-up friendship graph: names, two classes, directed links, one link twice, somebody without friends."""
    rng = np.random.default_rng(0)
    names = [f"user{number}" for number in range(200)]
    club = rng.integers(0, 2, 200)
    links = [(u, v) for u, v in rng.integers(0, 199, (700, 2)) if u != v and (club[u] == club[v] or rng.random() < 0.3)]
    lines = [f"{names[u]},{names[v]}" for u, v in [*links, links[0]]]
    (folder / "edges.csv").write_text("\n".join(["source,target", *lines]))
    rows = [
        f"{names[i]},{club[i] + rng.normal():.3f},{rng.random():.3f},{['red', 'blue'][club[i]]}" for i in range(200)
    ]
    (folder / "nodes.csv").write_text("\n".join(["id,height,age,label", *rows]))


with tempfile.TemporaryDirectory() as place:
    write_files(Path(place))
    found = prepare(own.given(place), Choices(components="largest", feat_norm="arctan"))
for problem in report(found).problems:
    print(f"{problem.what}: {problem.option}={problem.choice} (or {', '.join(problem.others)})")
dataset = found.dataset  # grb.load_dataset(place) makes the same with the default choices
model = grb.train("gcn", dataset, epochs=60, hidden_features=[16])
result = grb.run_attack(
    "pgd", model, dataset, iterations=50
)  # limits as on grb-cora, features in the range of the data
print("clean   ", grb.evaluate(model, dataset))
print("attacked", grb.evaluate(model, dataset, result), result.budget)
