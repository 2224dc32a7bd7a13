"""What do layer norm, adversarial training and the other defenses gain on grb-cora under transferred injection attacks?

    grb run defenses-grb-cora --store STORE
    grb store copy STORE docs/results/defenses-grb-cora.csv --recipe defenses-grb-cora
    python benchmarks/defended.py

The first two make the records (ten trainings of every defense, ten surrogates, FGSM, PGD and TDGIA on the full test set with
the limits and iterations of Table 12); the third prints the tables of docs/results from them. Differences are paired: the
same seed with and without a defense, each under the same edits.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path

from grb.metric import confidence_interval, mean_std
from grb.pipeline.results import paper_table

ATTACKS = ("fgsm", "pgd", "tdgia")
TABLE_13 = (
    *("r-gcn+at", "gat+at", "sgcn+ln", "r-gcn", "tagcn+ln", "gin+ln", "appnp+ln", "gin+at", "gatguard", "gcn+ln"),
)
RECORDS = Path(__file__).parent.parent / "docs" / "results" / "defenses-grb-cora.csv"
Scores = dict[str, dict[int, dict[str, float]]]


def read(path: Path = RECORDS) -> Scores:
    """Mean accuracy in per cent by defense, training and attack, over the repeats."""
    values: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    with path.open() as stream:
        for row in csv.DictReader(stream):
            values[row["defense"], int(row["victim"]), row["attack"]].append(100 * float(row["accuracy"]))
    scores: Scores = defaultdict(dict)
    for (defense, victim, attack), found in values.items():
        scores[defense].setdefault(victim, {})[attack] = sum(found) / len(found)
    return scores


def under_attack(scores: dict[str, float]) -> float:
    return sum(scores[attack] for attack in ATTACKS) / len(ATTACKS)


def gain(scores: Scores, defense: str, plain: str) -> list[float]:
    """Mean accuracy under the three attacks with a defense minus without, for every seed that has both."""
    both = sorted(scores[defense].keys() & scores[plain].keys())
    return [under_attack(scores[defense][seed]) - under_attack(scores[plain][seed]) for seed in both]


def gains_table(scores: Scores) -> str:
    lines = [
        "| defense | clean | FGSM | PGD | TDGIA | mean under attack | gain over the plain model | 95 % interval | trainings |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in sorted(scores):
        own = scores[name]
        columns = [mean_std([row[attack] for row in own.values()]) for attack in ("none", *ATTACKS)]
        columns.append(mean_std([under_attack(row) for row in own.values()]))
        cells = [f"{value.mean:.1f} ± {value.std:.1f}" for value in columns]
        plain = name.partition("+")[0]
        paired = gain(scores, name, plain) if "+" in name and plain in scores else []
        if len(paired) > 1:
            interval = confidence_interval(paired)
            cells += [f"{interval.mean:+.1f}", f"{interval.low:+.1f} to {interval.high:+.1f}"]
        else:
            cells += ["-", "-"]
        lines.append(f"| {name} | {' | '.join(cells)} | {len(own)} |")
    return "\n".join(lines)


def clean_table(scores: Scores) -> str:
    """Clean accuracy of Table 13's defenses beside the paper's."""
    paper = paper_table("grb-cora")
    lines = ["| defense | clean, full | paper | difference |", "|---|---|---|---|"]
    for name in TABLE_13:
        if name in scores:
            ours = mean_std([row["none"] for row in scores[name].values()])
            printed = paper["none", name, "full"][0]
            lines.append(f"| {name} | {ours.mean:.1f} ± {ours.std:.1f} | {printed} | {ours.mean - printed:+.1f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="?", type=Path, default=RECORDS)
    scores = read(parser.parse_args().records)
    print(f"{gains_table(scores)}\n\n{clean_table(scores)}")


if __name__ == "__main__":
    main()
