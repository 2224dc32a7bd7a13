"""Mode complementarity, against dense distance matrices."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grb.graph import CSR, Graph, Pattern, adjacency_from_edges
from grb.taxonomy import complementarity
from made_collections import random_collection


def of(source: nx.Graph, x: np.ndarray) -> Graph:
    edges = np.array(list(source.edges)).reshape(-1, 2).T
    return Graph(adjacency_from_edges(edges, source.number_of_nodes())[0], torch.as_tensor(x, dtype=torch.float32))


def dense(source: nx.Graph, x: np.ndarray) -> float:
    """All distances at once, component by component."""
    total = 0.0
    for nodes in nx.connected_components(source):
        own = sorted(nodes)
        n = len(own)
        if n == 1:
            continue
        steps = np.array(nx.floyd_warshall_numpy(source.subgraph(own), own))
        apart = np.linalg.norm(x[own][:, None] - x[own][None], axis=2)
        scale = apart.max() if apart.max() > 0 else 1.0
        total += n * np.abs(apart / scale - steps / steps.max()).sum() / (n * n - n)
    return total / source.number_of_nodes()


def test_features_that_repeat_the_path_have_nothing_to_add() -> None:
    path = nx.path_graph(4)
    assert complementarity(of(path, np.array([[0.0], [1], [2], [3]]))) == 0
    # the two ends change places: 2 (1/3 + 1/3 + 1/3 + 1/3) / 12
    assert complementarity(of(path, np.array([[3.0], [1], [2], [0]]))) == pytest.approx(2 / 9)


@given(st.integers(2, 14), st.integers(0, 99), st.sampled_from([0.1, 0.3, 0.8]))
@settings(max_examples=60)
def test_it_is_what_dense_matrices_give(n: int, seed: int, density: float) -> None:
    source = nx.gnp_random_graph(n, density, seed=seed)
    x = np.random.default_rng(seed).integers(0, 3, (n, 2)).astype(np.float64)
    graph = of(source, x)
    assert complementarity(graph) == pytest.approx(dense(source, x), abs=1e-5)
    indptr, columns = np.arange(0, 2 * n + 1, 2), np.tile([0, 1], n)
    sparse = CSR(Pattern(torch.tensor(indptr), torch.tensor(columns), 2), torch.tensor(x.ravel(), dtype=torch.float32))
    assert complementarity(graph.with_features(sparse)) == pytest.approx(complementarity(graph), abs=1e-5)


def test_it_does_not_hang_on_the_order_of_nodes_or_the_scale_of_features() -> None:
    source = nx.gnp_random_graph(30, 0.15, seed=1)
    x = np.random.default_rng(0).normal(size=(30, 3))
    order = np.random.default_rng(1).permutation(30)
    moved = nx.relabel_nodes(source, dict(enumerate(order.tolist())))
    turned = np.empty_like(x)
    turned[order] = 7 * x
    assert complementarity(of(moved, turned)) == pytest.approx(complementarity(of(source, x)), abs=1e-6)


def test_a_collection_has_the_mean_of_its_graphs() -> None:
    graph = random_collection(graphs=6, seed=2, classes=2)
    alone = []
    for number in range(6):
        part = graph.graphs(number, number + 1)
        alone.append(complementarity(Graph(part.adj, part.x)))
    assert complementarity(graph) == pytest.approx(np.mean(alone))


def test_drawn_rows_come_near_all_rows() -> None:
    source = nx.barabasi_albert_graph(600, 2, seed=0)
    x = np.random.default_rng(0).normal(size=(600, 4))
    graph = of(source, x)
    whole = complementarity(graph, rows=600)
    assert complementarity(graph, rows=100) == pytest.approx(whole, abs=0.01)
    assert complementarity(graph, rows=100, seed=1) != complementarity(graph, rows=100)


def test_constant_features_and_lone_nodes_have_a_value() -> None:
    assert complementarity(of(nx.path_graph(3), np.ones((3, 1)))) == pytest.approx((4 * 0.5 + 2 * 1) / 6)
    assert complementarity(of(nx.empty_graph(3), np.ones((3, 1)))) == 0
