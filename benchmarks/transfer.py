"""How strong are the injection attacks on grb-cora, white-box on GCN and by transfer on GCN+LN, beside the paper?

    python benchmarks/transfer.py [--repeats 10] [--iterations 10,100,1000] [--modes full,easy,medium,hard] [--table]

Each repeat trains a new GCN as surrogate and a new GCN+LN as victim, which the attack never sees, and draws new edges.
The same edit is scored on the surrogate itself (white-box) and on the victim (transfer). Limits are Table 12's. Adds
one line per cell to docs/results/injection-grb-cora.jsonl; running again goes on where it stopped.
"""

from __future__ import annotations

import csv
from pathlib import Path

import torch
from common import options, started
from results import Results

import grb
from grb.dataset import DIFFICULTIES
from grb.metric import mean_std

ATTACKS = ("rnd", "fgsm", "pgd", "speit", "tdgia")
ROOT = Path(__file__).parent.parent


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--iterations", default="100,10,1000")
    parser.add_argument("--modes", default="full,easy,medium,hard")
    parser.add_argument("--table", action="store_true")
    arguments = started(parser)
    results = Results(
        ROOT / "docs" / "results" / "injection-grb-cora.jsonl", ("attack", "mode", "iterations", "repeat")
    )
    if arguments.table:
        print(table(results))
        return
    dataset = grb.load_dataset("grb-cora")
    for repeat in range(arguments.repeats):
        models: dict[str, torch.nn.Module] = {}
        for steps in map(int, arguments.iterations.split(",")):
            for mode in arguments.modes.split(","):
                for attack in ATTACKS:
                    run(results, dataset, models, attack, mode, 0 if attack == "rnd" else steps, repeat)


def run(results: Results, dataset: grb.Dataset, models: dict, attack: str, mode: str, steps: int, repeat: int) -> None:
    if results.has(attack=attack, mode=mode, iterations=steps, repeat=repeat):
        return
    if not models:
        models["surrogate"] = grb.train("gcn", dataset, seed=1000 + repeat)
        models["victim"] = grb.train("gcn+ln", dataset, seed=repeat)
    params = {} if attack == "rnd" else {"iterations": steps}
    result = grb.run_attack(
        attack, models["surrogate"], dataset, mode=mode, knowledge="transfer", seed=repeat, **params
    )
    results.add(
        attack=attack,
        mode=mode,
        iterations=steps,
        repeat=repeat,
        **{f"{name}_clean": score(model, dataset, mode) for name, model in models.items()},
        **{f"{name}_attacked": score(model, dataset, mode, result) for name, model in models.items()},
        cpu_seconds=round(result.cpu_seconds, 3),
        threads=1,
        **result.budget,
    )


def score(model: torch.nn.Module, dataset: grb.Dataset, mode: str, result: object = None) -> float:
    return round(100 * grb.evaluate(model, dataset, result)[mode], 4)


def table(results: Results) -> str:
    paper = paper_values()
    head = "| attack | iterations | mode | repeats | GCN+LN clean | attacked | drop | paper's drop | GCN clean | white-box |"
    lines = [head, "|---|---|---|---|---|---|---|---|---|---|"]
    for attack in ATTACKS:
        for steps in sorted({row["iterations"] for row in results.select(attack=attack)}):
            for mode in DIFFICULTIES:
                rows = list(results.select(attack=attack, iterations=steps, mode=mode))
                if not rows:
                    continue
                columns = ("victim_clean", "victim_attacked", "surrogate_clean", "surrogate_attacked")
                mean = {name: mean_std([row[name] for row in rows]) for name in columns}
                drop = mean_std([row["victim_clean"] - row["victim_attacked"] for row in rows])
                attacked, white_box = mean["victim_attacked"], mean["surrogate_attacked"]
                cells = [
                    attack,
                    steps or "-",
                    mode,
                    len(rows),
                    f"{mean['victim_clean'].mean:.1f}",
                    f"{attacked.mean:.1f} ± {attacked.std:.1f}",
                    f"{drop.mean:.1f} ± {drop.std:.1f}",
                    paper.get((attack, mode), "-"),
                    f"{mean['surrogate_clean'].mean:.1f}",
                    f"{white_box.mean:.1f} ± {white_box.std:.1f}",
                ]
                lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def paper_values() -> dict[tuple[str, str], str]:
    """Clean minus attacked accuracy of GCN+LN in Table 13, if the table is at hand."""
    path = ROOT.parent / "shared" / "reference" / "grb_leaderboards.csv"
    if not path.exists():
        return {}
    with path.open() as stream:
        cells = {
            (row["attack"].lower(), row["difficulty"]): float(row["accuracy"])
            for row in csv.DictReader(stream)
            if row["dataset"] == "grb-cora" and row["defense"] == "GCN+LN"
        }
    letters = dict(zip("EMHF", DIFFICULTIES, strict=True))
    clean = next(name for name, _ in cells if name in ("none", "w/o attack", "clean", "no attack"))
    return {
        (attack, letters[letter]): f"{cells[clean, letter] - value:.1f}"
        for (attack, letter), value in cells.items()
        if letter in letters and attack != clean
    }


if __name__ == "__main__":
    main()
