"""Every catalogued perturbation keeps the same promises."""

from __future__ import annotations

import dataclasses
from functools import cache

import networkx as nx
import pytest
import torch

from grb.catalogue import entries
from grb.graph import Adjacency, CompleteAdjacency, Graph, dense
from grb.graph.validate import adjacency_from_csr
from grb.perturb import Perturbation, build_perturbation
from perturb.graphs import collection_of, generator, graph_of, permuted

# these refuse edges without weights; tests/perturb/test_weights.py has what they promise
OF_WEIGHTS = ("noedgeftrs", "randedgeftrs")
NAMES = [
    *(name for name in entries("perturbation") if name not in OF_WEIGHTS),
    "nonodeftrs+noedges",
    "frag-k1+nodedeg",
]


@pytest.fixture(params=NAMES)
def perturbation(request: pytest.FixtureRequest) -> Perturbation:
    return build_perturbation(request.param)


@cache
def single() -> Graph:
    source = nx.connected_watts_strogatz_graph(45, 4, 0.3, seed=2)
    source.add_nodes_from(["alone", "alone too"])
    return graph_of(source)


@cache
def collection() -> Graph:
    sizes = (30, 1, 12, 0, 25, 2)
    return collection_of([nx.gnm_random_graph(n, n * (n - 1) // 2 if n < 3 else 2 * n, seed=n) for n in sizes])


@cache
def weighted() -> Graph:
    """Values that have to stay with their edges; GTaxoGym leaves attributes of the wrong length behind."""
    graph = single()
    low = torch.minimum(graph.adj.pattern.row_ids, graph.adj.pattern.indices)
    return Graph(Adjacency(graph.adj.pattern, 2.0 + low), graph.x)


@pytest.fixture(params=[single, collection, weighted], ids=["single", "collection", "weighted"])
def graph(request: pytest.FixtureRequest) -> Graph:
    return request.param()


def test_it_is_a_frozen_value_with_what_tables_and_jobs_need(perturbation: Perturbation) -> None:
    assert isinstance(perturbation, Perturbation)
    assert dataclasses.is_dataclass(perturbation) and hash(perturbation) == hash(dataclasses.replace(perturbation))
    assert perturbation == dataclasses.replace(perturbation)
    assert isinstance(perturbation.random, bool) and perturbation.version >= 1 and perturbation.title
    with pytest.raises(AttributeError):
        perturbation.share = 1.0  # type: ignore[attr-defined]


def test_it_returns_a_sound_graph_with_the_same_nodes_labels_and_boundaries(perturbation, graph: Graph) -> None:
    result = perturbation(graph, generator())
    assert result.n == graph.n and result.y is graph.y and result.ptr is graph.ptr
    assert not result.adj.crosses(graph.owner)
    x = dense(result.x)
    assert x.shape[0] == graph.n and x.dtype == torch.float32 and torch.isfinite(x).all()
    pattern = result.adj.pattern
    assert pattern.symmetric
    adjacency_from_csr(pattern.indptr, pattern.indices, result.adj.values, pattern.shape, mode="strict")


def test_it_does_not_touch_its_input(perturbation, graph: Graph) -> None:
    before = graph.fingerprint()
    result = perturbation(graph, generator())
    assert graph.fingerprint() == before
    if result.x is not graph.x and isinstance(result.x, torch.Tensor):
        result.x.mul_(0).add_(7)
        assert graph.fingerprint() == before


def test_the_generator_decides(perturbation, graph: Graph) -> None:
    torch.manual_seed(5)  # the global generator must not matter
    first, again, other = (perturbation(graph, generator(seed)).fingerprint() for seed in (1, 1, 2))
    assert first == again
    assert (first != other) is perturbation.random
    own = generator(1)
    before = own.get_state()
    perturbation(graph, own)
    assert torch.equal(own.get_state(), before) is not perturbation.random


def test_features_or_edges_change_but_not_both(perturbation, graph: Graph) -> None:
    result = perturbation(graph, generator())
    same_x = result.x is graph.x
    same_adj = result.adj is graph.adj
    if "+" not in perturbation.title:
        assert same_x or same_adj
    assert (same_x and same_adj) is (perturbation.title == "-")


@pytest.mark.parametrize("name", [name for name in NAMES if not build_perturbation(name).random])
def test_deterministic_ones_follow_the_nodes_when_these_change_places(name: str, graph: Graph) -> None:
    perturbation = build_perturbation(name)
    moved, nodes = permuted(graph, seed=4)
    one, other = perturbation(graph), perturbation(moved)
    torch.testing.assert_close(dense(one.x)[nodes], dense(other.x), rtol=0, atol=1e-4)
    assert torch.equal(one.adj.subgraph(nodes).edges(), other.adj.edges())


def test_graphs_without_nodes_edges_or_features_are_no_accident(perturbation) -> None:
    for source in (nx.empty_graph(0), nx.empty_graph(1), nx.empty_graph(7), nx.path_graph(2), nx.complete_graph(25)):
        for made in (graph_of(source), collection_of([source])):
            assert perturbation(made, generator()).n == made.n
    bare = graph_of(nx.path_graph(6), width=0)
    assert perturbation(bare, generator()).n == 6


def test_one_graph_as_a_collection_has_the_same_edges(perturbation) -> None:
    whole = single()
    many = Graph(whole.adj, whole.x, None, torch.tensor([0, whole.n]))
    one, other = perturbation(whole, generator()), perturbation(many, generator())
    if not isinstance(one.adj, CompleteAdjacency):
        assert torch.equal(one.adj.edges(), other.adj.edges())
