from __future__ import annotations

import numpy as np
import pytest
import torch

from grb.dataset import raw_arrays
from grb.dataset.raw_arrays import RawArrays, sparsify
from grb.errors import DataError
from grb.graph import CSR, Graph
from grb.graph.files import read_npz, write_npz
from made_collections import random_collection


def wide() -> torch.Tensor:
    x = torch.zeros(6, 200)
    x[torch.arange(6), torch.arange(6) * 7] = torch.tensor([1.0, 2.0, 1.0, -1.0, 3.0, 0.5])
    return x


def as_arrays(graph: Graph, **more) -> RawArrays:
    return RawArrays("made", graph.n, graph.adj, graph.y, x=graph.x, sizes=graph.ptr.diff().numpy(), **more)


def test_features_become_sparse_only_where_that_is_faster() -> None:
    assert isinstance(sparsify(wide()), CSR)
    assert sparsify(torch.eye(10)) is not None and isinstance(sparsify(torch.eye(10)), torch.Tensor)
    assert isinstance(sparsify(torch.ones(3, 200)), torch.Tensor)


def test_sparse_features_are_the_same_matrix() -> None:
    sparse = sparsify(wide())
    assert isinstance(sparse, CSR)
    assert torch.equal(sparse @ torch.eye(200), wide())


def test_directed_edges_loops_and_duplicates_are_repaired_and_noted() -> None:
    edges = np.array([[0, 0, 1, 2, 0], [1, 1, 0, 2, 2]])
    graph, notes = RawArrays("made", 3, edges, [0, 1, 0], x=np.ones((3, 2))).graph()
    assert graph.adj.edges().tolist() == [[0, 0], [1, 2]]
    assert notes == ["1 self-loops dropped", "1 duplicate entries merged, the largest weight kept", notes[2]]
    assert notes[2] == "1 edges without their reverse made undirected"


def test_missing_features_become_a_constant_one() -> None:
    graph, notes = RawArrays("made", 2, np.zeros((2, 0), dtype=np.int64), [0, 1]).graph()
    assert graph.x.tolist() == [[1.0], [1.0]]
    assert "no node features" in notes[0]


def test_an_edge_between_graphs_is_refused() -> None:
    with pytest.raises(DataError, match="joins two graphs"):
        RawArrays("made", 2, np.array([[0, 1], [1, 0]]), [0, 1], x=np.ones((2, 1)), sizes=[1, 1]).graph()


@pytest.mark.parametrize("sparse", [False, True])
def test_what_is_kept_comes_back(tmp_path, sparse: bool) -> None:
    graph = random_collection(graphs=5, seed=0)
    if sparse:
        graph = graph.with_features(
            CSR(sparsify(wide()).pattern, sparsify(wide()).values).rows(torch.zeros(graph.n).long())
        )
    parts = [{"train": [0, 1], "val": [2], "test": [3, 4]}, {"train": [4], "val": [3], "test": [0]}]
    splits = [{part: np.array(ids) for part, ids in split.items()} for split in parts]
    raw_arrays.save(as_arrays(graph, splits=splits, notes=["a note"]), tmp_path / "kept.npz")
    back = raw_arrays.load(tmp_path / "kept.npz", "made")
    assert back.graph()[0].fingerprint() == graph.fingerprint()
    assert back.notes == ["a note"]
    assert [{part: ids.tolist() for part, ids in split.items()} for split in back.splits] == parts


def test_an_index_out_of_range_is_refused_before_torch_sees_it(tmp_path) -> None:
    raw_arrays.save(as_arrays(random_collection(graphs=3, seed=0)), tmp_path / "kept.npz")
    arrays = read_npz(tmp_path / "kept.npz")
    arrays["indices"][0] = 10**6
    write_npz(tmp_path / "kept.npz", arrays)
    with pytest.raises(DataError, match="not a dataset that grb has cached"):
        raw_arrays.load(tmp_path / "kept.npz", "made")
