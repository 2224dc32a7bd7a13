from __future__ import annotations

import statistics

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from networkx.algorithms import approximation

from grb import Graph
from grb.errors import DataError
from grb.graph import adjacency_from_edges
from grb.taxonomy import PROPERTIES, class_properties, graph_properties, properties, published_properties
from helpers import find_dataset

DIGITS = dict(zip(PROPERTIES, (2, 2, 3, 3, 3, 2, 3, 3, 2)))  # of Table D.1


def collection(graphs: list[nx.Graph], y=None) -> Graph:
    sizes = [len(graph) for graph in graphs]
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    edges = [(u + start, v + start) for graph, start in zip(graphs, ptr) for u, v in graph.edges]
    adj, _ = adjacency_from_edges(np.array(edges, dtype=np.int64).reshape(-1, 2).T, int(ptr[-1]))
    return Graph(adj, torch.zeros(adj.n, 1), None if y is None else torch.tensor(y), torch.from_numpy(ptr))


def slow(graph: nx.Graph) -> dict[str, float]:
    """The definitions, by networkx."""
    graph = _sorted(graph)
    connected = nx.is_connected(graph)
    return {
        "nodes": len(graph),
        "edges": graph.number_of_edges(),
        "density": nx.density(graph),
        "connectivity": approximation.node_connectivity(graph),
        "diameter": nx.diameter(graph) if connected else 1,
        "centrality": statistics.fmean(nx.degree_centrality(graph).values()),
        "clustering": nx.average_clustering(graph),
        "triangles": sum(nx.triangles(graph).values()) / 3,
    }


def _sorted(graph: nx.Graph) -> nx.Graph:
    # the bound on connectivity depends on the order of neighbours; ours is ascending
    result = nx.Graph()
    result.add_nodes_from(sorted(graph))
    result.add_edges_from((u, v) for u in sorted(graph) for v in sorted(graph[u]))
    return result


def check(graphs: list[nx.Graph]) -> None:
    found = graph_properties(collection(graphs))
    assert list(found) == list(PROPERTIES)
    for place, graph in enumerate(graphs):
        for name, value in slow(graph).items():
            assert found[name][place] == pytest.approx(value, abs=1e-12), (name, graph.edges)
        largest = max(map(len, nx.find_cliques(graph)))
        least = 1 if not graph.number_of_edges() else 2
        assert least <= found["max_clique"][place] <= largest


random_graphs = st.builds(
    lambda n, p, seed: nx.gnp_random_graph(n, p, seed=seed),
    st.integers(1, 14),
    st.sampled_from([0.1, 0.25, 0.5, 0.9]),
    st.integers(0, 10**6),
)


@settings(max_examples=60)
@given(st.lists(random_graphs, min_size=1, max_size=6))
def test_all_graphs_of_a_collection_as_networkx_sees_each(graphs):
    check(graphs)


def test_well_known_graphs():
    check(
        [
            nx.path_graph(1),
            nx.empty_graph(3),
            nx.complete_graph(7),
            nx.star_graph(9),
            nx.cycle_graph(130),  # more than two words of bits
            nx.petersen_graph(),
            nx.octahedral_graph(),
            nx.barbell_graph(5, 3),
            nx.disjoint_union(nx.complete_graph(4), nx.path_graph(3)),
        ]
    )


def test_a_single_graph_needs_no_boundaries():
    adj, _ = adjacency_from_edges(np.array([[0, 1, 2], [1, 2, 0]]), 4)
    found = graph_properties(Graph(adj, torch.zeros(4, 1)))
    assert {name: value.tolist() for name, value in found.items()} == {
        "nodes": [4],
        "edges": [3],
        "density": [0.5],
        "connectivity": [0],
        "diameter": [1],
        "max_clique": [3],
        "centrality": [0.5],
        "clustering": [0.75],
        "triangles": [1],
    }


@pytest.mark.parametrize("seed", range(2))
def test_work_in_small_pieces_gives_the_same(monkeypatch, seed):
    graphs = [nx.gnp_random_graph(n, 0.3, seed=seed + n) for n in (3, 70, 20, 130)]
    whole = graph_properties(collection(graphs))
    monkeypatch.setattr(properties, "CHUNK", 50)
    pieces = graph_properties(collection(graphs))
    for name in PROPERTIES:
        np.testing.assert_array_equal(whole[name], pieces[name])


def test_greedy_search_finds_a_planted_clique():
    graph = nx.gnp_random_graph(60, 0.1, seed=1)
    graph.add_edges_from((u, v) for u in range(12) for v in range(u))
    assert graph_properties(collection([graph]))["max_clique"].tolist() == [12]


def test_means_by_class_and_refusals():
    graphs = [nx.path_graph(2), nx.path_graph(4), nx.complete_graph(3)]
    found = class_properties(collection(graphs, y=[1, 1, 0]))
    assert list(found) == [0, 1]
    assert found[1]["nodes"] == 3 and found[1]["diameter"] == 2 and found[0]["triangles"] == 1
    with pytest.raises(DataError, match="one class per graph"):
        class_properties(collection(graphs))
    adj, _ = adjacency_from_edges(np.zeros((2, 0), dtype=np.int64), 2)
    with pytest.raises(DataError, match="a graph without nodes has no properties"):
        graph_properties(Graph(adj, torch.zeros(2, 1), None, torch.tensor([0, 0, 2])))


def tu_dataset(name: str) -> Graph:
    """The raw files of a TU dataset as a collection; edges that are listed twice count once."""
    folder = find_dataset(f"TUDataset/{name}/raw")
    edges = np.loadtxt(folder / f"{name}_A.txt", delimiter=",", dtype=np.int64) - 1
    owners = np.loadtxt(folder / f"{name}_graph_indicator.txt", dtype=np.int64)
    labels = np.loadtxt(folder / f"{name}_graph_labels.txt", dtype=np.int64)
    ptr = torch.from_numpy(np.concatenate([[0], np.cumsum(np.bincount(owners)[1:])]))
    adj, _ = adjacency_from_edges(edges.T, len(owners), mode="canonicalise", directed=True)
    classes = torch.from_numpy(np.unique(labels, return_inverse=True)[1])
    return Graph(adj, torch.zeros(adj.n, 1), classes, ptr)


@pytest.mark.parametrize("name", ["MUTAG", "PROTEINS", "NCI1", "SYNTHETICnew", "IMDB-BINARY"])
def test_table_d1_to_every_printed_digit(name):
    if find_dataset(f"TUDataset/{name}/raw") is None:
        pytest.skip(f"needs the raw files of {name}: no root of GRB_DATA holds TUDataset/{name}/raw")
    found = class_properties(tu_dataset(name))
    table = published_properties()
    for label in (0, 1):
        ours = {column: f"{found[label][column]:.{digits}f}" for column, digits in DIGITS.items()}
        assert ours == {column: f"{table[name, label][column]:.{digits}f}" for column, digits in DIGITS.items()}
