from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grb.dataset.raw_arrays import sparsify
from grb.errors import DataError
from grb.graph import CompleteAdjacency, Graph, normalise
from grb.trainer.batches import Collection
from made_collections import random_collection


def dense(op, n: int) -> torch.Tensor:
    return op @ torch.eye(n)


@pytest.mark.parametrize("complete", [False, True])
@settings(max_examples=60)
@given(st.integers(0, 50), st.permutations(range(7)), st.integers(1, 7))
def test_a_batch_is_the_block_diagonal_graph_of_its_graphs(complete: bool, seed: int, order, count: int) -> None:
    graph = random_collection(graphs=7, seed=seed)
    if complete:
        graph = Graph(CompleteAdjacency(graph.ptr), graph.x, graph.y, graph.ptr)
    op = normalise.operator(graph.adj, left=-0.5, right=-0.5)
    ids = torch.tensor(order[:count])
    batch = Collection.of(graph, op).batch(ids)
    blocks = [graph.graphs(int(i), int(i) + 1) for i in ids]
    expected = torch.block_diag(*(dense(normalise.operator(one.adj, left=-0.5, right=-0.5), one.n) for one in blocks))
    torch.testing.assert_close(dense(batch.op, len(batch.x)), expected)
    torch.testing.assert_close(dense(batch.op.T, len(batch.x)), expected.T)
    assert torch.equal(batch.x, torch.cat([one.x for one in blocks]))
    assert batch.y.tolist() == graph.y[ids].tolist()
    assert batch.ptr.diff().tolist() == [one.n for one in blocks]


def test_labels_of_nodes_and_sparse_features_follow_their_graphs() -> None:
    graph = random_collection(graphs=3, seed=4)
    x = torch.zeros(graph.n, 100)
    x[torch.arange(graph.n), torch.arange(graph.n)] = 1.0
    graph = Graph(graph.adj, sparsify(x), torch.arange(graph.n), graph.ptr)
    batch = Collection.of(graph, normalise.raw(graph.adj)).batch(torch.tensor([2, 0]))
    nodes = [*range(graph.ptr[2], graph.ptr[3]), *range(graph.ptr[0], graph.ptr[1])]
    assert batch.y.tolist() == nodes
    assert torch.equal(batch.x @ torch.eye(100), x[nodes])


def test_what_is_no_collection_or_no_operator_is_refused() -> None:
    graph = random_collection(graphs=2, seed=0)
    with pytest.raises(DataError, match="labelled collections"):
        Collection.of(Graph(graph.adj, graph.x), None)
    with pytest.raises(DataError, match="a tuple cannot be cut into batches"):
        Collection.of(graph, ()).batch(torch.tensor([0]))
