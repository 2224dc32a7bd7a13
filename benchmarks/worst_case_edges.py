"""What does the standard ensemble leave of a GCN and of six defenses, beside the published envelope of adaptive attacks?

    GRB_DATA=... python benchmarks/worst_case_edges.py [cora citeseer] [--splits 1] [--quick] [--victims gcn ...] [--table]

Protocol of Mujkanovic et al. (NeurIPS 2022): largest components, five splits of 10/10/80 per cent, victims with their tuned
settings, all test nodes as targets, 2, 5 and 10 % of the edges, evasion. Aimed at are true labels and predicted ones; the
worst case is the lower of both. ``--quick`` stops the race after its first round. Adds one line per cell to
docs/results/worst-case-edges.jsonl; running again goes on where it stopped. ``--table`` prints accuracies beside the
published mean and standard deviation over splits: at most their sum is wanted.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from citation import SPLITS, accuracy, data_file, largest_component, trained, victims
from common import options, started
from results import Results

import grb
from grb.attack.auto import ensemble
from grb.metric import mean_std
from grb.threat import Modification

BUDGETS = (0.05, 0.02, 0.1)
FILE = Path(__file__).parent.parent / "docs" / "results" / "worst-case-edges.jsonl"
DATASETS = ("cora", "citeseer")


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("datasets", nargs="*", default=list(DATASETS))
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--victims", nargs="*")
    parser.add_argument("--labels", nargs="*", default=["true", "predicted"])
    parser.add_argument("--budgets", type=float, nargs="*", default=list(BUDGETS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--table", action="store_true")
    arguments = started(parser)
    results = Results(FILE, ("dataset", "split", "victim", "budget", "labels", "rounds"))
    if arguments.table:
        print(table(results))
        return
    if arguments.quick:
        ensemble.LEVELS = 1
    for split in range(arguments.splits):
        for labels in arguments.labels:
            for name in arguments.datasets:
                for victim in arguments.victims or victims(name):
                    run(results, name, split, victim, labels, arguments)


def run(results: Results, name: str, split: int, victim: str, labels: str, arguments: argparse.Namespace) -> None:
    rounds = ensemble.LEVELS
    common = {"dataset": name, "split": split, "victim": victim, "labels": labels, "rounds": rounds}
    missing = [budget for budget in arguments.budgets if not results.has(**common, budget=budget)]
    if not missing:
        return
    dataset = largest_component(name, SPLITS[split])
    model = trained(victims(name)[victim], dataset, split)
    clean = accuracy(model, dataset)
    for budget in missing:
        result = grb.run_attack(
            "auto-edges", model, dataset, threat=Modification(edge_ratio=budget), labels=labels, seed=0
        )
        tried = [trial for trial in result.trials if trial.accuracy is not None]
        winner = min(tried, key=lambda trial: trial.accuracy)  # type: ignore[arg-type, return-value]
        results.add(
            **common,
            budget=budget,
            clean=round(clean, 3),
            left=round(accuracy(model, dataset, result), 3),
            edges=result.budget["edges"],
            winner=f"{winner.name}, round {winner.level + 1}",
            cpu_seconds=round(result.cpu_seconds, 1),
            forward=result.passes.forward,
            backward=result.passes.backward,
            kept={f"{trial.name}, round {trial.level + 1}": round(100 * trial.accuracy, 2) for trial in tried},  # type: ignore[operator]
            spent={f"{trial.name}, round {trial.level + 1}": round(trial.cpu_seconds, 1) for trial in tried},
        )


def published() -> dict[tuple[str, str, float], tuple[float, float]]:
    """Accuracy under the envelope of attacks by dataset, victim and budget: mean and standard deviation, per cent."""
    with data_file("published", "mujkanovic2022", "global_envelope.csv").open() as stream:
        return {
            (row["dataset"], row["model"], float(row["budget"])): (
                100 - 100 * float(row["mis_mean"]),
                100 * float(row["mis_std"]),
            )
            for row in csv.DictReader(stream)
            if row["scenario"] == "evasion"
        }


def table(results: Results) -> str:
    theirs = published()
    lines = [
        "| dataset | victim | budget | splits | clean, theirs | clean, ours | theirs, mean ± std | ours, worst case | ours, "
        "predicted labels | allowed | rounds | CPU s | strongest |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in DATASETS:
        for victim, recipe in victims(name).items():
            for budget in sorted(BUDGETS):
                rows = list(results.select(dataset=name, victim=victim, budget=budget))
                if not rows:
                    continue
                splits = sorted({row["split"] for row in rows})
                worst = [
                    min((row for row in rows if row["split"] == split), key=lambda row: row["left"]) for split in splits
                ]
                own = [row["left"] for row in rows if row["labels"] == "predicted"]
                mean, std = theirs[name, recipe.published, budget]
                left = mean_std([row["left"] for row in worst])
                spread = f" ± {left.std:.1f}" if len(splits) > 1 else ""
                predicted = f"{mean_std(own).mean:.1f}" if own else ""
                within = "yes" if left.mean <= mean + std else "NO"
                lines.append(
                    f"| {name} | {victim} | {100 * budget:.0f} % | {len(splits)} | "
                    f"{theirs[name, recipe.published, 0.0][0]:.1f} | {mean_std([row['clean'] for row in worst]).mean:.1f} | "
                    f"{mean:.1f} ± {std:.1f} | {left.mean:.1f}{spread} | {predicted} | {within} | "
                    f"{max(row['rounds'] for row in worst)} | {mean_std([row['cpu_seconds'] for row in worst]).mean:.0f} | "
                    f"{worst[0]['winner']} |"
                )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
