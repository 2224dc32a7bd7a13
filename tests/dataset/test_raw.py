from __future__ import annotations

import numpy as np
import pytest
import torch

from grb.dataset import raw
from grb.errors import DataError
from grb.graph import CSR
from grb.graph.files import read_npz, write_npz
from made_collections import random_collection


def wide() -> torch.Tensor:
    x = torch.zeros(6, 200)
    x[torch.arange(6), torch.arange(6) * 7] = torch.tensor([1.0, 2.0, 1.0, -1.0, 3.0, 0.5])
    return x


def test_features_become_sparse_only_where_that_is_faster() -> None:
    assert isinstance(raw.thin(wide()), CSR)
    assert raw.thin(torch.eye(10)) is not None and isinstance(raw.thin(torch.eye(10)), torch.Tensor)
    assert isinstance(raw.thin(torch.ones(3, 200)), torch.Tensor)


def test_sparse_features_are_the_same_matrix() -> None:
    thin = raw.thin(wide())
    assert isinstance(thin, CSR)
    assert torch.equal(thin @ torch.eye(200), wide())


def test_directed_edges_loops_and_duplicates_are_mended_and_noted() -> None:
    made = raw.build([[0, 0, 1, 2, 0], [1, 1, 0, 2, 2]], torch.ones(3, 2), [0, 1, 0])
    assert made.graph.adj.edges().tolist() == [[0, 0], [1, 2]]
    assert made.notes == ["1 self-loops dropped", "1 duplicate entries merged, the largest weight kept", made.notes[2]]
    assert made.notes[2] == "1 edges without their reverse made undirected"


def test_missing_features_become_a_constant_one() -> None:
    made = raw.build(np.zeros((2, 0), dtype=np.int64), None, [0, 1], nodes=2)
    assert made.graph.x.tolist() == [[1.0], [1.0]]
    assert "no node features" in made.notes[0]


def test_an_edge_between_graphs_is_refused() -> None:
    with pytest.raises(DataError, match="joins two graphs"):
        raw.build([[0, 1], [1, 0]], torch.ones(2, 1), [0, 1], sizes=[1, 1])


@pytest.mark.parametrize("sparse", [False, True])
def test_what_is_kept_comes_back(tmp_path, sparse: bool) -> None:
    graph = random_collection(graphs=5, seed=0)
    if sparse:
        graph = graph.with_features(
            CSR(raw.thin(wide()).pattern, raw.thin(wide()).values).rows(torch.zeros(graph.n).long())
        )
    splits = [(np.array([0, 1]), np.array([2]), np.array([3, 4])), (np.array([4]), np.array([3]), np.array([0]))]
    raw.save(raw.Raw(graph, splits, ["a note"]), tmp_path / "kept.npz")
    back = raw.load(tmp_path / "kept.npz")
    assert back.graph.fingerprint() == graph.fingerprint()
    assert back.notes == ["a note"]
    assert [[ids.tolist() for ids in split] for split in back.splits] == [[[0, 1], [2], [3, 4]], [[4], [3], [0]]]


def test_an_index_out_of_range_is_refused_before_torch_sees_it(tmp_path) -> None:
    raw.save(raw.Raw(random_collection(graphs=3, seed=0)), tmp_path / "kept.npz")
    arrays = read_npz(tmp_path / "kept.npz")
    arrays["indices"][0] = 10**6
    write_npz(tmp_path / "kept.npz", arrays)
    with pytest.raises(DataError, match="not a dataset that grb has kept"):
        raw.load(tmp_path / "kept.npz")
