from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grb.errors import DataError
from grb.graph import Adjacency, CompleteAdjacency, Graph
from grb.graph.validate import adjacency_from_csr
from grb.perturb import AddEdges, DropEdges, FullyConn, NoEdges, Sparsify
from perturb.graphs import collection_of, collections, few, generator, graph_of, made


def pairs(graph: Graph) -> set[tuple[int, int]]:
    return {tuple(pair) for pair in graph.adj.edges().T.tolist()}


def by_graph(graph: Graph) -> list[int]:
    return [graph.graphs(place, place + 1).num_edges for place in range(graph.num_graphs)]


@few
@given(graph=collections())
def test_no_edges_and_all_edges(graph: Graph) -> None:
    none, full = NoEdges()(graph), FullyConn()(graph)
    assert none.num_edges == 0 and torch.equal(none.x, graph.x) and none.y is graph.y
    assert isinstance(full.adj, CompleteAdjacency)
    owner = graph.owner
    expected = {(u, v) for u in range(graph.n) for v in range(u + 1, graph.n) if owner[u] == owner[v]}
    assert full.num_edges == len(expected) and pairs(full) == expected


def test_a_single_graph_is_joined_as_a_whole() -> None:
    assert FullyConn()(graph_of(nx.empty_graph(5))).num_edges == 10


@few
@given(graph=collections(), share=st.sampled_from([0.0, 0.3, 0.5, 1.0]), seed=st.integers(0, 99))
def test_shares_are_exact_in_every_graph(graph: Graph, share: float, seed: int) -> None:
    counts = by_graph(graph)
    fewer = DropEdges(share)(graph, generator(seed))
    assert by_graph(fewer) == [count - int(share * count + 1e-9) for count in counts]
    assert pairs(fewer) <= pairs(graph)
    sparser = Sparsify(share)(graph, generator(seed))
    assert by_graph(sparser) == [int(np.ceil(share * count - 1e-9)) for count in counts]
    assert pairs(sparser) <= pairs(graph)
    more = AddEdges(share)(graph, generator(seed))
    sizes = graph.ptr.diff().tolist()
    free = [size * (size - 1) // 2 - count for size, count in zip(sizes, counts, strict=True)]
    assert by_graph(more) == [count + min(int(share * count + 1e-9), room) for count, room in zip(counts, free)]
    assert pairs(graph) <= pairs(more) and not more.adj.crosses(graph.owner)
    for result in (fewer, sparser, more):
        adjacency_from_csr(result.adj.pattern.indptr, result.adj.pattern.indices, None, (graph.n, graph.n))


def test_new_edges_are_uniform_among_the_free_pairs() -> None:
    graph = graph_of(nx.cycle_graph(6))  # nine free pairs
    counts = dict.fromkeys(sorted(pairs(graph_of(nx.complete_graph(6))) - pairs(graph)), 0)
    for seed in range(600):
        for pair in pairs(AddEdges(0.5)(graph, generator(seed))) - pairs(graph):
            counts[pair] += 1
    assert sum(counts.values()) == 1800 and min(counts.values()) > 150 and max(counts.values()) < 250


def test_crowded_graphs_are_filled_to_the_last_pair() -> None:
    source = nx.complete_graph(30)
    source.remove_edges_from([(0, 1), (4, 9), (8, 20)])
    graph = collection_of([source, nx.path_graph(50)])
    assert by_graph(AddEdges(1.0)(graph, generator())) == [435, 98]


def test_sparsifying_keeps_the_edge_that_holds_a_graph_together() -> None:
    source = nx.lollipop_graph(20, 1)  # a pendant node behind a clique
    graph = graph_of(source)
    kept = sum((19, 20) in pairs(Sparsify(0.3)(graph, generator(seed))) for seed in range(100))
    plain = sum((19, 20) in pairs(DropEdges(0.7)(graph, generator(seed))) for seed in range(100))
    assert kept > 85 and plain < 50


def test_graphs_draw_for_themselves() -> None:
    graph = collection_of([nx.path_graph(60)] * 2)
    halves = [pairs(DropEdges()(graph, generator()).graphs(place, place + 1)) for place in (0, 1)]
    assert halves[0] != halves[1]
    one, other = made([20, 9], 0.3, 0), made([20, 30, 5], 0.3, 0)
    for perturbation in (DropEdges(), AddEdges(), Sparsify()):
        own = [pairs(perturbation(each, generator(1)).graphs(0, 1)) for each in (one, other)]
        assert own[0] == own[1]


def test_new_edges_have_weight_one() -> None:
    graph = graph_of(nx.path_graph(4))
    weighted = Graph(Adjacency(graph.adj.pattern, torch.full((6,), 3.0)), graph.x)
    assert sorted(AddEdges(0.4)(weighted, generator()).adj.values.tolist()) == [1, 1, 3, 3, 3, 3, 3, 3]
    assert DropEdges()(weighted, generator()).adj.values.tolist() == [3.0] * 4


def test_shares_outside_their_range_are_refused() -> None:
    for maker in (DropEdges, Sparsify):
        with pytest.raises(DataError, match="share is -0.1"):
            maker(-0.1)
    with pytest.raises(DataError, match="share is nan"):
        AddEdges(float("nan"))
