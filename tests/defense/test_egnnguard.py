from __future__ import annotations

import math

import pytest
import torch

from grb.defense.egnnguard import EGNNGuard, egnnguard_weights
from grb.errors import DataError
from grb.graph import Adjacency, Graph, adjacency_from_edges
from grb.graph.normalise import with_self_loops
from grb.graph.sparse import CSR
from grb.model.base import predict
from grb.model.similarity import cosines


@pytest.fixture
def star() -> Adjacency:
    """Node 0 with neighbours 1, 2, 3; node 4 is isolated."""
    return adjacency_from_edges([[0, 0, 0], [1, 2, 3]], 5)[0]


def weights(adj: Adjacency, h: torch.Tensor, threshold: float = 0.1) -> torch.Tensor:
    pattern, _ = with_self_loops(adj)
    return CSR(pattern, egnnguard_weights(pattern, cosines(pattern, h), threshold=threshold)[0]) @ torch.eye(adj.n)


def test_weights_worked_out_by_hand(star: Adjacency) -> None:
    h = torch.tensor([[1.0, 0.0], [1.0, 1.0], [2.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    s = 1 / math.sqrt(2)  # cos(0, 1); cos(0, 2) = 1; cos(0, 3) = 0 is cut
    total = s + 1
    raw = torch.zeros(5, 5)
    raw[0, 1] = raw[1, 0] = math.exp(s / math.sqrt(total * s))
    raw[0, 2] = raw[2, 0] = math.exp(1 / math.sqrt(total * 1))
    for node, left in enumerate([2, 1, 1, 0, 0]):
        raw[node, node] = math.exp(1 / (left + 1))
    scale = raw.sum(1).rsqrt()
    torch.testing.assert_close(weights(star, h), raw * scale[:, None] * scale[None, :])


def test_isolated_zero_and_wholly_unlike_rows_stand_alone(star: Adjacency) -> None:
    h = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [1.0, 1.0]], requires_grad=True)
    matrix = weights(star, h)
    torch.testing.assert_close(matrix, torch.eye(5))
    (gradient,) = torch.autograd.grad(matrix.sum(), h)
    assert torch.isfinite(gradient).all()


def test_a_threshold_of_zero_keeps_like_neighbours_and_one_only_parallel_ones(star: Adjacency) -> None:
    h = torch.tensor([[1.0, 0.0], [1.0, 1.0], [2.0, 0.0], [0.01, 1.0], [1.0, 1.0]])
    assert (weights(star, h, 0.0)[0] > 0).tolist() == [True, True, True, True, False]
    assert (weights(star, h, 0.9)[0] > 0).tolist() == [True, False, True, False, False]


def test_the_output_layer_is_used(star: Adjacency) -> None:
    """The published code applies its last hidden layer twice."""
    graph = Graph(star, torch.rand(5, 3, generator=torch.Generator().manual_seed(0)))
    model = EGNNGuard(3, 2, [4, 4], generator=torch.Generator().manual_seed(0)).eval()
    before = predict(model, graph)
    with torch.no_grad():
        model.convs[-1].weight.mul_(2)  # type: ignore[operator]
    torch.testing.assert_close(predict(model, graph), 2 * before)


def test_an_edge_cut_once_stays_cut(star: Adjacency) -> None:
    pattern, _ = with_self_loops(star)
    like, unlike = torch.ones(5, 2), torch.tensor([[1.0, 0], [0, 1], [1, 0], [1, 0], [1, 0]])
    _, left = egnnguard_weights(pattern, cosines(pattern, unlike))
    weights, _ = egnnguard_weights(pattern, cosines(pattern, like), left)
    assert ((CSR(pattern, weights) @ torch.eye(5))[0] > 0).tolist() == [True, False, True, True, False]


def test_bad_threshold_is_refused() -> None:
    with pytest.raises(DataError, match="threshold is -0.1"):
        EGNNGuard(3, 2, [4], threshold=-0.1)
