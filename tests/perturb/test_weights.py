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


def featured(graph: Graph) -> Graph:
    """Every edge with its ends, the smaller first, as features; so each perturbation shows what it did with them."""
    pattern = graph.adj.pattern
    low, high = torch.minimum(pattern.row_ids, pattern.indices), torch.maximum(pattern.row_ids, pattern.indices)
    rows = torch.stack([low, high], dim=1).float()
    return Graph(Adjacency(pattern, None, rows), graph.x, graph.y, graph.ptr)


def rows_of(graph: Graph) -> dict[tuple[int, int], tuple[float, ...]]:
    pattern = graph.adj.pattern
    assert graph.adj.features is not None and graph.adj.features.shape == (pattern.entries, 2)
    return {
        (int(u), int(v)): tuple(row.tolist())
        for u, v, row in zip(pattern.row_ids, pattern.indices, graph.adj.features, strict=True)
    }


def test_edge_features_are_taken_away_or_change_places(graph: Graph) -> None:
    given = featured(graph)
    assert NoEdgeFtrs()(given).adj.features is None
    mixed = rows_of(RandEdgeFtrs()(given, generator(1)))
    assert mixed.keys() == rows_of(given).keys() and mixed != rows_of(given)
    assert all(mixed[u, v] == mixed[v, u] for u, v in mixed)
    assert sorted(mixed.values()) == sorted(rows_of(given).values())
    owner = graph.owner
    assert all(owner[int(row[0])] == owner[u] for (u, _), row in mixed.items())


@pytest.mark.parametrize(
    "name", ["DropEdges", "Sparsify", "Frag-k1", "Frag-k2", "FiedlerFrag", "AddEdges", "CurvRewire"]
)
def test_edges_that_stay_keep_their_features(graph: Graph, name: str) -> None:
    result = build_perturbation(name)(featured(graph), generator(2))
    for (u, v), row in rows_of(result).items():
        assert row == ((min(u, v), max(u, v)) if bool(graph.adj.has(torch.tensor([[u], [v]]))) else (0.0, 0.0))


def test_rewired_edges_carry_theirs_along(graph: Graph) -> None:
    given = featured(graph)
    for name in ("RandRewire", "RandRewire@gtaxogym"):
        bare, _, compat = name.partition("@")
        moved = build_perturbation(bare, **({"compat": compat} if compat else {}))(given, generator(3))
        rows = rows_of(moved)
        assert all(rows[u, v] == rows[v, u] for u, v in rows)
        if not compat:
            assert sorted(rows.values()) == sorted(rows_of(given).values())


def test_a_coarse_graph_has_the_mean_features() -> None:
    path = featured(graph_of(nx.path_graph(3)))
    result = rows_of(build_perturbation("Coarsen")(path, generator(0)))
    assert len(result) == 6  # two of three nodes are one, so that all are neighbours
    assert set(result.values()) == {(0.0, 1.0), (1.0, 2.0)}


def test_without_or_with_all_edges_there_are_no_features(graph: Graph) -> None:
    for name in ("NoEdges", "FullyConn"):
        assert build_perturbation(name)(featured(graph), generator()).adj.features is None
