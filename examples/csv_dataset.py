"""From two CSV files to an attack: read them, report what is wrong with them, clean, train, attack."""

import tempfile
from pathlib import Path

import numpy as np

import grb
from grb.dataset import CleaningOptions, Dataset
from grb.dataset.cleaning import clean
from grb.dataset.load import read_raw
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


with tempfile.TemporaryDirectory() as folder:
    write_files(Path(folder))
    cleaned = clean(read_raw(folder), CleaningOptions(components="largest", feat_norm="arctan"))
for problem in report(cleaned).problems:
    print(f"{problem.what}: {problem.option}={problem.choice} (or {', '.join(problem.others)})")
dataset = Dataset.from_raw(cleaned.arrays)  # grb.load_dataset(folder) makes the same with the default options
model = grb.train("gcn", dataset, epochs=60, hidden_features=[16])
result = grb.run_attack(
    "pgd", model, dataset, iterations=50
)  # limits as on grb-cora, features in the range of the data
print("clean   ", grb.evaluate(model, dataset))
print("attacked", grb.evaluate(model, dataset, result), result.budget)
