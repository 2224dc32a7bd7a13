"""Features of edges stay with their edges, whatever is done to the graph."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch

from grb import load_dataset
from grb.dataset.raw_arrays import RawArrays, load, save
from grb.dataset.storage import save as save_directory
from grb.errors import DataError
from grb.graph import Graph, GraphEdit, adjacency_from_edges
from grb.graph.convert import from_pyg, to_pyg
from grb.graph.edge_features import with_edge_features
from perturb.graphs import collection_of

EDGES = np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0], [5.0, 7.0]])


def square() -> Graph:
    adj, _ = with_edge_features(adjacency_from_edges(EDGES, 4)[0], EDGES, ROWS)
    return Graph(adj, torch.eye(4))


def carried(graph: Graph) -> dict[tuple[int, int], list[float]]:
    """Features of every entry."""
    pattern = graph.adj.pattern
    assert graph.adj.features is not None and len(graph.adj.features) == pattern.entries
    return {
        (int(u), int(v)): row.tolist()
        for u, v, row in zip(pattern.row_ids, pattern.indices, graph.adj.features, strict=True)
    }


def numbered(graph: Graph) -> Graph:
    """Every edge with its smaller end and the sum of its ends as features."""
    pattern = graph.adj.pattern
    low = torch.minimum(pattern.row_ids, pattern.indices).float()
    both = torch.stack([low, (pattern.row_ids + pattern.indices).float()], dim=1)
    pairs = torch.stack([pattern.row_ids, pattern.indices])
    return Graph(with_edge_features(graph.adj, pairs, both)[0], graph.x, graph.y, graph.ptr)


def test_both_directions_of_an_edge_carry_the_same() -> None:
    assert carried(square())[(2, 1)] == carried(square())[(1, 2)] == [0.0, 1.0]
    assert (
        square().num_edge_features == 2
        and Graph(adjacency_from_edges(EDGES, 4)[0], torch.eye(4)).num_edge_features == 0
    )


def test_an_edge_listed_twice_has_the_mean_and_a_note() -> None:
    adj, _ = adjacency_from_edges(EDGES, 4)
    listed = np.concatenate([EDGES, [[1, 2], [0, 2]]], axis=1)
    made, notes = with_edge_features(adj, listed, np.concatenate([ROWS, [[3.0, 0.0], [9.0, 9.0]]]))
    assert carried(Graph(made, torch.eye(4)))[(0, 1)] == [2.0, 0.0]
    assert notes == ["1 edges listed with different features given their mean"]
    again, quiet = with_edge_features(adj, np.concatenate([EDGES, EDGES[::-1]], axis=1), np.concatenate([ROWS, ROWS]))
    assert torch.equal(again.features, square().adj.features) and not quiet


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (ROWS[:3], r"\[4, f\] is needed"),
        (np.full((4, 2), np.nan), "must be finite"),
        (np.full((4, 1), 1e300), "must be finite"),
        (np.array([["a"]] * 4), "real numbers"),
        (np.zeros((4, 0)), r"\[4, f\] is needed"),
    ],
)
def test_wrong_edge_features_are_refused(rows: np.ndarray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        with_edge_features(adjacency_from_edges(EDGES, 4)[0], EDGES, rows)


def test_edits_and_subgraphs_keep_them() -> None:
    graph = square()
    add, drop = torch.tensor([[0], [2]]), torch.tensor([[0], [1]])
    edited = carried(graph.apply(GraphEdit(4, add=add, drop=drop)))
    kept = {pair: row for pair, row in carried(graph).items() if set(pair) != {0, 1}}
    assert edited == {**kept, (0, 2): [0, 0], (2, 0): [0, 0]}
    assert carried(graph.subgraph(torch.tensor([3, 2]))) == {(0, 1): [2.0, 3.0], (1, 0): [2.0, 3.0]}


def test_selected_graphs_of_a_collection_keep_them() -> None:
    whole = numbered(collection_of([nx.gnm_random_graph(n, 2 * n, seed=n) for n in (5, 1, 8, 6)]))
    ids = torch.tensor([3, 0])
    chosen = whole.select(ids)
    shift = torch.repeat_interleave(whole.ptr[ids] - chosen.ptr[:-1], chosen.ptr.diff())
    for (u, v), row in carried(chosen).items():
        first, second = u + int(shift[u]), v + int(shift[v])
        assert row == [min(first, second), first + second]


def test_the_fingerprint_knows_them() -> None:
    graph = square()
    bare = Graph(adjacency_from_edges(EDGES, 4)[0], graph.x)
    other = Graph(with_edge_features(bare.adj, EDGES, ROWS + 1)[0], graph.x)
    assert len({each.fingerprint() for each in (graph, bare, other)}) == 3


def test_there_and_back_by_pyg_and_by_a_file(tmp_path: Path) -> None:
    graph, _ = from_pyg(to_pyg(square()))
    assert carried(graph) == carried(square())
    raw = RawArrays("square", 4, EDGES, np.array([0, 1, 0, 1]), x=np.eye(4), edge_features=ROWS)
    save(raw, tmp_path / "square.npz")
    assert carried(load(tmp_path / "square.npz", "square").graph()[0]) == carried(square())


def test_a_file_of_arrays_may_have_edge_attr(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", edge_index=EDGES, edge_attr=ROWS, x=np.eye(12), y=np.arange(12) % 2)
    assert carried(load_dataset(str(tmp_path / "mine.npz")).graph) == carried(square())
    np.savez(tmp_path / "short.npz", edge_index=EDGES, edge_attr=ROWS[:2], x=np.eye(12), y=np.arange(12) % 2)
    with pytest.raises(DataError, match="edge features have shape"):
        load_dataset(str(tmp_path / "short.npz"))


def test_the_layout_of_grb_refuses_what_it_would_lose(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", edge_index=EDGES, edge_attr=ROWS, x=np.eye(12), y=np.arange(12) % 2)
    with pytest.raises(DataError, match="has edge features"):
        save_directory(load_dataset(str(tmp_path / "mine.npz")), tmp_path / "out")
