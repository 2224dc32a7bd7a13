from __future__ import annotations

import itertools

import numpy as np
import torch

from grb.defense.gcnsvd import GCNSVD, largest_eigenpairs
from grb.graph import Adjacency, Graph, adjacency_from_edges, normalise
from grb.model.base import predict
from grb.model.torch import GCN


def cliques(sizes: list[int]) -> Adjacency:
    starts = np.cumsum([0, *sizes])
    members = [range(start, start + size) for start, size in zip(starts, sizes, strict=False)]
    pairs = [pair for nodes in members for pair in itertools.combinations(nodes, 2)]
    return adjacency_from_edges(np.array(pairs).T, sum(sizes))[0]


def test_rank_two_of_two_cliques_is_flat_inside_and_zero_across() -> None:
    m = 5
    values, vectors = largest_eigenpairs(cliques([m, m]), 2)
    truncated = (vectors * values) @ vectors.T
    expected = torch.block_diag(torch.full((m, m), (m - 1) / m), torch.full((m, m), (m - 1) / m))
    torch.testing.assert_close(truncated, expected, rtol=1e-5, atol=1e-5)


def test_full_rank_is_the_plain_gcn_also_with_an_isolated_last_node() -> None:
    rng = np.random.default_rng(0)
    adj, _ = adjacency_from_edges(np.argwhere(np.triu(rng.random((11, 11)) < 0.3, 1)).T, 12)
    graph = Graph(adj, torch.randn(12, 3, generator=torch.Generator().manual_seed(0)))
    low = GCNSVD(3, 2, [4], rank=12, generator=torch.Generator().manual_seed(0))
    plain = GCN(3, 2, [4])
    plain.load_state_dict(low.state_dict())
    torch.testing.assert_close(predict(low, graph), predict(plain, graph), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(
        low.prepare(adj) @ torch.eye(12), normalise.gcn(adj) @ torch.eye(12), rtol=1e-4, atol=1e-4
    )


def test_lanczos_agrees_with_the_dense_decomposition_and_with_itself() -> None:
    rng = np.random.default_rng(1)
    adj, _ = adjacency_from_edges(np.argwhere(np.triu(rng.random((150, 150)) < 0.05, 1)).T, 150)
    values, vectors = largest_eigenpairs(adj, 10)
    dense = np.linalg.eigvalsh((normalise.raw(adj) @ torch.eye(150)).double().numpy())
    largest = np.sort(np.abs(dense))[::-1][:10]
    np.testing.assert_allclose(np.sort(np.abs(values.numpy()))[::-1], largest, rtol=1e-5)
    again = largest_eigenpairs(adj, 10)
    assert torch.equal(values, again[0])
    assert torch.equal(vectors, again[1])
