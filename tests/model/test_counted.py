"""Modules that count edges instead of summing weights give, reweighted, what they give on the graph without candidates."""

from __future__ import annotations

import logging

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

import grb
from grb.graph import Adjacency
from grb.model.adapters import wrap
from grb.model.base import predict, prepare
from grb.model.counted import reweighted
from grb.threat import Injection, Modification


class Counts(nn.Module):
    """A sum over neighbours, divided in one of several ways by how many there are."""

    def __init__(self, d: int, classes: int, by: str) -> None:
        super().__init__()
        self.linear, self.by = nn.Linear(d, classes), by

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        source, target = edge_index
        n = len(x)
        counts = torch.bincount(target, minlength=n).clamp(min=1).to(x.dtype)
        weight = torch.ones_like(source, dtype=x.dtype) if edge_weight is None else edge_weight
        if self.by == "both":
            weight = weight / (counts[source] * counts[target]).sqrt()
        elif self.by == "mean":
            weight = weight / counts[target]
        elif self.by == "odd":
            weight = weight / counts[target] ** 2
        h = self.linear(x)
        return torch.zeros_like(h).index_add(0, target, h[source] * weight.unsqueeze(1))


class Convolution(nn.Module):
    def __init__(self, d: int, classes: int) -> None:
        super().__init__()
        self.conv = GCNConv(d, classes)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return self.conv(x, edge_index, edge_weight)


@pytest.fixture(scope="module")
def dataset():
    return grb.load_dataset("synth-tiny")


def made(by: str, dataset) -> nn.Module:
    torch.manual_seed(0)
    d, classes = dataset.num_features, dataset.num_classes
    return Convolution(d, classes) if by == "gcn" else Counts(d, classes, by)


@pytest.mark.parametrize(
    ("by", "kind"), [("sum", "none"), ("gcn", "none"), ("both", "both"), ("mean", "columns"), ("odd", "none")]
)
@pytest.mark.parametrize("self_loops", [False, True])
def test_candidates_of_weight_zero_are_not_counted(by: str, kind: str, self_loops: bool, dataset, caplog) -> None:
    graph = dataset.graph
    model = wrap(made(by, dataset), self_loops=self_loops)
    edit = grb.run_attack("rnd", None, dataset, threat=Injection(10, 20, (-0.9, 0.9))).edit
    wide = graph.apply(edit).adj
    old = torch.stack([wide.pattern.row_ids.long(), wide.pattern.indices.long()]).max(0).values < graph.n
    x = torch.cat([graph.x, torch.ones(10, graph.num_features)])
    with caplog.at_level(logging.WARNING), torch.no_grad():
        logits = model(x, prepare(model, Adjacency(wide.pattern, old.float())))[: graph.n]
    assert model._counting == kind
    same = torch.allclose(logits, predict(model, graph), atol=1e-5)
    assert same == (by != "odd")
    assert ("takes an edge of weight zero for an edge" in caplog.text) == (by == "odd")


def test_weights_of_the_data_s_own_are_left_as_they_are_if_asked(dataset) -> None:
    graph, module = dataset.graph, made("both", dataset)
    values = torch.full((graph.adj.pattern.entries,), 0.5)
    weighted = Adjacency(graph.adj.pattern, values)
    model = wrap(module, weights="own")
    with torch.no_grad():
        edge_index = torch.stack([graph.adj.pattern.row_ids.long(), graph.adj.pattern.indices.long()])
        assert torch.equal(model(graph.x, prepare(model, weighted)), module(graph.x, edge_index, values))


def test_an_attack_on_a_module_that_counts_is_as_strong_as_on_one_that_sums(dataset) -> None:
    """The same function of 0/1 graphs, once normalised by weights and once by counts: the same edit."""
    torch.manual_seed(0)
    counts = Counts(dataset.num_features, dataset.num_classes, "both")

    class Sums(Counts):
        def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
            source, target = edge_index
            weight = torch.ones_like(source, dtype=x.dtype) if edge_weight is None else edge_weight
            sums = torch.zeros(len(x)).index_add(0, target, weight).clamp(min=1e-12)
            h = self.linear(x)
            share = weight / (sums[source] * sums[target]).sqrt()
            return torch.zeros_like(h).index_add(0, target, h[source] * share.unsqueeze(1))

    sums = Sums(dataset.num_features, dataset.num_classes, "both")
    sums.load_state_dict(counts.state_dict())
    limits = Modification(edge_ratio=0.1)
    one, other = (grb.run_attack("prbcd", wrap(module), dataset, threat=limits, n_epoch=5) for module in (counts, sums))
    left = [grb.evaluate(wrap(counts), dataset, each)["full"] for each in (None, one, other)]
    assert abs(left[1] - left[2]) < 0.05 and max(left[1:]) < left[0]


def test_gradients_through_the_weights_match_finite_differences() -> None:
    rows, columns = torch.tensor([0, 0, 1, 1, 2, 2]), torch.tensor([1, 2, 0, 2, 0, 1])
    values = torch.tensor([0.3, 0.9, 0.3, 0.5, 0.9, 0.5], dtype=torch.float64, requires_grad=True)
    for kind in ("both", "rows", "columns"):
        assert torch.autograd.gradcheck(lambda w, kind=kind: reweighted(kind, rows, columns, w, 3), (values,))


def test_the_function_of_the_weights_does_not_depend_on_who_follows_it(dataset) -> None:
    """Finite differences of plain weights are the gradient of tracked ones, in float64."""
    graph = dataset.graph
    model = wrap(made("both", dataset).double())
    x, values = graph.x.double(), torch.ones(graph.adj.pattern.entries, dtype=torch.float64)

    def loss(weights: Tensor) -> Tensor:
        return model(x, prepare(model, Adjacency(graph.adj.pattern, weights))).square().sum()

    tracked = values.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(tracked), tracked)
    for entry in (0, 100, 333):
        step = torch.zeros_like(values)
        step[entry] = 1e-6
        numeric = float((loss(values + step) - loss(values - step)).detach()) / 2e-6
        assert float(gradient[entry]) == pytest.approx(numeric, rel=1e-5, abs=1e-6)
