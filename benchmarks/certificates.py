"""How much accuracy on grb-cora can no attack take away, and what does it cost to know?

    python benchmarks/certificates.py accuracy     # certified accuracy by number of injected nodes or changed edges
    python benchmarks/certificates.py known        # five trainings of models that hear known nodes only
    python benchmarks/certificates.py cost         # CPU seconds of 10,000 samples, of the programs; memory at flickr size

Injection: 60 nodes of 20 edges each and any features (the paper's limits on the full test set); edges: 1 to 5 % of them.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from common import options, peak_gigabytes, row, sized_dataset, started, untrained

import grb
from grb.certificate import NotCertifiable, build_certificate, run_certificate
from grb.certificate.base import scipy_of
from grb.certificate.injection_lp import injection_attacked
from grb.certificate.smoothing import sampled_votes
from grb.metric import mean_std
from grb.model.hash_vote import HashVote
from grb.model.smoothed import Smoothed
from grb.threat import Injection, Modification

SAGE = {"aggregate": "mean", "hidden_features": [64, 64]}
BUDGETS = (1, 2, 3, 5, 10, 20, 60)
# base model, settings of its training, certificate, its settings
INJECTION = [
    ("mlp", {}, "by-construction", {}),
    ("graphsage+ln+known", SAGE, "by-construction", {}),
    ("gcn+ln+known", {}, "by-construction", {}),
    ("gcn", {}, "hash-vote", {"groups": 121}),
    ("gcn", {}, "bi-smoothing", {"samples": 2000}),
    ("gcn+ln", {}, "hash-vote", {"groups": 121}),
    ("gcn+ln", {}, "bi-smoothing", {"samples": 2000}),
    ("graphsage+ln+hash-vote", {**SAGE, "groups": 3, "divide": "senders"}, "hash-vote", {}),
    ("graphsage+ln+hash-vote", {**SAGE, "groups": 9, "divide": "senders"}, "hash-vote", {}),
    ("graphsage+ln+hash-vote", {**SAGE, "groups": 121, "divide": "senders"}, "hash-vote", {}),
    ("gcn+ln+smooth", {"p_drop": 0.9, "p_node": 0.8}, "bi-smoothing", {"samples": 2000}),
    ("graphsage+ln+smooth", {**SAGE, "p_drop": 0.9, "p_node": 0.8}, "bi-smoothing", {"samples": 2000}),
    ("r-gcn+at", {}, "hash-vote", {"groups": 121}),
    ("r-gcn+at", {}, "bi-smoothing", {"samples": 2000}),
]
EDGES = [
    ("mlp", {}, "by-construction", {}),
    ("gcn", {}, "hash-vote", {"groups": 121}),
    ("gcn", {}, "sparse-smoothing", {"samples": 2000}),
    ("gcn+ln", {}, "sparse-smoothing", {"samples": 2000}),
    ("graphsage+ln+hash-vote", {**SAGE, "groups": 5}, "hash-vote", {}),
    ("graphsage+ln+hash-vote", {**SAGE, "groups": 515}, "hash-vote", {}),
    ("gcn+ln+smooth", {"p_drop": 0.6}, "sparse-smoothing", {"samples": 2000}),
    ("gcn+ln+smooth", {"p_drop": 0.9}, "sparse-smoothing", {"samples": 2000}),
    ("r-gcn+at", {}, "sparse-smoothing", {"samples": 2000}),
]


def accuracy() -> None:
    dataset = grb.load_dataset("grb-cora")
    edges = dataset.num_edges
    trained: dict[str, torch.nn.Module] = {}
    for rows, threats in (
        (INJECTION, {"60 injected nodes": Injection(60, 20, dataset.feature_range)}),
        (EDGES, {f"{share:.0%} of edges": Modification(edges=int(share * edges)) for share in (0.01, 0.05)}),
    ):
        for name, params, certificate, settings in rows:
            key = f"{name} {params}"
            if key not in trained:
                trained[key] = grb.train(name, dataset, **params)
            for title, threat in threats.items():
                try:
                    found = run_certificate(build_certificate(certificate, **settings), trained[key], dataset, threat)
                except NotCertifiable as error:
                    row(model=name, threat=title, certificate=certificate, refusal=str(error))
                    continue
                row(
                    defense=name,
                    certified_model=found.model,
                    threat=title,
                    clean=100 * found.clean_accuracy,
                    **{f"at_{budget}": 100 * found.accuracy_at(budget) for budget in BUDGETS},
                    threat_model=100 * found.certified_accuracy,
                    together=-1 if found.collective is None else found.collective,
                    abstained=int(found.abstained.sum()),
                    samples=found.samples,
                    cpu_seconds=found.seconds,
                )


def known() -> None:
    dataset = grb.load_dataset("grb-cora")
    threat = Injection(60, 20, dataset.feature_range)
    for name, params in (("graphsage+ln+known", SAGE), ("gcn+ln+known", {}), ("gcn+known", {})):
        found = [
            grb.certify(grb.train(name, dataset, seed=seed, **params), dataset, threat=threat) for seed in range(5)
        ]
        clean, sure = (
            mean_std([100 * value for value in each])
            for each in zip(*[(f.clean_accuracy, f.certified_accuracy) for f in found])
        )
        row(
            defense=name,
            trainings=5,
            clean=clean.mean,
            clean_std=clean.std,
            certified=sure.mean,
            certified_std=sure.std,
        )


def cost() -> None:
    dataset = grb.load_dataset("grb-cora")
    gcn = untrained("gcn", dataset)
    for p_add, p_drop in ((0.001, 0.6), (0.0, 0.8)):
        start = time.process_time()
        votes = sampled_votes(Smoothed(gcn, p_add, p_drop), dataset, 10_000, 0)
        row(what=f"10,000 samples, p_add={p_add}, p_drop={p_drop}", cpu_seconds=time.process_time() - start, limit=90.0)
    targets = dataset.test_ids("full").numpy()
    low = np.linspace(0.55, 0.99, len(targets))
    start = time.process_time()
    own = {"nodes": 60, "edges_per_node": 20, "p_edge": 0.9, "p_node": 0.8, "reach": 3}
    injection_attacked(low, 1 - low, targets, scipy_of(dataset.graph.adj), **own)
    row(what=f"injection program, {len(targets)} targets", cpu_seconds=time.process_time() - start, limit=30.0)
    assert len(votes) == dataset.num_nodes


def memory() -> None:
    large = sized_dataset("flickr")
    vote = HashVote(untrained("gcn", large), 50, "senders").eval()
    start = time.process_time()
    found = run_certificate(
        build_certificate("hash-vote", collective=False), vote, large, Injection(10, 10, (-1.0, 1.0))
    )
    assert len(found.budgets)
    row(
        what="hash vote of 50 groups at flickr size",
        cpu_seconds=time.process_time() - start,
        gigabytes=peak_gigabytes(),
    )


if __name__ == "__main__":
    parser = options(__doc__)
    parser.add_argument("part", nargs="?", choices=("accuracy", "known", "cost", "memory"), default="cost")
    chosen = started(parser)
    {"accuracy": accuracy, "known": known, "cost": cost, "memory": memory}[chosen.part]()
