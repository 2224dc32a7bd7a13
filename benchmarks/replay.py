"""What does a GCN keep on graphs that others attacked, and on ours of the same budgets?

    OMP_NUM_THREADS=1 python benchmarks/replay.py FOLDER [cora citeseer] [--attack nettack|meta] [--only theirs|ours]

FOLDER is Pro-GNN's pool. A GCN (16 hidden, 200 epochs) is trained on every attacked graph, three seeds. Ours: Nettack with
k flips on each of their targets, with true labels as theirs has (``true``) and with those of its surrogate (``predicted``);
Metattack with the same number of flips. ``cpu`` is what our attack took.
"""

from __future__ import annotations

import statistics
from functools import partial
from pathlib import Path

from common import options, row, started
from torch import Tensor

from grb.attack import AttackContext, run_attack
from grb.attack.modification import Metattack, Nettack
from grb.attack.modification.nettack import fit_linear
from grb.attack.targets import with_targets
from grb.dataset.pool import AttackedGraph, Pool, read_pool
from grb.evaluator.replay import literature_defense, replay
from grb.graph import dense, normalise
from grb.threat import Modification

RATES = {"nettack": (1.0, 3.0, 5.0), "meta": (0.05, 0.1, 0.15, 0.2, 0.25)}


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=["cora", "citeseer"])
    parser.add_argument("--attack", choices=list(RATES), default="nettack")
    parser.add_argument("--only", choices=["theirs", "ours"])
    parser.add_argument("--rates", help="such as 0.05,0.2")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--refresh", type=int, default=8, help="flips of Metattack between two trainings")
    parser.add_argument("--parts", action="store_true", help="the targets that Nettack's surrogate misclassifies, too")
    arguments = started(parser)
    rates = RATES[arguments.attack] if arguments.rates is None else tuple(map(float, arguments.rates.split(",")))
    for name in arguments.names:
        pool = read_pool(arguments.folder, name)
        theirs = [graph for graph in pool.graphs if graph.attack == arguments.attack and graph.rate in rates]
        defense = literature_defense("gcn", name)
        seconds: dict[str, float] = {}
        graphs = [] if arguments.only == "ours" else list(theirs)
        if arguments.only != "theirs":
            nettack = partial(ours_nettack, parts=arguments.parts)
            make = nettack if arguments.attack == "nettack" else partial(ours_meta, refresh=arguments.refresh)
            graphs += [own for graph in theirs for own in make(pool, graph, defense, seconds)]
        for found in replay(Pool(pool.dataset, tuple(graphs)), defense, seeds=range(arguments.seeds)):
            hit = found.target_accuracy
            row(
                dataset=name,
                graph=found.graph or "clean",
                flips=found.added + found.dropped,
                added=found.added,
                test=round(100 * statistics.fmean(found.accuracy), 2),
                test_std=round(100 * statistics.pstdev(found.accuracy), 2),
                targets=round(100 * statistics.fmean(hit), 2) if hit else "",
                cpu=round(seconds.get(found.graph, 0.0), 2),
            )


def ours_nettack(
    pool: Pool, theirs: AttackedGraph, defense: object, seconds: dict[str, float], *, parts: bool = False
) -> list[AttackedGraph]:
    assert theirs.targets is not None and theirs.rate is not None
    flips = int(theirs.rate)
    view = with_targets(pool.dataset.attacker_view("full"), theirs.targets)
    model = defense.fit(pool.dataset.transductive_view(), seed=100)  # type: ignore[attr-defined]
    true = pool.dataset.labels[theirs.targets]
    contexts = {
        "predicted": AttackContext(view, Modification(per_target=flips)),
        "true": AttackContext(view, Modification(per_target=flips), model, "white-box", true_labels=true),
    }
    found = []
    for labels, context in contexts.items():
        result = run_attack(Nettack(flips=flips), context, seed=0)
        name = f"ours-{labels}-{flips}"
        seconds[name] = result.cpu_seconds
        found.append(AttackedGraph(name, result.edit, "nettack", theirs.rate, theirs.targets))
        if parts and labels == "predicted":
            wrong = _misclassified(context, true)
            for part, chosen in (("wrong", wrong), ("right", ~wrong)):
                own = theirs.targets[chosen]
                found.append(AttackedGraph(f"{name}-surrogate-{part}", result.edit, "nettack", theirs.rate, own))
    return found


def _misclassified(context: AttackContext, true: Tensor) -> Tensor:
    """Which targets Nettack's surrogate gives another label than their own, [t]."""
    op, weight = normalise.gcn(context.graph.adj), fit_linear(context)
    rows = (op @ (op @ dense(context.graph.x)))[context.targets]
    return (rows @ weight).argmax(1) != true


def ours_meta(
    pool: Pool, theirs: AttackedGraph, defense: object, seconds: dict[str, float], refresh: int = 8
) -> list[AttackedGraph]:
    context = AttackContext(pool.dataset.attacker_view("full"), Modification(edges=theirs.flips))
    result = run_attack(Metattack(refresh=refresh), context, seed=0)
    name = f"ours-{theirs.rate}"
    seconds[name] = result.cpu_seconds
    return [AttackedGraph(name, result.edit, "meta", theirs.rate)]


if __name__ == "__main__":
    main()
