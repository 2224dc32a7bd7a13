"""What clean accuracy do the models reach on a dataset with the papers' settings?

    python benchmarks/accuracy.py [--dataset grb-cora] [--seeds 10] [--models gcn,gat+ln] [--table]

Adds one line per model and seed to docs/results/clean-<dataset>.jsonl; running again goes on where it stopped.
``--table`` prints the Markdown table of what is there instead.
"""

from __future__ import annotations

from pathlib import Path

from common import options, started
from results import Results

import grb
from grb.dataset import DIFFICULTIES
from grb.metric import mean_std

NAMES = ("gcn", "gat", "gin", "appnp", "tagcn", "graphsage", "sgcn", "mlp")
ALL = [*NAMES, *(f"{name}+ln" for name in NAMES)]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--dataset", default="grb-cora")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--models", default=",".join(ALL))
    parser.add_argument("--table", action="store_true")
    arguments = started(parser)
    path = Path(__file__).parent.parent / "docs" / "results" / f"clean-{arguments.dataset}.jsonl"
    results = Results(path, ("model", "seed"))
    if arguments.table:
        print(table(results))
        return
    dataset = grb.load_dataset(arguments.dataset)
    for seed in range(arguments.seeds):
        for name in arguments.models.split(","):
            if results.has(model=name, seed=seed):
                continue
            model, fit = grb.train_with_history(name, dataset, seed=seed)
            scores = {mode: round(100 * value, 4) for mode, value in grb.evaluate(model, dataset).items()}
            cost = {"epochs": fit.epochs, "seconds": round(fit.seconds, 2), "threads": arguments.threads}
            results.add(model=name, seed=seed, **cost, **scores)


def table(results: Results) -> str:
    lines = ["| model | seeds | easy | medium | hard | full | epochs |", "|---|---|---|---|---|---|---|"]
    for name in dict.fromkeys(row["model"] for row in results.rows):
        rows = list(results.select(model=name))
        cells = []
        for mode in DIFFICULTIES:
            mean, std = mean_std([row[mode] for row in rows])
            cells.append(f"{mean:.2f} ± {std:.2f}")
        epochs = sum(row["epochs"] for row in rows) / len(rows)
        lines.append(f"| {name} | {len(rows)} | {' | '.join(cells)} | {epochs:.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
