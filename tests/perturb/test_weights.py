"""Weights of edges: taken away, or given to others of the same graph."""

from __future__ import annotations

import networkx as nx
import pytest
import torch

from grb.errors import DataError
from grb.graph import Adjacency, Graph
from grb.model.profiling import build_profiler, profiler
from grb.perturb import NoEdgeFtrs, RandEdgeFtrs, build_perturbation
from perturb.graphs import collection_of, generator, graph_of


def weighted(graph: Graph) -> Graph:
    """Another weight on every edge, the same in both directions."""
    pattern = graph.adj.pattern
    low, high = torch.minimum(pattern.row_ids, pattern.indices), torch.maximum(pattern.row_ids, pattern.indices)
    return Graph(Adjacency(pattern, 2.0 + low + 100.0 * high), graph.x, graph.y, graph.ptr)


@pytest.fixture(params=["single", "collection"])
def graph(request: pytest.FixtureRequest) -> Graph:
    sources = [nx.gnm_random_graph(n, 2 * n, seed=n) for n in (9, 1, 14, 0, 12)]
    return weighted(graph_of(sources[2]) if request.param == "single" else collection_of(sources))


def of_graphs(graph: Graph) -> dict[int, list[float]]:
    """Sorted weights of the edges of every graph, both directions."""
    owner = graph.owner[graph.adj.pattern.row_ids.long()]
    return {int(each): sorted(graph.adj.values[owner == each].tolist()) for each in owner.unique()}


def test_without_edge_features_all_edges_are_the_same(graph: Graph) -> None:
    result = NoEdgeFtrs()(graph)
    assert result.adj.values is None and torch.equal(result.adj.keys, graph.adj.keys) and result.x is graph.x


def test_weights_change_places_inside_their_graph(graph: Graph) -> None:
    result = RandEdgeFtrs()(graph, generator(1))
    assert torch.equal(result.adj.keys, graph.adj.keys)
    assert of_graphs(result) == of_graphs(graph) and not torch.equal(result.adj.values, graph.adj.values)
    dense = torch.zeros(graph.n, graph.n)
    dense[result.adj.pattern.row_ids.long(), result.adj.pattern.indices.long()] = result.adj.values
    assert torch.equal(dense, dense.T)
    again, other = (RandEdgeFtrs()(graph, generator(seed)).adj.values for seed in (1, 2))
    assert torch.equal(again, result.adj.values) and not torch.equal(other, result.adj.values)


@pytest.mark.parametrize("name", ["noedgeftrs", "RandEdgeFtrs"])
def test_edges_that_carry_nothing_are_said_to(name: str) -> None:
    with pytest.raises(DataError, match="no edge features to take away"):
        build_perturbation(name)(graph_of(nx.path_graph(5)), generator())


@pytest.mark.parametrize(
    ("model", "takes"),
    [("gcn", True), ("gin", True), ("chebnet", True), ("gcnii", True), ("gatedgcn", False), ("transformer", False)],
)
def test_which_models_take_weights(graph: Graph, model: str, takes: bool) -> None:
    made = build_profiler(profiler(model, collection=False, width=8), 3, 2, pool=False, generator=generator())
    with torch.no_grad():
        one, other = (made(each.x, made.prepare(each.adj)) for each in (graph, NoEdgeFtrs()(graph)))
    assert torch.allclose(one, other) is not takes
