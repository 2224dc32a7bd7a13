"""How well do detectors that have seen the training graph alone notice each attack, and is HAO harder to notice than FGSM?

    OMP_NUM_THREADS=1 python benchmarks/detectors.py [grb-cora cora] [--seeds 5] [--first 0] [--attacks fgsm,dice] >> FILE
    python benchmarks/detectors.py --summary FILE
    OMP_NUM_THREADS=1 python benchmarks/detectors.py grb-cora --pruning [--seeds 5] >> FILE

Attacks are white-box against a GCN trained with the same seed, within the limits of the papers (5 % of the edges where edges
are changed; on Cora injections have the inferred limits). grb-cora has GRB's split; Cora is its largest component with five
splits of 10/10/80 per cent, of which a defender sees 20. ``hao`` is the weight of HAO's term. ``accuracy`` is that of the GCN
on all test nodes. A row is one detector and one kind of items: ``auroc``, and in per cent what is noticed (``detected``) and
the false alarms at the threshold that 5 % of what the defender has seen exceed. ``--summary`` prints means with 95 %
intervals (Student's t over seeds).

``--pruning`` asks what pruning by a detector is worth (``gcn-detect``): accuracy on the clean graph, and under PGD whose
gradients come from the model itself (``own``), from the model without cuts (``uncut``) or from weights instead of cuts
(``soft``), and under AGIA with HAO's term made against a plain GCN (``transfer``). Edits are always scored on the model that
cuts.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from citation import SPLITS, largest_component
from common import options, row, started

import grb
from grb.catalogue import entries
from grb.detector import build_detector
from grb.metric import confidence_interval
from grb.model.base import relaxations

# name and weight of HAO's term
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
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--attacks", default=",".join(dict.fromkeys((*(name for name, _ in INJECTION), *MODIFICATION))))
    parser.add_argument("--summary", type=Path)
    parser.add_argument("--pruning", action="store_true")
    arguments = started(parser)
    if arguments.summary is not None:
        summary(arguments.summary)
        return
    for name in arguments.datasets:
        for seed in range(arguments.first, arguments.seeds):
            dataset = largest_component("cora", SPLITS[seed]) if name == "cora" else grb.load_dataset(name)
            if arguments.pruning:
                pruning(dataset, seed, arguments.steps)
            else:
                run(dataset, seed, arguments.steps, arguments.attacks.split(","))


def run(dataset: grb.Dataset, seed: int, steps: int, wanted: Sequence[str]) -> None:
    model = grb.train("gcn", dataset, seed=seed)
    view = dataset.defender_view()
    detectors = [
        build_detector(name, dataset.num_features, dataset.num_classes).fit(view, seed=seed)
        for name in entries("detector")
    ]
    for attack, hao in (*INJECTION, *((name, 0.0) for name in MODIFICATION)):
        if attack not in wanted:
            continue
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


def pruning(dataset: grb.Dataset, seed: int, steps: int) -> None:
    """One row per detector: what is left of a GCN that it prunes for."""
    surrogate = grb.train("gcn", dataset, seed=100 + seed)
    hidden = grb.run_attack(
        "agia", surrogate, dataset, knowledge="transfer", seed=seed, iterations=steps, homophily=1.0
    )
    for name in ("joint", "homophily", "feature-likelihood"):
        model = grb.train("gcn-detect", dataset, seed=seed, detector=name)
        found = {"clean": grb.evaluate(model, dataset)["full"]}
        for way, through in {"own": model, **relaxations(model)}.items():
            attack = grb.run_attack("pgd", through, dataset, seed=seed, iterations=steps)
            found[way] = grb.evaluate(model, dataset, attack)["full"]
        found["transfer"] = grb.evaluate(model, dataset, hidden)["full"]
        left = model.part(dataset.graph).num_edges / dataset.graph.num_edges
        shares = {key: round(100 * value, 2) for key, value in found.items()}
        row(dataset=dataset.name, detector=name, seed=seed, edges_left=round(100 * left, 1), **shares)


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
