"""How far do injections against a GCN carry to defenses, with and without HAO's term, and how noticeable are they?

    OMP_NUM_THREADS=1 python benchmarks/transfer_hao.py [--victims gatguard,egnnguard] [--seeds 0,1,2] [--steps 200] \
        --done FILE --trained DIRECTORY >> FILE

Surrogate and victims are trained on grb-cora with the settings of the papers (gat+at for 130 epochs at most), with the same
seed; limits are those of the papers. ``homophily`` is the mean cosine of the injected nodes with what their neighbours say,
``shift`` its distance from the mean of the clean nodes. ``accuracy`` is of all test nodes, in per cent. Rows that FILE
(``--done``) has already are left out, and victims that DIRECTORY has are not trained again.
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import torch
from common import options, row, started
from queries import read_done, victim

import grb
from grb.attack import AttackResult
from grb.attack.build import build_attack
from grb.attack.injection.homophily import homophily
from grb.dataset import Dataset
from grb.graph import Graph, dense

# as in benchmarks/worst_case.py, because its full training takes long
TRAINING: dict[str, dict[str, int]] = {"gat+at": {"patience": 60, "epochs": 130}}
ATTACKS = ("tdgia", "afgsm", "agia", "seqgia", "metagia")


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--dataset", default="grb-cora")
    parser.add_argument("--victims", default="gcn,egnnguard,gcn-cosine,gatguard,gat+at")
    parser.add_argument("--attacks", default=",".join(ATTACKS))
    parser.add_argument("--weights", default="0,1,10")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--done", type=Path, help="a file of rows that need not be computed again")
    parser.add_argument("--trained", type=Path, help="a directory of trained victims, filled as they are needed")
    arguments = started(parser)
    dataset = grb.load_dataset(arguments.dataset)
    usual = float(said(dataset.graph, dataset.graph.n).mean())
    done = read_done(arguments.done, ("victim", "attack", "hao", "seed"))
    settings = [
        (name, f"{float(weight):g}")
        for name in arguments.attacks.split(",")
        for weight in (arguments.weights.split(",") if name in ATTACKS[2:] else ["0"])
    ]
    for seed in map(int, arguments.seeds.split(",")):
        edits: dict[tuple[str, str], AttackResult] = {}
        for name in arguments.victims.split(","):
            missing = [key for key in settings if (name, *key, str(seed)) not in done]
            if not missing:
                continue
            model = victim(name, dataset, seed, arguments.trained, **TRAINING.get(name, {}))
            clean = grb.evaluate(model, dataset)["full"]
            for attack, weight in missing:
                key = attack, weight
                result = edits[key] = edits.get(key) or injected(dataset, *key, arguments, seed)
                value = float(said(dataset.graph.apply(result.edit), result.edit.num_new).mean())
                row(
                    dataset=dataset.name,
                    victim=name,
                    attack=attack,
                    hao=weight,
                    seed=seed,
                    clean=round(100 * clean, 2),
                    accuracy=round(100 * grb.evaluate(model, dataset, result)["full"], 2),
                    homophily=round(value, 3),
                    shift=round(value - usual, 3),
                    cpu=round(result.cpu_seconds, 1),
                )


def injected(dataset: Dataset, name: str, weight: str, arguments: Namespace, seed: int) -> AttackResult:
    """What an attack injects against a GCN of another seed than the victims'."""
    changes = {"homophily": float(weight)} if float(weight) else {}
    steps = {} if name == "afgsm" else {"iterations": arguments.steps}
    attack = build_attack(name, dataset.name, **changes, **steps)
    surrogate = victim("gcn", dataset, 100 + seed, arguments.trained)
    return grb.run_attack(attack, surrogate, dataset, knowledge="transfer", seed=seed)


def said(graph: Graph, count: int) -> torch.Tensor:
    """Cosine of the last nodes' features with what their neighbours say, [count]."""
    term = homophily(1.0, graph, count)
    return torch.nn.functional.cosine_similarity(dense(graph.x)[graph.n - count :], term.reference, dim=1)


if __name__ == "__main__":
    main()
