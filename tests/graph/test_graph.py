"""Graphs and collections: subgraphs against networkx, slices, fingerprints, refusals."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from grb.errors import DataError
from grb.graph import CSR, Adjacency, Graph, Pattern, adjacency_from_edges
from grb.graph.complete import CompleteAdjacency
from grb.graph.edit import sparse_features


def random_graph(n: int, seed: int, *, weighted: bool = False) -> Graph:
    rng = np.random.default_rng(seed)
    edges = np.argwhere(np.triu(rng.random((n, n)) < rng.random(), 1)).T
    weights = rng.integers(2, 9, edges.shape[1]).astype(float) if weighted else None
    adj = adjacency_from_edges(edges, n, values=weights)[0]
    return Graph.build(adj, rng.standard_normal((n, 2)), rng.integers(0, 4, n))[0]


def as_networkx(adj: Adjacency) -> networkx.Graph:
    graph = networkx.Graph()
    graph.add_nodes_from(range(adj.n))
    values = torch.ones(adj.pattern.entries) if adj.values is None else adj.values
    for u, v, weight in zip(adj.pattern.row_ids.tolist(), adj.pattern.indices.tolist(), values.tolist()):
        graph.add_edge(u, v, weight=weight)
    return graph


@given(n=st.integers(1, 9), seed=st.integers(0, 2**31), weighted=st.booleans(), data=st.data())
def test_subgraph_equals_networkx(n: int, seed: int, weighted: bool, data: st.DataObject) -> None:
    graph = random_graph(n, seed, weighted=weighted)
    nodes = data.draw(st.lists(st.integers(0, n - 1), unique=True))
    part = graph.subgraph(torch.tensor(nodes, dtype=torch.int64))
    whole = as_networkx(graph.adj)
    renumbered = {node: place for place, node in enumerate(nodes)}
    expected = networkx.relabel_nodes(whole.subgraph(nodes), renumbered)
    assert networkx.utils.graphs_equal(as_networkx(part.adj), networkx.Graph(expected))
    assert isinstance(graph.x, Tensor) and isinstance(part.x, Tensor)
    assert torch.equal(part.x, graph.x[nodes])
    assert part.y is not None and graph.y is not None and torch.equal(part.y, graph.y[nodes])
    for row in range(part.n):
        columns = part.adj.neighbours(row)
        assert (columns.diff() > 0).all()


@given(n=st.integers(0, 8), seed=st.integers(0, 2**31))
def test_queries_equal_networkx(n: int, seed: int) -> None:
    adj = random_graph(n, seed).adj
    whole = as_networkx(adj)
    assert {(u, v) for u, v in adj.edges().T.tolist()} == {(min(e), max(e)) for e in whole.edges}
    assert adj.degrees.tolist() == [whole.degree[node] for node in range(n)]
    assert adj.num_edges == whole.number_of_edges()
    pairs = [(u, v) for u in range(-1, n + 1) for v in range(-1, n + 1)]
    seen = adj.has(torch.tensor(pairs).T)
    assert seen.tolist() == [whole.has_edge(u, v) for u, v in pairs]
    for node in range(n):
        assert adj.neighbours(node).tolist() == sorted(whole[node])


@pytest.mark.parametrize(
    ("nodes", "words"),
    [([0, 0], "twice"), ([3], "node 3"), ([-1], "node -1"), ([0.0], "integers"), ([True, False, True], "integers")],
)
def test_subgraph_of_impossible_nodes_is_refused(nodes: list[Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        random_graph(3, 0).subgraph(torch.tensor(nodes))


def collection(**options: Any) -> Graph:
    """A triangle, nothing, an edge, one node: 3 + 0 + 2 + 1 nodes."""
    adj = adjacency_from_edges(np.array([[0, 0, 1, 3], [1, 2, 2, 4]]), 6)[0]
    return Graph.build(adj, torch.arange(12.0).reshape(6, 2), ptr=[0, 3, 3, 5, 6], **options)[0]


def test_collection_knows_its_graphs() -> None:
    graph = collection()
    assert graph.num_graphs == 4
    assert graph.owner.tolist() == [0, 0, 0, 2, 2, 3]
    assert repr(graph) == "Graph(nodes=6, edges=4, features=2, graphs=4)"
    single = random_graph(3, 0)
    assert single.num_graphs == 1 and single.owner.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("first", "last", "ptr", "edges"),
    [
        (0, 1, [0, 3], [[0, 1], [0, 2], [1, 2]]),
        (0, 4, [0, 3, 3, 5, 6], [[0, 1], [0, 2], [1, 2], [3, 4]]),
        (1, 3, [0, 0, 2], [[0, 1]]),
        (1, 2, [0, 0], []),
        (3, 4, [0, 1], []),
    ],
)
def test_slices_of_a_collection(first: int, last: int, ptr: list[int], edges: list[list[int]]) -> None:
    part = collection(y=[5, 6, 7, 8]).graphs(first, last)
    assert part.ptr is not None and part.ptr.tolist() == ptr
    assert part.adj.edges().T.tolist() == edges
    assert part.y is not None and part.y.tolist() == [5, 6, 7, 8][first:last]
    start = [0, 3, 3, 5, 6][first]
    assert isinstance(part.x, Tensor)
    assert part.x.tolist() == torch.arange(12.0).reshape(6, 2)[start : start + part.n].tolist()


def test_slices_carry_labels_of_nodes_too() -> None:
    assert collection(y=[0, 1, 2, 3, 4, 5]).graphs(2, 4).y.tolist() == [3, 4, 5]  # type: ignore[union-attr]


@pytest.mark.parametrize(("first", "last"), [(-1, 2), (2, 2), (3, 2), (0, 5)])
def test_slices_that_do_not_exist_are_refused(first: int, last: int) -> None:
    with pytest.raises(DataError, match="collection has 4"):
        collection().graphs(first, last)


def test_slice_of_a_single_graph_is_the_graph() -> None:
    graph = random_graph(4, 3)
    part = graph.graphs(0, 1)
    assert part.ptr is not None and part.ptr.tolist() == [0, 4]
    assert torch.equal(part.adj.edges(), graph.adj.edges())


def test_boundaries_are_checked() -> None:
    adj = adjacency_from_edges([[0, 1], [1, 2]], 3)[0]
    with pytest.raises(DataError, match="joins two graphs"):
        Graph.build(adj, np.ones((3, 1)), ptr=[0, 2, 3])
    for ptr in ([0, 2], [1, 3], [0, 2, 1, 3]):
        with pytest.raises(DataError, match="ptr"):
            Graph.build(adj, np.ones((3, 1)), ptr=ptr)
    with pytest.raises(DataError, match="collection"):
        collection().subgraph(torch.tensor([0]))


def test_shapes_are_checked() -> None:
    adj = adjacency_from_edges([[0], [1]], 3)[0]
    with pytest.raises(DataError, match="2 rows.*3 nodes"):
        Graph(adj, torch.ones(2, 1))
    with pytest.raises(DataError, match="2 labels"):
        Graph(adj, torch.ones(3, 1), torch.zeros(2))
    with pytest.raises(DataError, match="labels have shape"):
        Graph.build(adj, np.ones((3, 1)), [0, 1])


def test_graphs_are_frozen() -> None:
    graph = random_graph(3, 0)
    with pytest.raises(FrozenInstanceError):
        graph.x = torch.ones(3, 1)  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        graph.adj.values = None  # type: ignore[misc]


def test_fingerprint_of_equal_content_is_equal() -> None:
    graph = random_graph(6, 1)
    again = random_graph(6, 1)
    assert graph.fingerprint() == again.fingerprint()
    wide = Pattern(graph.adj.pattern.indptr.long(), graph.adj.pattern.indices.long(), 6, symmetric=True)
    assert replace(graph, adj=Adjacency(wide)).fingerprint() == graph.fingerprint()
    ones = Adjacency(graph.adj.pattern, torch.ones(graph.adj.pattern.entries))
    assert replace(graph, adj=ones).fingerprint() == graph.fingerprint()
    assert isinstance(graph.x, Tensor)
    strided = torch.stack([graph.x, graph.x], dim=2)[:, :, 0]
    assert replace(graph, x=strided).fingerprint() == graph.fingerprint()


def variants(graph: Graph) -> dict[str, Graph]:
    assert isinstance(graph.x, Tensor) and graph.y is not None
    entries = graph.adj.pattern.entries
    x = graph.x.clone()
    x[2, 1] += 1e-6
    y = graph.y.clone()
    y[0] += 1
    sparse = sparse_features(graph.x)
    wider = Pattern(sparse.pattern.indptr, sparse.pattern.indices, 3)
    return {
        "as it is": graph,
        "an edge fewer": replace(graph, adj=random_graph(6, 2).adj),
        "weights": replace(graph, adj=Adjacency(graph.adj.pattern, torch.full((entries,), 2.0))),
        "a feature": replace(graph, x=x),
        "double features": replace(graph, x=graph.x.double()),
        "sparse features": replace(graph, x=sparse),
        "wider sparse features": replace(graph, x=CSR(wider, sparse.values)),
        "a label": replace(graph, y=y),
        "no labels": replace(graph, y=None),
        "a collection": replace(graph, ptr=torch.tensor([0, 6])),
        "a node more": Graph.build(
            adjacency_from_edges(graph.adj.edges().numpy(), 7)[0], torch.cat([graph.x, torch.zeros(1, 2)])
        )[0],
    }


def test_fingerprint_of_other_content_is_other() -> None:
    marks = {name: graph.fingerprint() for name, graph in variants(random_graph(6, 1)).items()}
    assert len(set(marks.values())) == len(marks)
    assert all(len(mark) == 64 for mark in marks.values())


def test_sparse_features_take_part_in_subgraphs_and_slices() -> None:
    graph = collection()
    assert isinstance(graph.x, Tensor)
    sparse = graph.with_features(sparse_features(graph.x)).graphs(2, 4)
    assert isinstance(sparse.x, CSR)
    assert torch.equal(sparse.x @ torch.eye(2), graph.x[3:])


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_separate_graph_is_equal_and_keeps_its_own_numbers(copy: bool, complete: bool, sparse: bool) -> None:
    adj = CompleteAdjacency(torch.tensor([0, 3])) if complete else adjacency_from_edges([[0, 1], [1, 2]], 3)[0]
    x = torch.arange(6.0).view(3, 2)
    graph = Graph(adj, sparse_features(x) if sparse else x, torch.tensor([0, 1, 0]), torch.tensor([0, 3]))
    keys = graph.adj.keys.clone()
    other = graph.separate(copy=copy)
    assert other.fingerprint() == graph.fingerprint() and type(other.adj) is type(graph.adj)
    assert torch.equal(other.adj.keys, keys)
    other.adj.keys.zero_()
    other.adj.pattern.row_ids.zero_()
    assert torch.equal(graph.adj.keys, keys) and graph.adj.pattern.row_ids.sum() > 0
    shared = [(graph.y, other.y), (graph.ptr, other.ptr)] + ([] if sparse else [(graph.x, other.x)])
    for own, theirs in shared:
        assert isinstance(own, Tensor) and isinstance(theirs, Tensor)
        assert (own.data_ptr() == theirs.data_ptr()) != copy
