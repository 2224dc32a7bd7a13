"""Round trips through scipy, networkx and torch_geometric."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from torch import Tensor
from torch_geometric.data import Data

from grb.errors import DataError
from grb.graph import Graph, adjacency_from_edges, convert
from grb.graph.edit import sparse_features


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 8))
    edges = np.argwhere(np.triu(rng.random((n, n)) < rng.random(), 1)).T
    weights = rng.integers(1, 5, edges.shape[1]) / 2 if draw(st.booleans()) else None
    adj = adjacency_from_edges(edges, n, values=weights)[0]
    labels = rng.integers(0, 3, n) if draw(st.booleans()) else None
    return Graph.build(adj, rng.standard_normal((n, 3)), labels)[0]


@given(graphs())
def test_networkx_round_trip(graph: Graph) -> None:
    back, notes = convert.from_networkx(convert.to_networkx(graph))
    assert notes == [] and back.fingerprint() == graph.fingerprint()


@given(graphs())
def test_pyg_round_trip(graph: Graph) -> None:
    data = convert.to_pyg(graph)
    assert data.is_undirected() and not data.has_self_loops()
    assert data.num_edges == 2 * graph.num_edges
    back, notes = convert.from_pyg(data)
    assert notes == [] and back.fingerprint() == graph.fingerprint()


@given(graphs())
def test_scipy_round_trip(graph: Graph) -> None:
    matrix = convert.to_scipy(graph.adj)
    assert (matrix != matrix.T).nnz == 0 and matrix.diagonal().sum() == 0
    back, notes = Graph.build(matrix, graph.x, graph.y)
    assert notes == [] and back.fingerprint() == graph.fingerprint()


def small(weights: list[float] | None = None) -> Graph:
    adj = adjacency_from_edges([[0, 1], [1, 2]], 4, values=weights)[0]
    return Graph.build(adj, torch.arange(8.0).reshape(4, 2), [0, 1, 0, 1])[0]


def test_scipy_matrix_has_memory_of_its_own() -> None:
    graph = small([2.0, 3.0])
    mark = graph.fingerprint()
    matrix = convert.to_scipy(graph.adj)
    matrix.data[:] = 9
    matrix.indices[:] = 0
    matrix.indptr[:] = 0
    assert graph.fingerprint() == mark


def test_networkx_graph_is_what_it_should_be() -> None:
    made = convert.to_networkx(small([2.0, 3.0]))
    assert sorted(made.edges(data="weight")) == [(0, 1, 2.0), (1, 2, 3.0)]
    assert made.nodes[2]["x"].tolist() == [4.0, 5.0] and made.nodes[3]["y"] == 1


def test_networkx_nodes_keep_their_order_whatever_their_names() -> None:
    source = networkx.Graph()
    source.add_nodes_from(["c", "a", "b"])
    source.add_edge("a", "b")
    graph, _ = convert.from_networkx(source, x=np.eye(3), y=[7, 8, 9])
    assert graph.adj.edges().tolist() == [[1], [2]]
    assert graph.y is not None and graph.y.tolist() == [7, 8, 9]


def test_networkx_without_attributes_gets_one_constant_feature() -> None:
    graph, _ = convert.from_networkx(networkx.path_graph(3))
    assert isinstance(graph.x, Tensor)
    assert graph.x.tolist() == [[1.0]] * 3 and graph.y is None
    assert convert.from_networkx(networkx.Graph())[0].n == 0


def test_networkx_loops_directions_and_doubles_are_refused_or_mended() -> None:
    looped = networkx.Graph([(0, 1), (1, 1)])
    directed = networkx.DiGraph([(0, 1), (1, 2), (2, 1)])
    double = networkx.MultiGraph([(0, 1), (0, 1)])
    for source in (looped, directed, double):
        with pytest.raises(DataError, match="canonicalise"):
            convert.from_networkx(source)
        graph, notes = convert.from_networkx(source, mode="canonicalise")
        simple = networkx.Graph(source.to_undirected())
        simple.remove_edges_from(networkx.selfloop_edges(simple))
        assert notes
        assert graph.adj.edges().T.tolist() == sorted([min(e), max(e)] for e in simple.edges)
    both = networkx.DiGraph([(0, 1), (1, 0)])
    assert convert.from_networkx(both)[1] == []


def test_pyg_needs_edges_and_sizes_that_fit() -> None:
    with pytest.raises(DataError, match="edge_index"):
        convert.from_pyg(Data(x=torch.ones(2, 1)))
    with pytest.raises(DataError, match="names node 5"):
        convert.from_pyg(Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 5], [5, 0]]), num_nodes=2))
    with pytest.raises(DataError, match="features"):
        convert.from_pyg(Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2))
    with pytest.raises(DataError, match="reverse"):
        convert.from_pyg(Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]])))


def test_pyg_column_of_labels_and_missing_features() -> None:
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([[1], [0]]), num_nodes=2)
    graph, _ = convert.from_pyg(data)
    assert graph.y is not None and graph.y.tolist() == [1, 0]
    assert isinstance(graph.x, Tensor) and graph.x.tolist() == [[1.0], [1.0]]


def test_sparse_features_become_dense_elsewhere() -> None:
    graph = small()
    assert isinstance(graph.x, Tensor)
    sparse = graph.with_features(sparse_features(graph.x))
    assert torch.equal(convert.to_pyg(sparse).x, graph.x)
    assert convert.to_networkx(sparse).nodes[3]["x"].tolist() == [6.0, 7.0]


# rows of injected nodes


def injected(values: list[float] | None = None, columns: tuple[int, ...] = (0, 2, 4, 1, 3)) -> csr_matrix:
    """Two nodes injected into three: 3 - 0, 3 - 2, 4 - 1 and the edge between them, from both of its ends."""
    return csr_matrix((values or [1.0] * 5, ([0, 0, 0, 1, 1], columns)), shape=(2, 5))


def test_rows_of_injected_nodes_become_an_edit() -> None:
    edit = convert.injection_from_rows(injected(), np.ones((2, 4)))
    assert edit.n == 3 and edit.num_new == 2 and edit.add.T.tolist() == [[0, 3], [1, 4], [2, 3], [3, 4]]


def test_injected_edges_have_no_weight() -> None:
    with pytest.raises(DataError, match=r"2 of 5 injected edges have a weight other than 1 \(largest: 1e\+10\), but"):
        convert.injection_from_rows(injected([1.0, 1e10, 1.0, -3.0, 1.0]), np.ones((2, 4)))
    with pytest.raises(DataError, match="1 of 5 injected edges have a weight other than 1"):
        convert.injection_from_rows(injected([1.0, np.nan, 1.0, 1.0, 1.0]), np.ones((2, 4)))


def test_rows_of_injected_nodes_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(DataError, match="not symmetric, or has loops"):
        convert.injection_from_rows(injected(columns=(0, 2, 4, 1, 2)), np.ones((2, 4)))
    with pytest.raises(DataError, match="not symmetric, or has loops"):
        convert.injection_from_rows(injected(columns=(0, 2, 3, 1, 4)), np.ones((2, 4)))
    with pytest.raises(DataError, match=r"adj is a csr_matrix of shape \(5, 2\), but"):
        convert.injection_from_rows(injected().T.tocsr(), np.ones((2, 4)))
