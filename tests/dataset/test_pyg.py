from __future__ import annotations

import torch
from torch_geometric.data import Data

from grb.dataset import ogb, pyg


def tiny(label: int, **more) -> Data:
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    return Data(x=torch.full((3, 2), float(label)), edge_index=edges, y=torch.tensor([label]), **more)


def test_graphs_stand_one_behind_the_other() -> None:
    graph, notes = pyg.collection([tiny(0), tiny(1)], "made", "graph").graph()
    assert graph.ptr.tolist() == [0, 3, 6]
    assert graph.adj.edges().tolist() == [[0, 1, 3, 4], [1, 2, 4, 5]]
    assert graph.y.tolist() == [0, 1] and notes == []


def test_edge_attributes_are_dropped_and_said_so() -> None:
    graph, notes = pyg.collection(
        [tiny(0, edge_attr=torch.ones(4, 3)), tiny(1, edge_attr=torch.ones(4, 3))], "made", "graph"
    ).graph()
    assert notes == ["edge attributes (3 columns) dropped"]
    one = [tiny(0, edge_attr=torch.ones(4))]
    assert pyg.collection(one, "made", "graph").notes == ["edge attributes (1 column) dropped"]
    assert pyg.collection(one, "made", "graph", edge_features=True).graph()[0].num_edge_features == 1


def test_coordinates_of_superpixels_stand_beside_their_colours() -> None:
    items = [tiny(number, pos=torch.full((3, 2), 7.0 + number)) for number in (0, 1)]
    graph, _ = pyg.collection(items, "made", "graph").graph()
    assert graph.x[0].tolist() == [0, 0, 7, 7] and graph.x[3].tolist() == [1, 1, 8, 8]


def test_labels_of_nodes_in_a_collection() -> None:
    items = [Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.eye(2)) for _ in range(3)]
    assert pyg.collection(items, "made", "node").graph()[0].y.tolist() == torch.eye(2).repeat(3, 1).tolist()


def test_masks_with_columns_are_several_splits() -> None:
    masks = torch.eye(3, dtype=torch.bool)
    data = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1, 0]))
    data.train_mask, data.val_mask, data.test_mask = masks[:, :2], masks[:, 1:], masks[2]
    splits = pyg.single(data, "made", predefined=True).splits
    assert [[ids.tolist() for ids in parts.values()] for parts in splits] == [[[0], [1], [2]], [[1], [2], [2]]]


def test_wikics_trains_on_both_masks_and_stops_on_its_own() -> None:
    masks = torch.eye(4, dtype=torch.bool)
    data = Data(x=torch.ones(4, 1), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0, 1, 0, 1]))
    data.train_mask, data.val_mask, data.stopping_mask, data.test_mask = (mask.unsqueeze(1) for mask in masks)
    assert [ids.tolist() for ids in pyg.single(data, "made", predefined=True).splits[0].values()] == [[0, 1], [2], [3]]


def test_categories_of_atoms_become_columns_of_fixed_width() -> None:
    made = ogb.one_hot(torch.tensor([[2, 0], [0, 1]]), [3, 2])
    assert (made @ torch.eye(5)).tolist() == [[0, 0, 1, 1, 0], [1, 0, 0, 0, 1]]


def test_edges_that_raw_files_list_again_are_noted(tmp_path) -> None:
    """torch_geometric merges them without a word: half of IMDB-BINARY's list, a tenth of Actor's."""
    (tmp_path / "out1_graph_edges.txt").write_text("node_id\tnode_id\n0\t1\n1\t0\n0\t1\n0\t1\n")
    assert pyg.listed_again(tmp_path) == ["2 edges listed again in the raw files merged"]
    (tmp_path / "out1_graph_edges.txt").write_text("node_id\tnode_id\n0\t1\n1\t0\n")
    assert pyg.listed_again(tmp_path) == []
    (tmp_path / "MADE_A.txt").write_text("1, 2\n2, 1\n1, 2\n")
    assert pyg.listed_again(tmp_path) == ["1 edges listed again in the raw files merged"]
