"""Does the standard ensemble break anything that is certified?

    GRB_DATA=... python benchmarks/certificates_attacked.py [grb-cora cora] [--scenario injection modification]
    GRB_DATA=... python benchmarks/certificates_attacked.py --single 10    # certified targets one by one as well
    GRB_DATA=... python benchmarks/certificates_attacked.py --quick        # the first round of the race alone
    GRB_DATA=... python benchmarks/certificates_attacked.py --victims gcn+ln+smooth --samples 2000 --attack-samples 20
    GRB_DATA=... python benchmarks/certificates_attacked.py --victims gcn r-gcn+at --attack-groups 5 --aim certified

Every victim is certified under a threat model, then attacked within it, by its own gradients and with true labels, the whole
budget aimed at certified targets. ``broken`` must be 0: with certainty where nothing is sampled; what is wrong with a smoothed
model in as many samples as the certificate has is sampled again first, and what is wrong twice counts. ``together`` is the
collective bound on the number of right targets, ``left`` what one edit left of them in per cent.

An attack may be made against fewer draws, or against a vote of fewer groups of the same network, which costs less; what it
left is said of the whole model. The column ``settings`` says how much the attacker asked, ``rounds`` how far the race went.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

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
from grb.model import smoothed
from grb.model.base import predict
from grb.model.hash_vote import HashVote
from grb.model.smoothed import Smoothed
from grb.threat import Injection, Modification, Threat

SAGE = {"aggregate": "mean", "hidden_features": [64, 64]}
SAGE_KNOWN = {**SAGE, "message_dropout": 0.3}
BASE = ("gcn", "gcn+ln", "r-gcn+at")
AROUND = {"hash-vote": HashVote, "smooth": Smoothed}
# victim, settings of its training, budget that its certificate is asked about; "around" puts a vote around a trained model
INJECTION = [
    ("mlp", {}, 60),
    ("graphsage+ln+known", SAGE_KNOWN, 60),
    ("gcn+ln+known", {}, 60),
    ("graphsage+ln+bounded", {**SAGE_KNOWN, "influence": 2.0}, 60),
    ("graphsage+ln+bounded", {**SAGE_KNOWN, "influence": 0.5}, 60),
    ("graphsage+ln+hash-vote", {**SAGE, "groups": 9, "divide": "senders"}, 3),
    ("gcn+ln+smooth", {"p_drop": 0.9, "p_node": 0.8}, 5),
    ("graphsage+ln+smooth", {**SAGE, "p_drop": 0.9, "p_node": 0.8}, 5),
    ("graphsage+ln+hash-vote", {**SAGE, "groups": 121, "divide": "senders"}, 20),
    *((name, {"around": "smooth", "p_drop": 0.9, "p_node": 0.8}, 5) for name in BASE),
    *((name, {"around": "hash-vote", "groups": 121, "divide": "senders"}, 20) for name in BASE),
]
MODIFICATION = [
    ("mlp", {}, 257),
    ("graphsage+ln+hash-vote", {**SAGE, "groups": 9}, 3),
    ("gcn+ln+smooth", {"p_drop": 0.9}, 5),
    *((name, {"around": "smooth", "p_drop": 0.8}, 3) for name in BASE),
    *((name, {"around": "hash-vote", "groups": 121, "divide": "edges"}, 51) for name in BASE),
    ("graphsage+ln+hash-vote", {**SAGE, "groups": 515}, 205),
]
SAMPLES = {"certificate": 10_000, "attack": 100}
AIMS = ("certified", "all")


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("datasets", nargs="*", default=["grb-cora", "cora"])
    parser.add_argument("--scenario", nargs="*", default=["injection", "modification"])
    parser.add_argument("--victims", nargs="*", help="names of victims; all if not given")
    parser.add_argument("--single", type=int, default=0, help="certified targets with the smallest leads, one by one")
    parser.add_argument("--quick", action="store_true", help="stop the race after its first round")
    parser.add_argument("--samples", type=int, default=SAMPLES["certificate"], help="votes of a smoothed model")
    parser.add_argument("--attack-samples", type=int, default=SAMPLES["attack"], help="votes that an attack asks for")
    parser.add_argument("--attack-groups", type=int, default=0, help="groups of a vote that an attack asks; all if 0")
    parser.add_argument("--gradient-draws", type=int, default=smoothed.GRADIENT_DRAWS, help="draws behind a gradient")
    parser.add_argument(
        "--aim", nargs="*", choices=AIMS, default=AIMS, help="targets that the whole budget is aimed at"
    )
    parser.add_argument("--around", choices=[*AROUND, "no"], help="only votes around models, or none of them")
    arguments = started(parser)
    SAMPLES.update(certificate=arguments.samples, attack=arguments.attack_samples, groups=arguments.attack_groups)
    if arguments.quick:
        only_first_round()
    smoothed.GRADIENT_DRAWS = arguments.gradient_draws
    for name in arguments.datasets:
        dataset = largest_component(name, SPLITS[0]) if name == "cora" else grb.load_dataset(name)
        for scenario in arguments.scenario:
            for victim, params, budget in INJECTION if scenario == "injection" else MODIFICATION:
                named = arguments.victims is None or victim in arguments.victims
                if named and arguments.around in (None, params.get("around", "no")):
                    threat: Threat = Modification(edges=budget)
                    if scenario == "injection":
                        threat = Injection(budget, 20, dataset.feature_range)
                    attacked(dataset, victim, params, threat, arguments.single, arguments.aim)


def only_first_round() -> None:
    """Every member as a cheap probe; nobody continues, and the single attack that runs beside the race does not."""
    listed = ensemble.members
    ensemble.LEVELS = 1
    ensemble.members = lambda context: tuple(
        replace(member, resume=None) for member in listed(context) if not member.reference
    )


def attacked(
    dataset: Dataset,
    victim: str,
    params: dict[str, object],
    threat: Threat,
    single: int,
    aims: Sequence[str] = AIMS,
) -> None:
    model, asked = made(dataset, victim, params)
    settings = {"samples": SAMPLES["certificate"]} if isinstance(model, Smoothed) else {}
    found = grb.certify(model, dataset, threat=threat, **settings)
    ids = dataset.test_ids(dataset.mode)
    safe = torch.from_numpy(found.correct & found.certified)
    common = {
        "dataset": dataset.name,
        "defense": victim,
        "settings": " ".join(f"{key}={value}" for key, value in {**params, **of_attack(model, asked)}.items()),
        "certificate": found.certificate,
        "threat": f"{found.budget} {found.unit}",
        "targets": len(ids),
        "clean": 100 * found.clean_accuracy,
        "certified": 100 * found.certified_accuracy,
    }
    auto = "auto" if isinstance(threat, Injection) else "auto-edges"
    for aim, aimed in (("certified", ids[safe]), ("all", ids)):
        if aim not in aims or aim == "all" and bool(safe.all()) or not len(aimed):
            continue
        start = time.process_time()
        edit = grb.run_attack(auto, asked, dataset, threat=threat, targets=aimed, labels="true").edit
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
        one_by_one(model, asked, dataset, threat, found, single, common, auto)


def made(dataset: Dataset, victim: str, params: dict[str, object]) -> tuple[nn.Module, nn.Module]:
    """A victim, and what its attacker asks instead: the same with fewer draws, or a vote of fewer groups."""
    given = dict(params)
    kind = given.pop("around", None)
    model = grb.train(victim, dataset, **({} if kind else given))
    if kind:
        model = AROUND[str(kind)](model, **given).eval()
    if isinstance(model, Smoothed):
        return model, Smoothed(model.model, **vars(model.noise), samples=SAMPLES["attack"]).eval()
    groups = SAMPLES.get("groups", 0)
    if isinstance(model, HashVote) and 0 < groups < model.groups:
        return model, HashVote(model.model, groups, model.divide).eval()
    return model, model


def of_attack(model: nn.Module, asked: nn.Module) -> dict[str, object]:
    """What an attacker asks less than the victim answers with, for a row."""
    if isinstance(asked, Smoothed):
        draws = {"gradient_draws": smoothed.GRADIENT_DRAWS}
        return {"samples": SAMPLES["certificate"], "attack_samples": asked.samples, **draws}
    return {} if asked is model or not isinstance(asked, HashVote) else {"attack_groups": asked.groups}


def one_by_one(
    model: nn.Module,
    asked: nn.Module,
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
        edit = grb.run_attack(auto, asked, dataset, threat=own, targets=ids[number : number + 1], labels="true").edit
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
        scores = model.votes(graph.x, graph.adj, SAMPLES["certificate"], torch.Generator().manual_seed(seed))
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
