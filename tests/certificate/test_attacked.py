"""The standard ensemble, aimed at what is certified, breaks nothing; benchmarks/certificates_attacked.py has true data."""

from __future__ import annotations

from functools import cache

import pytest
import torch

import grb
from grb.attack.auto import ensemble
from grb.attack.base import AttackContext, run_attack
from grb.certificate.base import default_view
from grb.dataset import load_dataset
from grb.graph import GraphEdit
from grb.model.base import predict
from grb.model.hash_vote import HashVote
from grb.model.smoothed import Smoothed
from grb.pipeline import Limits, Recipe, Spec, Store, plan_study, run, worker
from grb.threat import Injection, Modification

INJECTED = Injection(2, 6, load_dataset("synth-tiny").feature_range)
FLIPPED = Modification(edges=2)
VICTIMS = [
    ("mlp", {}, INJECTED),
    ("mlp", {}, FLIPPED),
    ("gcn+known", {}, INJECTED),
    ("graphsage+bounded", {"influence": 3.0}, INJECTED),
    ("gcn+hash-vote", {"groups": 5, "divide": "senders"}, INJECTED),
    ("gcn+hash-vote", {"groups": 9}, FLIPPED),
    ("gcn+smooth", {"p_drop": 0.9, "p_node": 0.8, "samples": 20}, INJECTED),
    ("gcn+smooth", {"p_drop": 0.9, "samples": 20}, FLIPPED),
]


@cache
def tiny():
    return load_dataset("synth-tiny")


def right_after(model, graph, seed):
    """Which targets are right, [t]; of a smoothed model in two thousand new samples."""
    ids = tiny().test_ids("full")
    if isinstance(model, Smoothed):
        scores = model.votes(graph.x, graph.adj, 2000, torch.Generator().manual_seed(seed))
    else:
        scores = predict(model, graph, default_view(tiny(), 0, graph.n))
    return scores[ids].argmax(1) == tiny().labels[ids]


@pytest.mark.parametrize(
    ("name", "params", "threat"), VICTIMS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_the_ensemble_breaks_nothing_that_is_certified(monkeypatch, name, params, threat):
    monkeypatch.setattr(ensemble, "LEVELS", 1)
    model = grb.train(name, tiny(), epochs=40, hidden_features=[16], **params)
    more = {"samples": 2000} if isinstance(model, Smoothed) else {}
    found = grb.certify(model, tiny(), threat=threat, **more)
    safe = torch.from_numpy(found.certified & found.correct)
    assert safe.any()
    attack = "auto" if isinstance(threat, Injection) else "auto-edges"
    aimed = tiny().test_ids("full")[safe]
    edit = grb.run_attack(attack, model, tiny(), threat=threat, targets=aimed, labels="true").edit
    graph = tiny().graph.apply(edit)
    right = right_after(model, graph, 1)
    if found.samples:  # what is wrong by chance is right in other samples
        right |= right_after(model, graph, 2)
    assert right[safe].all()
    assert int(right.sum()) >= (found.collective or 0)


class Listener:
    """An attack that takes note of the keys of the model, and injects a node without edges."""

    scenario = "injection"
    version = 1

    def __init__(self):
        self.keys = {}

    def __call__(self, context, *, generator):
        n = context.graph.n
        self.keys = {more: context.model.keys(n + more) for more in range(3)}
        self.known = context.model.known(n + 2)
        return GraphEdit(n)


def test_votes_are_attacked_with_the_keys_that_they_are_scored_with():
    """Also of the nodes that are injected: they are in the groups in which they will be scored."""
    dataset = tiny()
    model = HashVote(grb.train("gcn", dataset, epochs=1), 5, "senders").eval()
    for keys in (0, 7):
        attack = Listener()
        context = AttackContext(dataset.attacker_view("full"), INJECTED, model, "white-box", keys=keys)
        run_attack(attack, context, seed=0)
        for more, found in attack.keys.items():
            assert torch.equal(found, default_view(dataset, keys, dataset.num_nodes + more).keys)
        assert torch.equal(attack.known, default_view(dataset, keys, dataset.num_nodes + 2).known)


def test_a_study_attacks_with_the_keys_of_its_scores(monkeypatch, tmp_path):
    seen = []

    def listening(attack, context, *, seed):
        seen.append(context)
        return run_attack(attack, context, seed=seed)

    monkeypatch.setattr(worker, "run_attack", listening)
    recipe = Recipe(
        "keys",
        "synth-tiny",
        defenses=(Spec("gcn+hash-vote", {"groups": 3, "divide": "senders"}),),
        attacks=(Spec("fgsm"),),
        white_box=(Spec("fgsm"),),
        modes=("full",),
        repeats=1,
        iterations=1,
        training={"epochs": 1, "hidden_features": [4]},
        threat={"nodes": 1, "edges_per_node": 1},
    )
    study = plan_study(recipe)
    assert not run(study.jobs.values(), Store(tmp_path / "store"), limits=Limits(workers=0)).failed
    fits = {int(key[:15], 16) for key, job in study.jobs.items() if job.kind == "fit"}
    assert len(seen) > 1 and {context.keys for context in seen} <= fits
