"""What do layer norm, adversarial training and the other defenses gain on grb-cora under transferred injection attacks?

    python benchmarks/defended.py [--seeds 0-9] [--models gcn,gcn+ln,gcn+at,...] [--table]

For each seed a GCN surrogate is trained and attacked by FGSM, PGD and TDGIA (full test set, limits and iterations of Table
12); every defense of that seed is trained with the settings of Tables 5 and 6, never seen by the attack, and scored on the
same three edits. Adds one line per model and seed to docs/results/defense-grb-cora.jsonl; running again goes on.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import torch
from results import Results
from scipy import stats

import grb
from grb.dataset.registry import home
from grb.graph.memory import keep_memory
from grb.metric import mean_std

ATTACKS = ("fgsm", "pgd", "tdgia")
VANILLA = ("gcn", "graphsage", "sgcn", "tagcn", "gat", "appnp", "gin")
OTHERS = ("r-gcn", "r-gcn+at", "gatguard", "gcnguard", "gcn-svd", "mlp")
MODELS = (*(base + suffix for base in VANILLA for suffix in ("", "+ln", "+at")), *OTHERS)
TABLE_13 = (
    *("r-gcn+at", "gat+at", "sgcn+ln", "r-gcn", "tagcn+ln", "gin+ln", "appnp+ln", "gin+at", "gatguard", "gcn+ln"),
)
ROOT = Path(__file__).parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0-9", help="first-last")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--results", type=Path, default=ROOT / "docs" / "results" / "defense-grb-cora.jsonl")
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    results = Results(arguments.results, ("model", "seed"))
    if arguments.table:
        print("\n\n".join([gains(results), clean(results)]))
        return
    torch.set_num_threads(1)
    keep_memory()
    dataset = grb.load_dataset("grb-cora")
    first, last = map(int, arguments.seeds.split("-"))
    for seed in range(first, last + 1):
        edits: dict[str, grb.GraphEdit] = {}
        for model in arguments.models.split(","):
            if not results.has(model=model, seed=seed):
                edits = edits or attacked(dataset, seed)
                run(results, dataset, edits, model, seed)


def attacked(dataset: grb.Dataset, seed: int) -> dict[str, grb.GraphEdit]:
    """The three edits of a seed, made once."""
    folder = home() / "benchmarks" / "defended"
    folder.mkdir(parents=True, exist_ok=True)
    paths = {attack: folder / f"{attack}-{seed}.npz" for attack in ATTACKS}
    if not all(path.exists() for path in paths.values()):
        surrogate = grb.train("gcn", dataset, seed=1000 + seed)
        for attack, path in paths.items():
            grb.run_attack(attack, surrogate, dataset, mode="full", knowledge="transfer", seed=seed).edit.save(path)
    return {attack: grb.GraphEdit.load(path) for attack, path in paths.items()}


def run(results: Results, dataset: grb.Dataset, edits: dict[str, grb.GraphEdit], name: str, seed: int) -> None:
    start, epochs = time.process_time(), []
    model = grb.train(name, dataset, seed=seed, on_epoch=lambda epoch: epochs.append(epoch))
    results.add(
        model=name,
        seed=seed,
        epochs=len(epochs),
        cpu_seconds=round(time.process_time() - start, 1),
        threads=1,
        clean=accuracy(model, dataset),
        **{attack: accuracy(model, dataset, edit) for attack, edit in edits.items()},
    )


def accuracy(model: torch.nn.Module, dataset: grb.Dataset, edit: grb.GraphEdit | None = None) -> float:
    return round(100 * grb.evaluate(model, dataset, edit)["full"], 4)


def gains(results: Results) -> str:
    """Paired over seeds: mean accuracy over the three attacks with a defense minus without it."""
    lines = [
        "| model | clean | FGSM | PGD | TDGIA | mean under attack | gain over the plain model | 95 % interval | seeds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys([*MODELS, *(row["model"] for row in results.rows)]):
        rows = {row["seed"]: row for row in results.select(model=name)}
        if not rows:
            continue
        means = [mean_std([row[column] for row in rows.values()]) for column in ("clean", *ATTACKS)]
        under = mean_std([under_attack(row) for row in rows.values()])
        plain = {row["seed"]: row for row in results.select(model=name.partition("+")[0])}
        both = sorted(rows.keys() & plain.keys()) if "+" in name else []
        gain = [under_attack(rows[seed]) - under_attack(plain[seed]) for seed in both]
        cells = [f"{value.mean:.1f} ± {value.std:.1f}" for value in (*means, under)]
        lines.append(f"| {name} | {' | '.join(cells)} | {interval(gain)} | {len(rows)} |")
    return "\n".join(lines)


def under_attack(row: dict[str, float]) -> float:
    return sum(row[attack] for attack in ATTACKS) / len(ATTACKS)


def interval(gain: list[float]) -> str:
    if len(gain) < 2:
        return "- | -"
    value = mean_std(gain)
    half = stats.t.ppf(0.975, len(gain) - 1) * stats.sem(gain)
    return f"{value.mean:+.1f} | {value.mean - half:+.1f} to {value.mean + half:+.1f}"


def clean(results: Results) -> str:
    """Clean accuracy of Table 13's defenses beside the paper's, if its table is at hand."""
    path = ROOT.parent / "shared" / "reference" / "grb_leaderboards.csv"
    paper: dict[str, float] = {}
    if path.exists():
        with path.open() as stream:
            paper = {
                row["defense"].lower(): float(row["accuracy"])
                for row in csv.DictReader(stream)
                if row["dataset"] == "grb-cora" and row["difficulty"] == "F" and row["attack"] == "none"
            }
    lines = ["| defense | clean, full | paper | difference |", "|---|---|---|---|"]
    for name in TABLE_13:
        rows = list(results.select(model=name))
        if rows:
            ours = mean_std([row["clean"] for row in rows])
            difference = f"{ours.mean - paper[name]:+.1f}" if name in paper else "-"
            lines.append(f"| {name} | {ours.mean:.1f} ± {ours.std:.1f} | {paper.get(name, '-')} | {difference} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
