"""Curvature against a search over all neighbours, and the rewiring by it."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grb.graph import Graph
from grb.perturb import CurvRewire, curvature, forman_curvature
from perturb.graphs import collections, few, generator, graph_of, nx_of


def by_hand(graph: Graph) -> dict[tuple[int, int], int]:
    source = nx_of(graph)
    return {
        (u, v): 4 - source.degree[u] - source.degree[v] + 3 * len(set(source[u]) & set(source[v]))
        for u, v in map(sorted, source.edges)
    }


@few
@given(graph=collections(), chunk=st.sampled_from([1, 7, 2**22]))
def test_curvature_is_that_of_a_search(graph: Graph, chunk: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(curvature, "CHUNK", chunk)
        found = dict(zip(map(tuple, graph.adj.edges().T.tolist()), forman_curvature(graph).tolist(), strict=True))
    assert found == by_hand(graph)


@few
@given(graph=collections(), share=st.sampled_from([0.0, 0.3, 1.0]), seed=st.integers(0, 99))
def test_edges_come_at_the_lowest_and_go_at_the_highest_curvature(graph: Graph, share: float, seed: int) -> None:
    values = by_hand(graph)
    result = CurvRewire(share)(graph, generator(seed))
    before, after = (set(map(tuple, each.adj.edges().T.tolist())) for each in (graph, result))
    assert len(before) == len(after) and not result.adj.crosses(graph.owner)
    ptr = graph.ptr.tolist()
    source = nx_of(graph)
    for first, last in zip(ptr, ptr[1:], strict=False):
        own = {edge: value for edge, value in values.items() if first <= edge[0] < last}
        gone, new = (
            {edge for edge in one - other if first <= edge[0] < last}
            for one, other in ((before, after), (after, before))
        )
        quota = int(share * len(own) + 1e-9)
        assert len(gone) == len(new) <= quota
        stayed = own.keys() - gone
        if gone and stayed:  # nobody that stayed has a higher curvature than one that went
            assert max(own[edge] for edge in stayed) <= min(own[edge] for edge in gone)
        lowest = sorted(own.values())[:quota]
        for u, v in new:  # a way round: some neighbour of one end joins it with the other by an edge of low curvature
            around = [own[tuple(sorted((middle, end)))] for middle in set(source[u]) & set(source[v]) for end in (u, v)]
            assert around and min(around) <= lowest[-1]


def test_a_barbell_gets_a_way_round_its_bridge() -> None:
    graph = graph_of(nx.barbell_graph(6, 0))
    values = by_hand(graph)
    bridge = min(values, key=values.get)
    assert bridge == (5, 6)
    result = CurvRewire(share=0.04)(graph, generator())  # one of 31 edges
    assert result.num_edges == graph.num_edges
    assert len(list(nx.bridges(nx_of(result)))) == 0 < len(list(nx.bridges(nx_of(graph))))


def test_a_complete_graph_stays() -> None:
    graph = graph_of(nx.complete_graph(9))
    assert np.array_equal(CurvRewire()(graph, generator()).adj.edges(), graph.adj.edges())
