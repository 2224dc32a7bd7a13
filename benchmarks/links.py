"""What do changed edges cost a model that predicts links?

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python benchmarks/links.py [planetoid-cora] [--epochs 300] [--seeds 2]

AUROC and mean reciprocal rank of held-out edges, clean and after an attack on the graph on which the model computes.
Attacks may not touch the pairs that are scored. ``labels`` says what gradients aim at: what the model says, or what is true.
"""

from __future__ import annotations

import argparse
import time

import torch
from common import row

from grb.attack.base import Labels
from grb.attack.links import GreedyLinks, LinkAttack, RandomLinks, run_link_attack
from grb.dataset import load_dataset
from grb.model.profiling import profiler
from grb.threat import Modification
from grb.trainer.links import fit_link_model, split_links

ATTACKS: list[tuple[str, LinkAttack, Labels]] = [
    ("random", RandomLinks(), "predicted"),
    ("greedy", GreedyLinks(), "predicted"),
    ("greedy", GreedyLinks(), "true"),
]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset", nargs="?", default="planetoid-cora")
    parser.add_argument("--model", default="gcn")
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--ratios", default="0.05,0.2")
    given = parser.parse_args()
    torch.set_num_threads(1)
    graph = load_dataset(given.dataset).graph
    chosen = profiler(given.model, collection=False, epochs=given.epochs)
    for seed in range(given.seeds):
        split = split_links(graph, seed)
        victim, _ = fit_link_model(split, chosen, seed=seed)
        for ratio in map(float, given.ratios.split(",")):
            for name, attack, labels in ATTACKS:
                start = time.process_time()
                found = run_link_attack(
                    attack, split, Modification(edge_ratio=ratio), victim=victim, labels=labels, seed=seed
                )
                row(
                    question="attacked links",
                    dataset=given.dataset,
                    model=given.model,
                    seed=seed,
                    attack=name,
                    labels=labels,
                    edge_ratio=ratio,
                    edges=int(found.budget["edges"]),
                    auroc_clean=round(found.clean.auroc, 4),
                    auroc=round(found.attacked.auroc, 4),
                    mrr_clean=round(found.clean.mrr, 4),
                    mrr=round(found.attacked.mrr, 4),
                    cpu=time.process_time() - start,
                )


if __name__ == "__main__":
    main()
