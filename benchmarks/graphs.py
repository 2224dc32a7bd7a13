"""How much accuracy do GIN, GCN and a bag of nodes lose on MUTAG and PROTEINS when every test graph is attacked?

    grb run mutag-modification --store STORE        # and mutag-injection, proteins-modification, proteins-injection
    grb store copy STORE docs/results/graphs-mutag.csv --recipe mutag-modification
    grb store copy STORE docs/results/graphs-mutag-injection.csv --recipe mutag-injection
    python benchmarks/graphs.py

The first make the records (ten folds, one training of every model on each, limits per graph); the last prints the tables of
docs/results from them: mean accuracy in per cent and Student's 95 % interval over the folds.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

from grb.metric import confidence_interval

RESULTS = Path(__file__).parent.parent / "docs" / "results"
FILES = ("graphs-mutag", "graphs-mutag-injection", "graphs-proteins", "graphs-proteins-injection")
MODELS = ("gin-pool", "gcn-pool", "mlp-pool")
KNOWLEDGE = {"none": 0, "transfer": 1, "white-box": 2}


def read(path: Path) -> dict[tuple[str, str], dict[str, list[float]]]:
    """Accuracy in per cent by attack and knowledge, then by model: one value for every fold."""
    values: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with path.open() as stream:
        for row in csv.DictReader(stream):
            values[row["knowledge"], row["attack"]][row["defense"]].append(100 * float(row["accuracy"]))
    return values


def cell(folds: list[float]) -> str:
    found = confidence_interval(folds)
    return f"{sum(folds) / len(folds):.1f} ({found.low:.1f} to {found.high:.1f})"


def table(path: Path) -> str:
    scores = read(path)
    lines = [f"| attack | {' | '.join(MODELS)} | folds |", "|---|" + "---|" * (len(MODELS) + 1)]
    for knowledge, attack in sorted(scores, key=lambda key: (KNOWLEDGE[key[0]], sum(scores[key][MODELS[0]]))):
        own = scores[knowledge, attack]
        title = "clean" if attack == "none" else f"{attack}, {knowledge}"
        lines.append(f"| {title} | {' | '.join(cell(own[model]) for model in MODELS)} | {len(own[MODELS[0]])} |")
    return "\n".join(lines)


if __name__ == "__main__":
    for name in FILES:
        path = RESULTS / f"{name}.csv"
        if path.is_file():
            print(f"{name}\n\n{table(path)}\n")
