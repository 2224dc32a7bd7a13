"""Complete graphs are known by their boundaries, and everything else agrees with writing them out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from grb.errors import DataError
from grb.graph import Adjacency, CompleteAdjacency, Graph, GraphEdit, normalise
from grb.graph.operators import Complete
from grb.graph.validate import adjacency_from_csr

PTR = torch.tensor([0, 3, 4, 4, 9])


def written_out(ptr: list[int]) -> Adjacency:
    from scipy.sparse import block_diag, csr_matrix

    blocks = [np.ones((b - a, b - a)) - np.eye(b - a) for a, b in zip(ptr, ptr[1:], strict=False) if b > a]
    matrix = csr_matrix(block_diag(blocks))
    matrix.eliminate_zeros()
    return adjacency_from_csr(matrix.indptr, matrix.indices, None, matrix.shape)[0]


def test_the_pattern_is_that_of_the_dense_blocks() -> None:
    adj, plain = CompleteAdjacency(PTR), written_out(PTR.tolist())
    assert torch.equal(adj.pattern.indptr, plain.pattern.indptr)
    assert torch.equal(adj.pattern.indices, plain.pattern.indices)
    assert (adj.n, adj.num_edges) == (plain.n, plain.num_edges) == (9, 13)
    assert adj.degrees.tolist() == plain.degrees.tolist()
    assert torch.equal(adj.edges(), plain.edges())
    assert adj.neighbours(5).tolist() == [4, 6, 7, 8]


@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("powers", [(-0.5, -0.5), (-1.0, 0.0), (0.0, 0.0), (-1.0, -1.0)])
def test_operators_equal_those_of_the_written_out_graph(powers: tuple[float, float], self_loops: bool) -> None:
    left, right = powers
    x = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    op = normalise.operator(CompleteAdjacency(PTR), left=left, right=right, self_loops=self_loops)
    plain = normalise.operator(written_out(PTR.tolist()), left=left, right=right, self_loops=self_loops)
    assert isinstance(op, Complete) and not isinstance(plain, Complete)
    torch.testing.assert_close(op @ x, plain @ x)
    torch.testing.assert_close(op.T @ x, plain.T @ x)
    ids = torch.tensor([8, 3, 0])
    torch.testing.assert_close(op.rows(ids) @ x, plain.rows(ids) @ x)


def test_operators_differentiate() -> None:
    op = normalise.operator(CompleteAdjacency(PTR), left=-0.5, right=-0.5, self_loops=False)
    x = torch.rand(9, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda value: op @ value, (x,))


def test_batches_stay_complete_and_are_not_written_out() -> None:
    graph = Graph(CompleteAdjacency(PTR), torch.arange(9.0).unsqueeze(1), torch.arange(4), PTR)
    batch = graph.graphs(1, 4)
    assert isinstance(batch.adj, CompleteAdjacency) and batch.num_edges == 10
    assert "pattern" not in graph.adj.__dict__
    shuffled = graph.adj.subgraph(torch.tensor([4, 5, 6, 7, 8, 0, 1, 2]))
    assert isinstance(shuffled, CompleteAdjacency) and shuffled.ptr.tolist() == [0, 5, 8]


def test_nodes_of_one_graph_that_stand_apart_are_still_joined() -> None:
    nodes = torch.tensor([0, 4, 1, 5])
    plain = written_out(PTR.tolist()).subgraph(nodes)
    assert torch.equal(CompleteAdjacency(PTR).subgraph(nodes).edges(), plain.edges())


def test_a_fingerprint_needs_no_edges() -> None:
    large = Graph(CompleteAdjacency(torch.tensor([0, 200_000])), torch.ones(200_000, 1))
    assert large.num_edges == 19_999_900_000 and len(large.fingerprint()) == 64
    parts = Graph(CompleteAdjacency(torch.tensor([0, 100_000, 200_000])), torch.ones(200_000, 1))
    assert parts.fingerprint() != large.fingerprint()


def test_too_many_edges_are_refused_in_one_sentence() -> None:
    with pytest.raises(DataError, match=r"39999800000 entries.*grb.graph.normalise.operator"):
        CompleteAdjacency(torch.tensor([0, 200_000])).pattern


def test_boundaries_and_edits_are_checked_as_for_any_graph() -> None:
    with pytest.raises(DataError, match="joins two graphs"):
        Graph.build(CompleteAdjacency(torch.tensor([0, 4])), np.ones((4, 1)), ptr=[0, 2, 4])
    graph = Graph.build(CompleteAdjacency(torch.tensor([0, 2, 4])), np.ones((4, 1)), ptr=[0, 2, 4])[0]
    assert graph.apply(GraphEdit(n=4, drop=torch.tensor([[0], [1]]))).num_edges == 1
