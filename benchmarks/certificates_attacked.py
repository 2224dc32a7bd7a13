"""Does the standard ensemble break anything that is certified?

    GRB_DATA=... python benchmarks/certificates_attacked.py [grb-cora cora] [--scenario injection modification]
    GRB_DATA=... python benchmarks/certificates_attacked.py --single 10    # certified targets one by one as well
    GRB_DATA=... python benchmarks/certificates_attacked.py --quick        # the first round of the race alone

Every victim is certified under a threat model, then attacked within it, by its own gradients and with true labels, the whole
budget aimed at certified targets. ``broken`` must be 0: with certainty where nothing is sampled; what is wrong with a smoothed
model in as many samples as the certificate has is sampled again first, and what is wrong twice counts. ``together`` is the
collective bound on the number of right targets, ``left`` what one edit left of them in per cent.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from citation import SPLITS, largest_component
from common import options, row, started
from torch import Tensor, nn

import grb
from grb.attack.auto import ensemble
from grb.certificate import CertifiedResult
from grb.certificate.base import default_view
from grb.dataset import Dataset
from grb.graph import Graph, GraphEdit
from grb.model.base import predict
from grb.model.smoothed import Smoothed
from grb.threat import Injection, Modification, Threat

SAGE = {"aggregate": "mean", "hidden_features": [64, 64]}
SAGE_KNOWN = {**SAGE, "message_dropout": 0.3}
# victim, settings of its training, budget that its certificate is asked about
INJECTION = [
    ("mlp", {}, 60),
    ("graphsage+ln+known", SAGE_KNOWN, 60),
    ("gcn+ln+known", {}, 60),
    ("graphsage+ln+bounded", {**SAGE_KNOWN, "influence": 2.0}, 60),
    ("graphsage+ln+bounded", {**SAGE_KNOWN, "influence": 0.5}, 60),
    ("graphsage+ln+hash-vote", {**SAGE, "groups": 9, "divide": "senders"}, 3),
    ("gcn+ln+smooth", {"p_drop": 0.9, "p_node": 0.8, "samples": 100}, 5),
]
MODIFICATION = [
    ("mlp", {}, 257),
    ("graphsage+ln+hash-vote", {**SAGE, "groups": 9}, 3),
    ("gcn+ln+smooth", {"p_drop": 0.9, "samples": 100}, 5),
]
SAMPLES = 10_000


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("datasets", nargs="*", default=["grb-cora", "cora"])
    parser.add_argument("--scenario", nargs="*", default=["injection", "modification"])
    parser.add_argument("--victims", nargs="*", help="names of victims; all if not given")
    parser.add_argument("--single", type=int, default=0, help="certified targets with the smallest leads, one by one")
    parser.add_argument("--quick", action="store_true", help="stop the race after its first round")
    arguments = started(parser)
    if arguments.quick:
        ensemble.LEVELS = 1
    for name in arguments.datasets:
        dataset = largest_component(name, SPLITS[0]) if name == "cora" else grb.load_dataset(name)
        for scenario in arguments.scenario:
            for victim, params, budget in INJECTION if scenario == "injection" else MODIFICATION:
                if arguments.victims is None or victim in arguments.victims:
                    threat: Threat = Modification(edges=budget)
                    if scenario == "injection":
                        threat = Injection(budget, 20, dataset.feature_range)
                    attacked(dataset, victim, params, threat, arguments.single)


def attacked(dataset: Dataset, victim: str, params: dict[str, object], threat: Threat, single: int) -> None:
    model = grb.train(victim, dataset, **params)
    settings = {"samples": SAMPLES} if isinstance(model, Smoothed) else {}
    found = grb.certify(model, dataset, threat=threat, **settings)
    ids = dataset.test_ids(dataset.mode)
    safe = torch.from_numpy(found.correct & found.certified)
    common = {
        "dataset": dataset.name,
        "defense": victim,
        "settings": " ".join(f"{key}={value}" for key, value in params.items()),
        "certificate": found.certificate,
        "threat": f"{found.budget} {found.unit}",
        "targets": len(ids),
        "clean": 100 * found.clean_accuracy,
        "certified": 100 * found.certified_accuracy,
    }
    auto = "auto" if isinstance(threat, Injection) else "auto-edges"
    for aim, aimed in (("certified", ids[safe]), ("all", ids)):
        if aim == "all" and bool(safe.all()) or not len(aimed):
            continue
        start = time.process_time()
        edit = grb.run_attack(auto, model, dataset, threat=threat, targets=aimed, labels="true").edit
        right = right_after(model, dataset, dataset.graph.apply(edit), ids)
        broken = count_broken(model, dataset, edit, ids, safe, right, found)
        row(
            **common,
            aimed=f"{aim} ({len(aimed)})",
            rounds=ensemble.LEVELS,
            left=100 * float(right.float().mean()),
            together=-1 if found.collective is None else found.collective,
            certified_targets=int(safe.sum()),
            broken=broken,
            cpu_seconds=time.process_time() - start,
        )
        assert not broken and (found.samples or int(right.sum()) >= (found.collective or 0))
    if single:
        one_by_one(model, dataset, threat, found, single, common, auto)


def one_by_one(
    model: nn.Module,
    dataset: Dataset,
    threat: Threat,
    found: CertifiedResult,
    count: int,
    common: dict[str, object],
    auto: str,
) -> None:
    """Attack the certified targets of the smallest budgets alone, each with all that it survives; the race is cut short."""
    ids = dataset.test_ids(dataset.mode)
    weak = np.flatnonzero(found.correct & (found.budgets >= 1))
    weak = weak[np.argsort(found.budgets[weak], kind="stable")][:count]
    start, broken, ensemble.LEVELS = time.process_time(), 0, 1
    for number in weak:
        budget = min(int(found.budgets[number]), found.budget)
        own: Threat = Modification(edges=budget)
        if isinstance(threat, Injection):
            own = Injection(budget, threat.edges_per_node, threat.feature_range)
        edit = grb.run_attack(auto, model, dataset, threat=own, targets=ids[number : number + 1], labels="true").edit
        safe = torch.zeros(len(ids), dtype=torch.bool)
        safe[number] = True
        right = right_after(model, dataset, dataset.graph.apply(edit), ids)
        broken += count_broken(model, dataset, edit, ids, safe, right, found)
    row(
        **common,
        aimed=f"one by one ({len(weak)})",
        rounds=ensemble.LEVELS,
        left=-1.0,
        together=-1,
        certified_targets=len(weak),
        broken=broken,
        cpu_seconds=time.process_time() - start,
    )
    assert not broken


def right_after(model: nn.Module, dataset: Dataset, graph: Graph, ids: Tensor, seed: int = 1) -> Tensor:
    """Which targets are right on a graph, [t]; of a smoothed model in as many samples as the certificate has."""
    view = default_view(dataset, 0, graph.n)
    if isinstance(model, Smoothed):
        scores = model.votes(graph.x, graph.adj, SAMPLES, torch.Generator().manual_seed(seed))
    else:
        scores = predict(model, graph, view)
    return scores[ids].argmax(1) == dataset.labels[ids]


def count_broken(
    model: nn.Module,
    dataset: Dataset,
    edit: GraphEdit,
    ids: Tensor,
    safe: Tensor,
    right: Tensor,
    found: CertifiedResult,
) -> int:
    """Certified targets that an edit broke; of a sampled certificate those that are wrong again in other samples."""
    wrong = safe & ~right
    if found.samples and bool(wrong.any()):
        wrong &= ~right_after(model, dataset, dataset.graph.apply(edit), ids, seed=2)
    return int(wrong.sum())


if __name__ == "__main__":
    main()
