"""The standard ensemble, aimed at what is certified, breaks nothing; benchmarks/certificates_attacked.py has true data."""

from __future__ import annotations

from functools import cache

import pytest
import torch

import grb
from grb.attack.auto import ensemble
from grb.certificate.base import default_view
from grb.dataset import load_dataset
from grb.model.base import predict
from grb.model.smoothed import Smoothed
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
