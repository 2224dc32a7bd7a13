"""How well do detectors that have seen the training graph alone notice each attack, and is HAO harder to notice than FGSM?

    OMP_NUM_THREADS=1 python benchmarks/detectors.py [grb-cora cora] [--seeds 5] [--steps 100] >> FILE
    python benchmarks/detectors.py --summary FILE

Attacks are white-box against a GCN trained with the same seed, within the limits of the papers (5 % of the edges where edges
are changed; on Cora injections have the inferred limits). grb-cora has GRB's split; Cora is its largest component with five
splits of 10/10/80 per cent, of which a defender sees 20. ``hao`` is the weight of HAO's term. ``accuracy`` is that of the GCN
on all test nodes. A row is one detector and one kind of items: ``auroc``, and in per cent what is noticed (``detected``) and
the false alarms at the threshold that 5 % of what the defender has seen exceed. ``--summary`` prints means with 95 %
intervals (Student's t over seeds).
"""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

from citation import SPLITS, largest_component
from common import options, row, started

import grb
from grb.catalogue import entries
from grb.detector import build_detector
from grb.metric import confidence_interval

# name, weight of HAO's term, whether it takes steps
INJECTION = (
    ("rnd", 0.0),
    ("fgsm", 0.0),
    ("pgd", 0.0),
    ("speit", 0.0),
    ("tdgia", 0.0),
    ("agia", 0.0),
    ("agia", 1.0),
    ("seqgia", 1.0),
    ("metagia", 1.0),
)
MODIFICATION = ("dice", "fga", "pr-bcd")


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("datasets", nargs="*", default=["grb-cora", "cora"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--summary", type=Path)
    arguments = started(parser)
    if arguments.summary is not None:
        summary(arguments.summary)
        return
    for name in arguments.datasets:
        for seed in range(arguments.seeds):
            dataset = largest_component("cora", SPLITS[seed]) if name == "cora" else grb.load_dataset(name)
            run(dataset, seed, arguments.steps)


def run(dataset: grb.Dataset, seed: int, steps: int) -> None:
    model = grb.train("gcn", dataset, seed=seed)
    view = dataset.defender_view()
    detectors = [
        build_detector(name, dataset.num_features, dataset.num_classes).fit(view, seed=seed)
        for name in entries("detector")
    ]
    for attack, hao in (*INJECTION, *((name, 0.0) for name in MODIFICATION)):
        chosen = {"homophily": hao} if hao else {}
        if attack not in ("rnd", "dice", "fga"):
            chosen["iterations"] = steps
        result = grb.run_attack(attack, None if attack == "rnd" else model, dataset, seed=seed, **chosen)
        accuracy = 100 * grb.evaluate(model, dataset, result)["full"]
        for detector in detectors:
            for kind, roc in grb.detect(detector, dataset, result).roc.items():
                row(
                    dataset=dataset.name,
                    attack=attack,
                    hao=hao,
                    seed=seed,
                    accuracy=round(accuracy, 2),
                    detector=detector.name,
                    items=kind,
                    auroc=round(roc.auroc, 4),
                    detected=round(100 * roc.detected, 1),
                    false_alarms=round(100 * roc.false_alarms, 1),
                )


def summary(file: Path) -> None:
    """Mean and interval of the AUROC of every attack against every detector, a line per dataset, attack and kind of items."""
    found: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    with file.open() as lines:
        for each in csv.DictReader(lines):
            name = each["attack"] + (f" + HAO {each['hao']}" if float(each["hao"]) else "")
            found[each["dataset"], name, each["items"]][each["detector"]].append(float(each["auroc"]))
    names = list(entries("detector"))
    print(f"| dataset | attack | items | {' | '.join(names)} |")
    print("|" + "---|" * (len(names) + 3))
    for key, own in found.items():
        cells = []
        for name in names:
            around = confidence_interval(own[name])
            cells.append(f"{around.mean:.3f} [{around.low:.3f}, {around.high:.3f}]")
        print(f"| {' | '.join((*key, *cells))} |")


if __name__ == "__main__":
    main()
