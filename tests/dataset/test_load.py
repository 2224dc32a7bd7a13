from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from grb.dataset import load_dataset
from grb.dataset.load import from_path
from grb.errors import DataError
from grb.graph.files import write_npz
from made_collections import edge_index, random_collection


def arrays(graphs: int = 20) -> dict[str, np.ndarray]:
    graph = random_collection(graphs=graphs, seed=1, classes=2)
    return {
        "edge_index": edge_index(graph).numpy(),
        "x": graph.x.numpy(),
        "y": graph.y.numpy(),
        "ptr": graph.ptr.numpy(),
    }


def test_a_collection_from_a_file(tmp_path) -> None:
    write_npz(tmp_path / "mine.npz", arrays())
    dataset = load_dataset(str(tmp_path / "mine.npz"))
    assert (dataset.name, dataset.task, dataset.num_items) == ("mine", "graph", 20)
    assert dataset.graph.fingerprint() == random_collection(graphs=20, seed=1, classes=2).fingerprint()
    assert "folds" in dataset.scheme.description


def test_one_graph_from_a_file_with_and_without_its_split(tmp_path) -> None:
    given = {**arrays(), "y": np.arange(len(arrays()["x"])) % 3}
    del given["ptr"]
    write_npz(tmp_path / "mine.npz", given)
    dataset = from_path(tmp_path / "mine.npz")
    assert dataset.task == "node" and dataset.scheme.description.startswith("random")
    write_npz(tmp_path / "mine.npz", {**given, "train": np.arange(5), "val": np.arange(5, 8), "test": np.arange(8, 12)})
    dataset = from_path(tmp_path / "mine.npz")
    assert dataset.index_test.tolist() == [8, 9, 10, 11]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"train": np.arange(3)}, "a part of a split only"),
        ({"weights": np.arange(3)}, "unexpected array 'weights'"),
        ({"ptr": np.array([1, 2])}, "must rise from 0"),
        ({"edge_index": np.array([[0], [9999]])}, "node 9999"),
        ({"y": np.zeros(7, dtype=np.int64)}, "labels"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path, changes, sentence: str) -> None:
    write_npz(tmp_path / "mine.npz", {**arrays(), **changes})
    with pytest.raises(DataError, match=sentence):
        load_dataset(str(tmp_path / "mine.npz"))


def test_a_directory_in_the_layout_of_grb(tmp_path) -> None:
    from grb.dataset.storage import write_directory

    tiny = load_dataset("synth-tiny", feat_norm=None)
    bands = {f"index_test_{band}": tiny.test_ids(band).numpy() for band in ("easy", "medium", "hard")}
    parts = {"index_train": tiny.index_train.numpy(), "index_val": tiny.index_val.numpy(), **bands}
    write_directory(tmp_path / "mine", tiny.graph, parts)
    assert load_dataset(str(tmp_path / "mine")).graph.fingerprint() == tiny.graph.fingerprint()


def three_graphs() -> list[Data]:
    edges = torch.tensor([[0, 1], [1, 0]])
    return [Data(x=torch.ones(2, 1), edge_index=edges, y=torch.tensor([i % 2])) for i in range(20)]


def one_graph() -> Data:
    return Data(x=torch.ones(20, 1), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.arange(20) % 2)


def nothing_of_ours() -> dict[str, int]:
    return {"a": 1}


def test_what_torch_geometric_has_is_taken(monkeypatch) -> None:
    import sys
    import types

    module = types.ModuleType("brought_along")
    module.three_graphs, module.one_graph, module.nothing = three_graphs, one_graph, nothing_of_ours  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "brought_along", module)
    many, one = load_dataset("brought_along:three_graphs"), load_dataset("brought_along:one_graph")
    assert (many.name, many.task, many.num_items) == ("three_graphs", "graph", 20)
    assert (one.task, one.num_items, one.graph.ptr) == ("node", 20, None)
    with pytest.raises(DataError, match="'nothing' made a dict, but a grb Dataset, or Data of torch_geometric"):
        load_dataset("brought_along:nothing")
