"""RUNG: its objective falls, far edges vanish, both variants by a dense reference."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from attack.contexts import random_graph
from grb.defense.rung import RUNG
from grb.errors import DataError
from grb.graph import Graph, adjacency_from_edges
from grb.model.base import predict


def model(**options: object) -> RUNG:
    made = RUNG(3, 4, [5], generator=torch.Generator().manual_seed(0), **options)  # type: ignore[arg-type]
    return made.double().eval().requires_grad_(False)


def sample() -> Graph:
    graph = random_graph(30, features=3, isolated=1)
    return Graph(graph.adj, graph.x.double())  # type: ignore[union-attr]


def dense_reference(first: Tensor, adj: Tensor, gamma: float, strength: float, k: int, code: bool) -> Tensor:
    roots = (adj.sum(1) + 1).rsqrt()
    f = first
    for _ in range(k):
        y = torch.cdist(f * roots[:, None], f * roots[:, None])
        y = (y + 0.01).sqrt() if code else y.clamp_min(1e-3)
        w = (1 / (2 * y) - 1 / (2 * gamma)).clamp_min(0) * adj
        q = (w * roots[:, None] ** 2).sum(1) + strength
        f = ((w * roots[:, None] * roots[None]) @ f + strength * first) / q[:, None]
    return f


@pytest.mark.parametrize("variant", ["paper", "code"])
@pytest.mark.parametrize("gamma", [0.3, 2.0])
def test_logits_are_those_of_a_dense_reference(variant: str, gamma: float) -> None:
    graph = sample()
    own = model(variant=variant, gamma=gamma)
    first = predict(model(k=0), graph)
    adj = torch.zeros(30, 30, dtype=torch.float64)
    rows, columns = graph.adj.edges()
    adj[rows, columns] = adj[columns, rows] = 1
    expected = dense_reference(first, adj, gamma, 1 / 0.9 - 1, 10, variant == "code")
    torch.testing.assert_close(predict(own, graph), expected)


def test_the_objective_never_rises() -> None:
    graph = sample()
    first = predict(model(k=0), graph)
    rows, columns = graph.adj.edges()
    roots = (graph.adj.degrees + 1).double().rsqrt()[:, None]
    gamma, strength, values = 0.8, 1 / 0.9 - 1, []
    for k in range(12):
        f = predict(model(k=k, gamma=gamma), graph)
        y = (f * roots)[rows].sub((f * roots)[columns]).norm(dim=1)
        penalty = torch.where(y < gamma, y - y.square() / (2 * gamma), gamma / 2)
        values.append(float(penalty.sum() + strength * (f - first).square().sum()))
    assert all(after <= before + 1e-9 for before, after in zip(values, values[1:], strict=False))
    assert values[-1] < values[0]


@pytest.mark.parametrize(("variant", "limit"), [("paper", 2.0), ("code", 2.0**2 - 0.01)])
def test_an_edge_counts_nothing_from_the_cut_off_on(variant: str, limit: float) -> None:
    adj, _ = adjacency_from_edges([[0], [1]], 2)
    net = RUNG(1, 1, [1], gamma=2.0, k=1, variant=variant).double().eval()  # type: ignore[arg-type]
    for linear in net.linears:
        torch.nn.init.ones_(linear.weight)
    for distance, moved in ((0.99 * limit, True), (1.01 * limit, False)):
        x = torch.tensor([[0.0], [distance * math.sqrt(2)]], dtype=torch.float64)
        logits = predict(net, Graph(adj, x))
        assert bool((logits - x).abs().max() > 1e-6) is moved


def test_parameters_are_those_of_its_perceptron_on_cora() -> None:
    assert RUNG(302, 7).num_parameters == 302 * 64 + 64 + 64 * 7 + 7 == 19847


def test_unknown_variants_and_impossible_numbers_are_refused() -> None:
    for options in ({"variant": "both"}, {"gamma": 0.0}, {"smoothing": 1.5}):
        with pytest.raises(DataError):
            RUNG(3, 2, **options)  # type: ignore[arg-type]
