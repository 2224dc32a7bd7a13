from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grb.errors import DataError
from grb.graph import Adjacency, Graph
from grb.graph.validate import adjacency_from_csr
from grb.perturb import RandRewire
from perturb.graphs import collection_of, collections, few, generator, graph_of, made


def pairs(graph: Graph) -> set[tuple[int, int]]:
    return {tuple(pair) for pair in graph.adj.edges().T.tolist()}


def check_simple(adj: Adjacency) -> None:
    """Refuses self-loops, duplicates and edges without their reverse."""
    adjacency_from_csr(adj.pattern.indptr, adj.pattern.indices, adj.values, (adj.n, adj.n), mode="strict")


@few
@given(graph=collections(most=14), seed=st.integers(0, 99), share=st.sampled_from([0.0, 0.3, 0.5, 1.0]))
def test_the_graph_stays_simple_and_every_node_keeps_its_degree(graph: Graph, seed: int, share: float) -> None:
    result = RandRewire(share)(graph, generator(seed))
    check_simple(result.adj)
    assert not result.adj.crosses(graph.owner)
    assert result.adj.degrees.tolist() == graph.adj.degrees.tolist()
    assert len(pairs(graph) - pairs(result)) <= 2 * int(share * graph.num_edges / 2)


@few
@given(sizes=st.lists(st.integers(14, 40), min_size=1, max_size=3), seed=st.integers(0, 99))
def test_exactly_half_of_the_edges_of_every_graph_are_new(sizes: list[int], seed: int) -> None:
    graph = made(sizes, 0.2, seed)
    result = RandRewire()(graph, generator(seed))
    for place in range(len(sizes)):
        before, after = (pairs(one.graphs(place, place + 1)) for one in (graph, result))
        assert len(before - after) == len(after - before) == 2 * (len(before) // 4)


def test_a_share_of_a_large_graph_moves() -> None:
    graph = graph_of(nx.gnm_random_graph(3000, 12_000, seed=0), width=1)
    for share in (0.25, 0.5, 0.75):
        result = RandRewire(share)(graph, generator(1))
        assert len(pairs(graph) - pairs(result)) == int(12_000 * share)
        assert torch.equal(result.adj.degrees, graph.adj.degrees)


def test_where_no_swap_is_possible_nothing_happens() -> None:
    for source in (nx.complete_graph(8), nx.star_graph(9), nx.path_graph(2), nx.path_graph(3), nx.empty_graph(4)):
        graph = graph_of(source)
        assert pairs(RandRewire()(graph, generator())) == pairs(graph)


def test_the_only_possible_swap_of_a_dense_graph_is_found() -> None:
    """Two pairs of a complete graph are free, and one swap of the two edges across them fills both."""
    source = nx.complete_graph(9)
    source.remove_edges_from([(0, 1), (2, 3)])
    graph = graph_of(source)
    ways = {frozenset(pairs(graph) - pairs(RandRewire(0.06)(graph, generator(seed)))) for seed in range(12)}
    assert ways == {frozenset({(0, 2), (1, 3)}), frozenset({(0, 3), (1, 2)})}


def test_dense_graphs_with_many_edges_are_given_up_in_reasonable_time() -> None:
    source = nx.complete_graph(60)
    source.remove_edge(0, 1)
    graph = graph_of(source)
    assert RandRewire()(graph, generator()).adj.degrees.tolist() == graph.adj.degrees.tolist()


def test_both_ways_to_swap_occur() -> None:
    graph = graph_of(nx.Graph([(0, 1), (2, 3)]))
    results = {frozenset(pairs(RandRewire(1.0)(graph, generator(seed)))) for seed in range(20)}
    assert results == {frozenset({(0, 3), (1, 2)}), frozenset({(0, 2), (1, 3)})}


def test_every_edge_is_as_likely_to_move() -> None:
    graph = graph_of(nx.circular_ladder_graph(12))
    kept = sum(graph.adj.has(torch.tensor(sorted(pairs(graph))).T).numpy() * 0.0 for _ in range(1))
    for seed in range(300):
        result = RandRewire()(graph, generator(seed))
        kept = kept + result.adj.has(torch.tensor(sorted(pairs(graph))).T).numpy()
    assert abs(kept / 300 - 0.5).max() < 0.13


def test_weights_move_with_the_first_end() -> None:
    graph = graph_of(nx.Graph([(0, 1), (2, 3)]))
    weighted = Graph(Adjacency(graph.adj.pattern, torch.tensor([5.0, 5, 7, 7])), graph.x)
    result = RandRewire(1.0)(weighted, generator())
    assert sorted(result.adj.values.tolist()) == [5, 5, 7, 7]
    assert result.adj.values[0] == 5  # node 0 keeps the weight of its edge


def test_compat_keeps_degrees_only_if_meeting_edges_and_loops_are_counted() -> None:
    graph = graph_of(nx.complete_graph(20))
    result = RandRewire(compat="gtaxogym")(graph, generator())
    check_simple(result.adj)
    assert result.num_edges < 190
    assert result.adj.degrees.tolist() != graph.adj.degrees.tolist()
    doubled = result.adj.values[result.adj.values > 1]
    assert len(doubled) and doubled.min() == 2
    assert result.adj.values.sum() / 2 <= 190
    proper = RandRewire()(graph, generator())
    assert proper.num_edges == 190 and proper.adj.values is None


def test_compat_uses_the_same_numbers_in_every_graph() -> None:
    graph = collection_of([nx.path_graph(40)] * 2)
    for compat, same in ((None, False), ("gtaxogym", True)):
        result = RandRewire(compat=compat)(graph, generator(3))
        halves = [pairs(result.graphs(place, place + 1)) for place in (0, 1)]
        assert (halves[0] == halves[1]) is same


def test_a_graph_is_rewired_alike_whatever_stands_behind_it() -> None:
    one, other = made([20, 9], 0.3, 0), made([20, 30, 5], 0.3, 0)
    assert pairs(one.graphs(0, 1)) == pairs(other.graphs(0, 1))
    own = [pairs(RandRewire()(graph, generator(1)).graphs(0, 1)) for graph in (one, other)]
    assert own[0] == own[1]


def test_a_share_outside_its_range_is_refused() -> None:
    with pytest.raises(DataError, match=r"share is 1.5, but 0 to 1"):
        RandRewire(1.5)
    assert np.isfinite(RandRewire().share)


def test_a_rewiring_that_moves_fewer_edges_than_asked_for_says_so() -> None:
    sparse, dense = graph_of(nx.path_graph(40)), graph_of(nx.complete_graph(8))
    almost = graph_of(nx.complement(nx.path_graph(12)))
    assert RandRewire().remarks(sparse, RandRewire()(sparse, generator(0))) == []
    (full,) = RandRewire().remarks(dense, RandRewire()(dense, generator(0)))
    assert full.startswith("RandRewire moved 0 of 28 edges (0.0 %) instead of 14")
    rewired = RandRewire()(almost, generator(0))
    moved = len(pairs(rewired) - pairs(almost))
    (some,) = RandRewire().remarks(almost, rewired)
    assert f"moved {moved} of 55 edges" in some and "instead of 26" in some
