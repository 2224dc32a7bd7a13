"""Exact by construction: each of its conditions is needed. Without it a model is certified that one injection breaks."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache

import pytest
import torch

import grb
from grb.certificate import NotCertifiable, build_certificate, by_construction, locality, run_certificate
from grb.certificate.base import default_view
from grb.dataset import load_dataset
from grb.graph import CSR, Graph, GraphEdit
from grb.model.base import EvaluationView, GraphModel, Rows, predict
from grb.model.known import Known
from grb.model.wrapped import entries_kept
from grb.threat import Injection

EMPTY = torch.empty(2, 0, dtype=torch.int64)


@cache
def tiny():
    return load_dataset("synth-tiny")


@cache
def trained() -> GraphModel:
    return grb.train("graphsage", tiny(), epochs=40, hidden_features=[16], aggregate="mean")


def threat() -> Injection:
    return Injection(2, 4, tiny().feature_range)


def peak(x):
    """What no random row moves: the largest minimum of a row; one whole row at the upper limit does."""
    return x.amin(1).amax()


class Unsaid(Known):
    """A forward pass with a term that its stages do not have: it pools."""

    def forward(self, x, op):
        logits = super().forward(x, op)
        return torch.where(peak(x) > 0, -10 * logits, logits * 1.01)


class Pooling(Known):
    """The same in a step that is said to be row-wise."""

    def turned(self, x):
        return torch.where(peak(x) > 0, -10 * x, x + 0.1 * x.amin())

    def stages(self):
        return [Rows(lambda state: (self.turned(state[0]),)), *super().stages()]

    def forward(self, x, op):
        return super().forward(self.turned(x), op)


class ByPosition(Known):
    """Hears unknown nodes too if they are among the first: no injected node, as long as these come last."""

    def prepare(self, adj):
        heard = self.known(adj.n) | (torch.arange(adj.n) < tiny().num_nodes)
        return self.model.prepare(entries_kept(adj, heard[adj.pattern.indices.long()], symmetric=False))


class WholeDegrees(Known):
    """Hears known nodes only, and divides by the number of all neighbours."""

    def prepare(self, adj):
        masked = super().prepare(adj)
        whole, heard = adj.degrees.float().clamp_min(1), torch.ones(masked.pattern.entries)
        return CSR(masked.pattern, heard / whole[masked.pattern.row_ids.long()])


def injected(ends: torch.Tensor, nodes: int, value: float) -> Graph:
    """The graph with nodes of equal features, each with an edge to as many of some nodes."""
    n = tiny().num_nodes
    own = torch.arange(len(ends)) * nodes // max(len(ends), 1)
    edit = GraphEdit(n, torch.stack([ends, n + own]), EMPTY, torch.full((nodes, tiny().num_features), value))
    threat().check(tiny().graph, edit)
    return tiny().graph.apply(edit)


def largest() -> Graph:
    """One node without edges, and the largest features that the threat model allows."""
    return injected(torch.empty(0, dtype=torch.int64), 1, tiny().feature_range[1])


def spread() -> Graph:
    """Two nodes, at four targets each."""
    return injected(tiny().test_ids("full")[torch.arange(8) * 7], 2, tiny().feature_range[1])


def nothing(*args: object, **more: object) -> None:
    return None


CASES: list[tuple[str, type[Known], tuple[object, str], str, Callable[[], Graph]]] = [
    ("a: stages", Unsaid, (locality, "run_stages"), "are not its forward pass", largest),
    ("a: rows", Pooling, (locality, "_check_rows"), "sees other rows", largest),
    ("b: senders", ByPosition, (by_construction, "check_senders"), "which it does not know", spread),
    ("c: bits", WholeDegrees, (by_construction, "check_unmoved"), "moved the logits", spread),
]


@pytest.mark.parametrize(("condition", "kind", "where", "sentence", "attacked"), CASES, ids=[case[0] for case in CASES])
def test_without_a_condition_a_model_is_certified_that_an_injection_changes(
    monkeypatch, condition, kind, where, sentence, attacked
):
    monkeypatch.setattr(locality, "check_own_code", nothing)
    model = kind(trained()).eval()
    with pytest.raises(NotCertifiable, match=sentence):
        run_certificate(build_certificate("by-construction"), model, tiny(), threat())
    # the condition dropped, all others kept
    dropped = (lambda stages, x, op: model(x, op)) if where[1] == "run_stages" else nothing
    monkeypatch.setattr(*where, dropped)
    found = run_certificate(build_certificate("by-construction"), model, tiny(), threat())
    assert found.certified.all()
    before, after = (answers(model, graph) for graph in (tiny().graph, attacked()))
    assert (before != after).any()


def answers(model: Known, graph: Graph) -> torch.Tensor:
    """Predicted classes of the targets, [t], of a graph whose nodes are in reverse order, which says nothing else."""
    n, ids, view = graph.n, tiny().test_ids("full"), default_view(tiny(), 0, graph.n)
    order = torch.arange(n).flip(0)
    turned = EvaluationView(view.known[order], view.keys[order])
    return predict(model, graph.subgraph(order), turned)[n - 1 - ids].argmax(1)


def test_without_a_lead_beyond_rounding_nothing_is_certified(monkeypatch):
    """Condition (d): two classes that get the same logit, so that neither of them leads."""
    model = Known(deepcopy(trained())).eval()
    with torch.no_grad():
        for parameter in model.model.convs[-1].parameters():
            parameter[..., 1] = parameter[..., 0]
    tied = predict(model, tiny().graph, default_view(tiny(), 0))[tiny().test_ids("full")]
    tie = (tied[:, 0] == tied[:, 1]) & (tied.argmax(1) < 2)
    assert tie.any() and not tie.all()
    found = run_certificate(build_certificate("by-construction"), model, tiny(), threat())
    assert torch.equal(torch.from_numpy(found.abstained), tie)
    assert found.clean_accuracy == found.certified_accuracy
    monkeypatch.setattr(by_construction, "lead_exceeds_rounding", lambda logits: torch.ones(len(logits)) > 0)
    assert run_certificate(build_certificate("by-construction"), model, tiny(), threat()).certified.all()
