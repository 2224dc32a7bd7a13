from __future__ import annotations

import math

import pytest
import torch

from grb.defense.robustgcn import RobustGCN
from grb.graph import Graph, adjacency_from_edges
from grb.model.base import predict


@pytest.fixture
def graph() -> Graph:
    adj, _ = adjacency_from_edges([[0, 1, 2], [1, 2, 3]], 5)
    return Graph(adj, torch.randn(5, 3, generator=torch.Generator().manual_seed(0)))


def test_without_variance_it_is_a_gcn_on_the_means(graph: Graph) -> None:
    model = RobustGCN(3, 2, [4], generator=torch.Generator().manual_seed(0)).eval()
    for linear in model.variances:
        torch.nn.init.zeros_(linear.weight)
    half, _ = model.prepare(graph.adj)
    h = half @ torch.nn.functional.elu(model.means[0](graph.x))
    expected = half @ torch.nn.functional.elu(model.means[1](h))
    torch.testing.assert_close(predict(model, graph), expected)


def test_more_variance_means_less_weight() -> None:
    model = RobustGCN(3, 2, [4], gamma=2.0)
    mean, variance = torch.ones(1, 1), torch.tensor([[0.5]])
    attended = model._attended((mean, variance))
    assert float(attended[0]) == pytest.approx(math.exp(-1.0))
    assert float(attended[1]) == pytest.approx(0.5 * math.exp(-2.0))


def test_evaluation_is_deterministic_and_training_is_not(graph: Graph) -> None:
    model = RobustGCN(3, 2, [4], generator=torch.Generator().manual_seed(0))
    assert torch.equal(predict(model, graph), predict(model, graph))
    model.train()
    op = model.prepare(graph.adj)
    assert not torch.equal(model(graph.x, op), model(graph.x, op))


def test_the_penalty_is_zero_for_standard_normal_states() -> None:
    model = RobustGCN(3, 2, [4], beta=1.0)
    model._first = (torch.zeros(6, 4), torch.ones(6, 4))
    assert float(model.penalty()) == pytest.approx(0.0, abs=1e-6)
    model._first = (torch.full((6, 4), 2.0), torch.ones(6, 4))
    assert float(model.penalty()) == pytest.approx(6 * 2.0)


def test_a_floored_variance_bounds_what_a_node_with_large_features_can_send() -> None:
    """Without the floor a large mean of zero variance passes whole; with it z exp(-z) stays below 1/e."""
    sent = {}
    for floored in (False, True):
        model = RobustGCN(1, 2, [1], floored=floored)
        with torch.no_grad():
            model.means[0].weight.fill_(1.0)
            model.variances[0].weight.fill_(-1.0)
            for linear in (model.means[0], model.variances[0]):
                linear.bias.zero_()
        sent[floored] = float(model._attended(model._gaussian((torch.tensor([[50.0]]),), 0))[0])
    assert sent[False] == pytest.approx(50.0)
    assert sent[True] < 1e-10
