from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array

from grb.dataset import pathlengths
from grb.errors import DataError
from grb.graph.files import write_npz

GRAPHS = [nx.gnp_random_graph(12, 0.3, seed=seed) for seed in range(4)] + [nx.path_graph(5), nx.empty_graph(3)]
ADJ = csr_array(block_diag([nx.to_scipy_sparse_array(graph) for graph in GRAPHS], format="csr"))
OWNER = np.repeat(np.arange(len(GRAPHS)), [len(graph) for graph in GRAPHS])


def joined(values) -> list[float]:
    return [value for graph in GRAPHS for value in values(graph).values()]


def test_clustering_is_networkx_s() -> None:
    np.testing.assert_allclose(pathlengths.clustering(ADJ), joined(nx.clustering), atol=1e-12)


def test_pagerank_is_networkx_s_within_each_graph() -> None:
    theirs = joined(lambda graph: nx.pagerank(graph, tol=1e-12, max_iter=1000))
    np.testing.assert_allclose(pathlengths.pagerank(ADJ, OWNER), theirs, atol=1e-8)


def test_path_length_is_networkx_s_and_leaves_out_what_is_not_joined() -> None:
    graph = nx.connected_watts_strogatz_graph(20, 4, 0.3, seed=1)
    assert pathlengths.path_length(nx.to_scipy_sparse_array(graph)) == pytest.approx(
        nx.average_shortest_path_length(graph)
    )
    assert pathlengths.path_length(nx.to_scipy_sparse_array(nx.empty_graph(3))) == 0


def test_bins_are_equally_full_and_equal_values_share_one() -> None:
    values = np.random.default_rng(0).permutation(100).astype(float)
    bins = pathlengths.quantile_bins(values, 10)
    assert np.bincount(bins).tolist() == [10] * 10
    assert (np.diff(bins[np.argsort(values)]) >= 0).all()
    assert len(set(pathlengths.quantile_bins(np.array([1.0, 1, 1, 1, 2, 3]), 3)[:4])) == 1


def test_bins_fitted_on_some_values_serve_the_others() -> None:
    values = np.array([0.0, 1, 2, 3, -50, 50])
    assert pathlengths.quantile_bins(values, 2, fitted_on=np.arange(4)).tolist() == [0, 0, 1, 1, 0, 1]


def test_a_collection_from_arrays(tmp_path) -> None:
    graphs = [nx.connected_watts_strogatz_graph(10, 4, 0.2, seed=seed) for seed in range(20)]
    edges = [np.array(graph.edges) for graph in graphs]
    arrays = {
        "edges": np.concatenate(edges),
        "edge_ptr": np.cumsum([0, *map(len, edges)]),
        "num_nodes": np.full(20, 10),
    }
    write_npz(tmp_path / "made.npz", arrays)
    graph, _ = pathlengths.read(tmp_path / "made.npz", "made", 4).graph()
    assert graph.num_graphs == 20 and graph.num_edges == sum(map(len, edges))
    lengths = [nx.average_shortest_path_length(graph) for graph in graphs]
    np.testing.assert_array_equal(graph.y, pathlengths.quantile_bins(np.array(lengths), 4))
    arrays["edges"] = arrays["edges"] + 5
    write_npz(tmp_path / "made.npz", arrays)
    with pytest.raises(DataError, match="a node that its graph does not have"):
        pathlengths.read(tmp_path / "made.npz", "made", 4)
