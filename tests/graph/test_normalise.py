"""Adjacency normalisations against dense formulas and torch_geometric."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from grb.graph import CSR, Adjacency, adjacency_from_edges, normalise

# a triangle with a tail, and node 5 alone
EDGES = np.array([[0, 0, 1, 2, 3], [1, 2, 2, 3, 4]])
WEIGHTS = np.array([0.5, 2.0, 1.0, 3.0, 0.25])


def graph(weighted: bool) -> Adjacency:
    return adjacency_from_edges(EDGES, 6, values=WEIGHTS if weighted else None)[0]


def dense(adj: Adjacency) -> Tensor:
    full = torch.zeros(adj.n, adj.n, dtype=torch.float64)
    values = torch.ones(adj.pattern.entries) if adj.values is None else adj.values
    full[adj.pattern.row_ids.long(), adj.pattern.indices.long()] = values.detach().double()
    return full


def written_out(op: CSR) -> Tensor:
    return (op @ torch.eye(op.shape[1])).double()


def power(degrees: Tensor, exponent: float) -> Tensor:
    return torch.where(degrees > 0, degrees.clamp(min=1e-300) ** exponent, torch.zeros_like(degrees))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize(("left", "right"), [(-0.5, -0.5), (-1.0, 0.0), (0.0, -1.0), (0.0, 0.0), (-0.3, -0.7)])
def test_scaled_equals_the_dense_formula(weighted: bool, self_loops: bool, left: float, right: float) -> None:
    adj = graph(weighted)
    full = dense(adj) + (torch.eye(6, dtype=torch.float64) if self_loops else 0)
    degrees = full.sum(1)
    expected = power(degrees, left)[:, None] * full * power(degrees, right)[None, :]
    op = normalise.scaled(adj, left=left, right=right, self_loops=self_loops)
    torch.testing.assert_close(written_out(op), expected, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(written_out(op.T), expected.T, rtol=1e-6, atol=1e-7)
    assert torch.isfinite(op.values if op.values is not None else torch.zeros(1)).all()


@given(n=st.integers(1, 10), share=st.floats(0, 1), seed=st.integers(0, 2**31), weighted=st.booleans())
def test_gcn_equals_pyg_gcn_norm(n: int, share: float, seed: int, weighted: bool) -> None:
    from torch_geometric.nn.conv.gcn_conv import gcn_norm
    from torch_geometric.utils import to_dense_adj

    draw = np.random.default_rng(seed)
    edges = np.argwhere(np.triu(draw.random((n, n)) < share, 1)).T
    weights = draw.uniform(0.1, 3, edges.shape[1]) if weighted else None
    adj = adjacency_from_edges(edges, n, values=weights)[0]
    index = torch.stack([adj.pattern.row_ids.long(), adj.pattern.indices.long()])
    index, weight = gcn_norm(index, adj.values, num_nodes=n, add_self_loops=True, dtype=torch.float32)
    expected = to_dense_adj(index, edge_attr=weight, max_num_nodes=n)[0].double()
    torch.testing.assert_close(written_out(normalise.gcn(adj)), expected, rtol=1e-5, atol=1e-6)


def test_isolated_node_keeps_its_own_features_in_gcn_and_row() -> None:
    x = torch.arange(12.0).reshape(6, 2)
    for op in (normalise.gcn(graph(False)), normalise.row(graph(True))):
        assert torch.equal((op @ x)[5], x[5])
    assert torch.equal((normalise.raw(graph(True)) @ x)[5], torch.zeros(2))


def test_row_is_the_mean_over_a_node_and_its_neighbours() -> None:
    x = torch.tensor([[6.0], [0.0], [3.0], [1.0], [5.0], [9.0]])
    assert (normalise.row(graph(False)) @ x).flatten().tolist() == pytest.approx([3, 3, 2.5, 3, 3, 9])


def test_raw_is_the_adjacency_itself() -> None:
    for weighted in (False, True):
        adj = graph(weighted)
        torch.testing.assert_close(written_out(normalise.raw(adj)), dense(adj))


@pytest.mark.parametrize("normaliser", [normalise.gcn, normalise.row, normalise.raw])
def test_graphs_without_nodes_or_edges(normaliser: object) -> None:
    assert callable(normaliser)
    for n in (0, 3):
        adj = adjacency_from_edges(np.zeros((2, 0), dtype=np.int64), n)[0]
        assert (normaliser(adj) @ torch.ones(n, 2)).shape == (n, 2)


def test_self_loops_keep_the_columns_ascending() -> None:
    pattern, values = normalise.with_self_loops(graph(True))
    assert values is not None
    for row in range(6):
        columns = pattern.indices[pattern.indptr[row] : pattern.indptr[row + 1]].tolist()
        assert columns == sorted({*columns, row}) and row in columns
    full = torch.zeros(6, 6, dtype=torch.float64)
    full[pattern.row_ids.long(), pattern.indices.long()] = values.double()
    torch.testing.assert_close(full, dense(graph(True)) + torch.eye(6, dtype=torch.float64))


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize(("left", "right"), [(-0.5, -0.5), (-1.0, 0.0)])
def test_differentiable_in_the_values_through_the_degrees(self_loops: bool, left: float, right: float) -> None:
    pattern = graph(False).pattern
    x = torch.randn(6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    weights = torch.rand(5, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) + 0.5
    upper = {(int(u), int(v)): k for k, (u, v) in enumerate(EDGES.T)}
    pairs = zip(pattern.row_ids.tolist(), pattern.indices.tolist())
    entry = torch.tensor([upper[min(u, v), max(u, v)] for u, v in pairs])

    def ours(weights: Tensor) -> Tensor:
        adj = Adjacency(pattern, weights[entry])
        return normalise.scaled(adj, left=left, right=right, self_loops=self_loops) @ x

    def reference(weights: Tensor) -> Tensor:
        full = torch.zeros(6, 6, dtype=torch.float64).index_put(
            (torch.tensor(EDGES[0]), torch.tensor(EDGES[1])), weights
        )
        full = full + full.T + (torch.eye(6, dtype=torch.float64) if self_loops else 0)
        degrees = full.sum(1)
        inverse = torch.where(degrees > 0, degrees, torch.ones(6, dtype=torch.float64))
        scaled = (inverse**left)[:, None] * full * (inverse**right)[None, :]
        return scaled @ x

    w = weights.clone().requires_grad_()
    assert torch.autograd.gradcheck(ours, w)
    assert torch.autograd.gradgradcheck(ours, w)
    torch.testing.assert_close(ours(w), reference(w))
    torch.testing.assert_close(
        torch.autograd.grad(ours(w).pow(2).sum(), w)[0], torch.autograd.grad(reference(w).pow(2).sum(), w)[0]
    )


def test_zero_degree_has_zero_gradient_and_no_nan() -> None:
    adj = graph(True)
    assert adj.values is not None
    values = adj.values.clone().requires_grad_()
    op = normalise.scaled(Adjacency(adj.pattern, values), left=-0.5, right=-0.5, self_loops=False)
    (op @ torch.ones(6, 1)).sum().backward()
    assert values.grad is not None and torch.isfinite(values.grad).all()
