"""How far do injections against a GCN carry to defenses, with and without HAO's term, and how noticeable are they?

    OMP_NUM_THREADS=1 python benchmarks/transfer_hao.py [--victims gatguard,egnnguard] [--seeds 3] [--steps 200] >> FILE

Surrogate and victims are trained on grb-cora with the settings of the papers, with the same seed; limits are those of the
papers. ``homophily`` is the mean cosine of the injected nodes with what their neighbours say, ``shift`` its distance from
the mean of the clean nodes. ``accuracy`` is of all test nodes, in per cent.
"""

from __future__ import annotations

import torch
from common import options, row, started

import grb
from grb.attack.build import build_attack
from grb.attack.injection.homophily import homophily
from grb.graph import Graph, dense

ATTACKS = ("tdgia", "afgsm", "agia", "seqgia", "metagia")


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--dataset", default="grb-cora")
    parser.add_argument("--victims", default="gcn,egnnguard,gcn-cosine,gatguard,gat+at")
    parser.add_argument("--attacks", default=",".join(ATTACKS))
    parser.add_argument("--weights", default="0,1,10")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = started(parser)
    dataset = grb.load_dataset(arguments.dataset)
    usual = float(said(dataset.graph, dataset.graph.n).mean())
    for seed in range(arguments.seeds):
        surrogate = grb.train("gcn", dataset, seed=100 + seed)
        edits = {}
        for name in arguments.attacks.split(","):
            for weight in map(float, arguments.weights.split(",") if name in ATTACKS[2:] else ["0"]):
                changes = {"homophily": weight} if weight else {}
                steps = {} if name == "afgsm" else {"iterations": arguments.steps}
                attack = build_attack(name, dataset.name, **changes, **steps)
                edits[name, weight] = grb.run_attack(attack, surrogate, dataset, knowledge="transfer", seed=seed)
        for victim in arguments.victims.split(","):
            model = grb.train(victim, dataset, seed=seed)
            clean = grb.evaluate(model, dataset)["full"]
            for (name, weight), result in edits.items():
                value = float(said(dataset.graph.apply(result.edit), result.edit.num_new).mean())
                row(
                    dataset=dataset.name,
                    victim=victim,
                    attack=name,
                    hao=weight,
                    seed=seed,
                    clean=round(100 * clean, 2),
                    accuracy=round(100 * grb.evaluate(model, dataset, result)["full"], 2),
                    homophily=round(value, 3),
                    shift=round(value - usual, 3),
                    cpu=round(result.cpu_seconds, 1),
                )


def said(graph: Graph, count: int) -> torch.Tensor:
    """Cosine of the last nodes' features with what their neighbours say, [count]."""
    term = homophily(1.0, graph, count)
    return torch.nn.functional.cosine_similarity(dense(graph.x)[graph.n - count :], term.reference, dim=1)


if __name__ == "__main__":
    main()
