from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grb.errors import DataError
from grb.graph import Adjacency, Graph
from grb.perturb import Frag, FragK1, FragK2, FragK3
from perturb.graphs import collection_of, collections, few, generator, graph_of, nx_of


def cut_one_by_one(source: nx.Graph, order: list[int], k: int) -> dict[int, int]:
    """The definition: the ball of the next seed in what is left, cut off, again and again."""
    left, found = source.copy(), {}
    for seed in order:
        if seed in left:
            ball = list(nx.single_source_shortest_path_length(left, seed, cutoff=k))
            found |= dict.fromkeys(ball, seed)
            left.remove_nodes_from(ball)
    return found


@few
@given(graph=collections(), k=st.integers(0, 3), seed=st.integers(0, 99))
def test_fragments_are_the_balls_of_their_seeds(graph: Graph, k: int, seed: int) -> None:
    seeds = Frag(k).fragments(graph, generator(seed))
    result = Frag(k)(graph, generator(seed))
    found = nx_of(result)
    for fragment in nx.connected_components(found):
        (own,) = {int(seeds[node]) for node in fragment}
        assert own in fragment
        reach = nx.single_source_shortest_path_length(found, own)
        assert set(reach) == fragment and max(reach.values()) <= k
    before = {tuple(pair) for pair in graph.adj.edges().T.tolist()}
    inside = {(u, v) for u, v in before if seeds[u] == seeds[v]}
    assert {tuple(pair) for pair in result.adj.edges().T.tolist()} == inside


@pytest.mark.parametrize("k", [1, 2, 3])
def test_fragments_are_those_of_the_definition(k: int) -> None:
    graph = graph_of(nx.gnm_random_graph(60, 110, seed=1))
    seeds = Frag(k).fragments(graph, generator(5))
    # the order is only known where it mattered: seeds as they are, and every other node after its own seed
    order = _order_of(graph, generator(5))
    assert cut_one_by_one(nx_of(graph), order, k) == dict(enumerate(seeds.tolist()))


def _order_of(graph: Graph, own: torch.Generator) -> list[int]:
    from grb.perturb.base import Streams

    numbers = Streams.draw(own).uniform(np.zeros(graph.n, dtype=np.int64), np.arange(graph.n))
    return np.argsort(numbers).tolist()


@pytest.mark.parametrize(("maker", "longest"), [(FragK1, 3), (FragK2, 5), (FragK3, 7)])
def test_a_path_falls_into_pieces_of_at_most_twice_k_plus_one(maker: type[Frag], longest: int) -> None:
    found = nx_of(maker()(graph_of(nx.path_graph(400)), generator()))
    sizes = Counter(len(part) for part in nx.connected_components(found))
    assert max(sizes) == longest


def test_seeds_are_uniform() -> None:
    star = graph_of(nx.star_graph(3))
    firsts = Counter(
        # the middle as seed keeps all edges, and a leaf keeps its own
        int(FragK1()(star, generator(seed)).num_edges == 3)
        for seed in range(400)
    )
    assert 70 < firsts[1] < 130  # one node in four is the middle


def test_seeds_differ_between_graphs_unless_in_compat() -> None:
    graph = collection_of([nx.path_graph(50)] * 2)
    own = Frag(2).fragments(graph, generator())
    same = Frag(2, compat="gtaxogym").fragments(graph, generator())
    assert (own[:50] != own[50:] - 50).any()
    assert (same[:50] == same[50:] - 50).all()


def test_weights_of_the_edges_that_stay_are_kept() -> None:
    graph = graph_of(nx.path_graph(6))
    weights = torch.tensor([1.0, 1, 2, 2, 3, 3, 4, 4, 5, 5])
    result = FragK1()(Graph(Adjacency(graph.adj.pattern, weights), graph.x), generator(2))
    kept = graph.adj.has(torch.stack([result.adj.pattern.row_ids.long(), result.adj.pattern.indices.long()]))
    assert kept.all() and 0 < result.num_edges < 5
    expected = torch.minimum(result.adj.pattern.row_ids, result.adj.pattern.indices) + 1.0
    assert torch.equal(result.adj.values, expected)


def test_radius_zero_is_no_edges_and_a_negative_one_is_refused() -> None:
    assert Frag(0)(graph_of(nx.path_graph(5)), generator()).num_edges == 0
    with pytest.raises(DataError, match="k is -1"):
        Frag(-1)
