"""Coarsening against a contraction in networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grb.errors import DataError
from grb.graph import Adjacency, Graph
from grb.perturb import Coarsen
from grb.perturb.base import Streams
from grb.perturb.coarsen import _contracted, _distinct
from grb.perturb.edges import Edges
from perturb.graphs import collections, few, generator, graph_of, nx_of


def clusters(graph: Graph, levels: int, seed: int) -> np.ndarray:
    """The clusters that a call with this seed makes."""
    edges, streams = Edges.of(graph), Streams.draw(generator(seed))
    found = np.arange(graph.n)
    owner = np.repeat(np.arange(len(edges.ptr) - 1), np.diff(edges.ptr))
    for level in range(levels):
        found = _contracted(_distinct(found[edges.ends], graph.n), owner, streams, level)[found]
    return found


@few
@given(graph=collections(), levels=st.integers(1, 3), seed=st.integers(0, 99))
def test_the_result_is_the_lifted_contraction(graph: Graph, levels: int, seed: int) -> None:
    found = clusters(graph, levels, seed)
    before = nx_of(graph)
    joined = {frozenset((found[u], found[v])) for u, v in before.edges}
    wanted = {
        (u, v) for u in range(graph.n) for v in range(u + 1, graph.n) if frozenset((found[u], found[v])) in joined
    }
    assert set(map(tuple, Coarsen(levels)(graph, generator(seed)).adj.edges().T.tolist())) == wanted


@few
@given(graph=collections(), seed=st.integers(0, 99))
def test_one_level_contracts_a_maximal_matching(graph: Graph, seed: int) -> None:
    found = clusters(graph, 1, seed)
    source = nx_of(graph)
    matching = {(int(found[v]), v) for v in range(graph.n) if found[v] != v}
    assert np.bincount(found, minlength=1).max(initial=0) <= 2
    assert nx.is_maximal_matching(source, matching)


def test_members_of_a_cluster_have_the_same_other_neighbours() -> None:
    graph = graph_of(nx.connected_watts_strogatz_graph(40, 4, 0.3, seed=1))
    found, result = clusters(graph, 1, 3), nx_of(Coarsen()(graph, generator(3)))
    pairs = [(int(found[v]), v) for v in range(graph.n) if found[v] != v]
    assert len(pairs) >= 12
    for u, v in pairs:
        assert set(result[u]) - {v} == set(result[v]) - {u}


def test_lifted_edges_have_the_mean_weight_of_what_they_stand_for() -> None:
    path = graph_of(nx.path_graph(4))
    low = torch.minimum(path.adj.pattern.row_ids, path.adj.pattern.indices)
    weighted = Graph(Adjacency(path.adj.pattern, 1.0 + low), path.x)  # weights 1, 2, 3
    seed = next(seed for seed in range(50) if clusters(weighted, 1, seed).tolist() == [0, 0, 2, 2])
    result = Coarsen()(weighted, generator(seed)).adj
    weights = {
        (int(u), int(v)): float(w) for u, v, w in zip(result.pattern.row_ids, result.pattern.indices, result.values)
    }
    # all of the complete graph: 1 inside the first pair, 3 inside the second, 2 between them
    assert {pair: weight for pair, weight in weights.items() if pair[0] < pair[1]} == {
        (0, 1): 1.0, (2, 3): 3.0, (0, 2): 2.0, (0, 3): 2.0, (1, 2): 2.0, (1, 3): 2.0,
    }  # fmt: skip


@pytest.mark.parametrize("levels", [0, 5])
def test_impossible_levels(levels: int) -> None:
    with pytest.raises(DataError, match="1 to 4 is needed"):
        Coarsen(levels)
