from __future__ import annotations

import pytest
import torch

from grb.defense.gnnguard import Gate, GCNGuard, similarity_weights
from grb.graph import Adjacency, Graph, adjacency_from_edges
from grb.graph.normalise import with_self_loops
from grb.graph.sparse import CSR
from grb.model.similarity import cosines


def weights(adj: Adjacency, h: torch.Tensor) -> torch.Tensor:
    """The weights as a dense matrix."""
    pattern, _ = with_self_loops(adj)
    return CSR(pattern, similarity_weights(pattern, cosines(pattern, h))) @ torch.eye(adj.n)


@pytest.fixture
def star() -> Adjacency:
    """Node 0 with neighbours 1, 2, 3; node 4 is isolated."""
    return adjacency_from_edges([[0, 0, 0], [1, 2, 3]], 5)[0]


def test_like_neighbours_share_and_unlike_ones_are_dropped(star: Adjacency) -> None:
    h = torch.tensor([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    expected = torch.zeros(5, 5)
    expected[0, [0, 1, 2]] = 1 / 3  # two neighbours left: 1 / (2 + 1) each, and as much for itself
    expected[1, [0, 1]] = 1 / 2
    expected[2, [0, 2]] = 1 / 2
    expected[3, 3] = expected[4, 4] = 1.0
    torch.testing.assert_close(weights(star, h), expected)


def test_rows_sum_to_one_also_with_zero_rows(star: Adjacency) -> None:
    h = torch.randn(5, 4, generator=torch.Generator().manual_seed(0)).abs()
    h[2] = 0
    matrix = weights(star, h)
    torch.testing.assert_close(matrix.sum(1), torch.ones(5))
    assert float(matrix[0, 2]) == 0.0


def test_the_gate_keeps_all_edges_at_first_and_drops_what_it_learns_to(star: Adjacency) -> None:
    pattern, _ = with_self_loops(star)
    alpha = similarity_weights(pattern, cosines(pattern, torch.ones(5, 2)))
    gate = Gate().eval()
    assert torch.equal(gate(pattern, alpha), alpha)
    with torch.no_grad():
        gate.linear.bias.fill_(-10.0)
    loops = pattern.row_ids == pattern.indices
    pruned = gate(pattern, alpha)
    assert pruned[~loops].abs().sum() == 0
    assert torch.equal(pruned[loops], alpha[loops])


def test_training_reaches_the_gate(star: Adjacency) -> None:
    graph = Graph(star, torch.rand(5, 3, generator=torch.Generator().manual_seed(1)))
    model = GCNGuard(3, 2, [4], generator=torch.Generator().manual_seed(0)).train()
    model(graph.x, model.prepare(graph.adj)).square().sum().backward()
    assert model.gate.linear.weight.grad is not None
    assert model.gate.linear.weight.grad.abs().sum() > 0
    assert model.gate.linear.bias.grad is not None and model.gate.linear.bias.grad.abs().sum() > 0
