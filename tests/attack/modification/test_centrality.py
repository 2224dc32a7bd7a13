"""Centralities against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch

from attack.contexts import graph_of, random_graph
from grb.attack.modification.centrality import (
    _dependencies,
    betweenness,
    components,
    degree,
    eigenvector,
    exact_betweenness,
)
from grb.graph import CSR, Graph

GRAPHS = {
    "star": graph_of([(0, leaf) for leaf in range(1, 5)], 5),
    "path": graph_of([(i, i + 1) for i in range(9)], 10),
    "even cycle": graph_of([(i, (i + 1) % 8) for i in range(8)], 8),
    "pieces": random_graph(40, density=0.04, isolated=3, seed=1),
    "dense": random_graph(30, density=0.4, seed=2),
    "no edges": graph_of([], 4),
    "nothing": graph_of([], 0, torch.zeros(0, 3)),
}


def as_networkx(graph: Graph) -> nx.Graph:
    made = nx.Graph()
    made.add_nodes_from(range(graph.n))
    made.add_edges_from(graph.adj.edges().T.tolist())
    return made


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS.keys())
def test_betweenness_is_that_of_networkx(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = nx.betweenness_centrality(as_networkx(graph), normalized=False)
    expected = [wanted[node] for node in range(graph.n)]
    np.testing.assert_allclose(betweenness(graph).numpy(), expected, rtol=1e-5, atol=1e-5)
    monkeypatch.setattr("grb.attack.modification.centrality.BLOCK", 3 * max(graph.n, 1))
    np.testing.assert_allclose(betweenness(graph).numpy(), expected, rtol=1e-5, atol=1e-5)


def test_a_star_has_all_shortest_paths_through_its_centre() -> None:
    assert betweenness(GRAPHS["star"]).tolist() == [6, 0, 0, 0, 0]
    assert (degree(GRAPHS["star"])[GRAPHS["star"].adj.edges()].sum(0) == 5).all()


@pytest.mark.parametrize("name", GRAPHS)
def test_igraph_finds_the_same_betweenness(name: str) -> None:
    pytest.importorskip("igraph")
    torch.testing.assert_close(exact_betweenness(GRAPHS[name]), betweenness(GRAPHS[name]), rtol=1e-5, atol=1e-5)


def test_without_igraph_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "igraph", None)
    with pytest.raises(ImportError, match=r"exact betweenness needs igraph.*\[igraph\]"):
        exact_betweenness(GRAPHS["star"])


def test_a_sample_of_sources_estimates_betweenness() -> None:
    graph = random_graph(120, density=0.05, seed=3)
    exact, some = betweenness(graph), betweenness(graph, sources=60)
    assert float(torch.corrcoef(torch.stack([exact, some]))[0, 1]) > 0.95
    assert 0.7 < float(some.sum() / exact.sum()) < 1.4
    assert torch.equal(some, betweenness(graph, sources=60))
    mean = sum(betweenness(graph, sources=40, seed=seed) for seed in range(60)) / 60
    torch.testing.assert_close(mean, exact, rtol=0.25, atol=0.02 * float(exact.max()))


def test_more_paths_than_a_short_number_counts() -> None:
    """A chain of 150 diamonds has 2^150 shortest paths from end to end: too many for float32."""
    pairs = []
    for step in range(150):
        first = 3 * step
        pairs += [(first, first + 1), (first, first + 2), (first + 1, first + 3), (first + 2, first + 3)]
    graph = graph_of(pairs, 451)
    found = betweenness(graph)
    assert found.isfinite().all()
    wanted = nx.betweenness_centrality(as_networkx(graph), normalized=False)
    np.testing.assert_allclose(found.numpy(), [wanted[node] for node in range(451)], rtol=1e-6)
    one = _dependencies(CSR(graph.adj.pattern, symmetric=True), torch.tensor([0]))
    assert one.isfinite().all()


@pytest.mark.parametrize("name", ["star", "path", "even cycle", "dense"])
def test_eigenvector_centrality_of_connected_graphs_is_that_of_networkx(name: str) -> None:
    graph = GRAPHS[name]
    wanted = nx.eigenvector_centrality_numpy(as_networkx(graph))
    np.testing.assert_allclose(eigenvector(graph).numpy(), [wanted[node] for node in range(graph.n)], atol=1e-6)


def test_every_component_has_an_eigenvector_of_its_own() -> None:
    """A triangle and an edge: constant on each, lengths by their shares of the nodes."""
    graph = graph_of([(0, 1), (1, 2), (0, 2), (3, 4)], 6)
    torch.testing.assert_close(eigenvector(graph), torch.full((6,), 6**-0.5, dtype=torch.float64))
    pieces = GRAPHS["pieces"]
    vector = eigenvector(pieces)
    assert float(vector.norm()) == pytest.approx(1.0) and (vector > 0).all()
    component, sizes = components(pieces.adj)
    for number in range(len(sizes)):
        own = (component == number).nonzero().flatten()
        sub = as_networkx(pieces).subgraph(own.tolist())
        wanted = nx.eigenvector_centrality_numpy(sub) if len(own) > 2 else {int(v): len(own) ** -0.5 for v in own}
        scaled = torch.tensor([wanted[int(node)] for node in own]).double() * (len(own) / pieces.n) ** 0.5
        torch.testing.assert_close(vector[own], scaled, atol=1e-4, rtol=1e-3)
