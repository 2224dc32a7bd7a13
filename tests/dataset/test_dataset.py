"""Datasets: statistics of the original grb-cora, own graphs, splits, and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import torch
from scipy import sparse as sp
from torch_geometric.data import Data

from grb.dataset import Dataset, Split, load_dataset
from grb.errors import DataError, UnknownName
from helpers import find_dataset, needs_grb_cora

N = 30


def arrays(seed: int = 0) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((N, N)) < 0.2, 1)
    return sp.csr_matrix((upper | upper.T).astype(np.float32)), rng.standard_normal((N, 4)), rng.integers(0, 3, N)


SPLIT: dict[str, Any] = {
    "train": np.arange(0, 12),
    "val": np.arange(12, 18),
    "easy": [18, 19, 20, 21],
    "medium": [22, 23, 24, 25],
    "hard": [29, 28, 27, 26],
}


def own(**options: Any) -> Dataset:
    return Dataset.from_arrays(*arrays(), **{"split": SPLIT} | options)


@needs_grb_cora
def test_grb_cora_has_the_papers_statistics() -> None:
    dataset = Dataset("grb-cora", mode="easy")
    assert (dataset.num_nodes, dataset.num_edges) == (2680, 5148)
    assert (dataset.num_features, dataset.num_classes) == (302, 7)
    assert (dataset.num_train, dataset.num_val, dataset.num_test) == (1608, 268, 268)
    assert not dataset.synthetic and dataset.notes == ()
    assert dataset.adj.shape == (2680, 2680) and dataset.adj.nnz == 2 * 5148


@needs_grb_cora
@pytest.mark.parametrize(("mode", "degree"), [("easy", 1.53), ("medium", 2.96), ("hard", 5.23), ("full", 3.24)])
def test_grb_cora_has_the_degrees_of_table_4(mode: str, degree: float) -> None:
    dataset = Dataset("grb-cora", mode=mode)
    degrees = np.asarray(dataset.adj.sum(axis=1)).ravel()
    assert degrees[dataset.index_test.numpy()].mean() == pytest.approx(degree, abs=0.005)


@needs_grb_cora
def test_grb_cora_splits_every_node_once() -> None:
    dataset = load_dataset("grb-cora", mode="full")
    parts = [dataset.train_mask, dataset.val_mask]
    parts += [dataset.with_mode(mode).test_mask for mode in ("easy", "medium", "hard")]
    assert torch.stack(parts).sum(0).tolist() == [1] * 2680
    assert torch.equal(torch.stack(parts[2:]).any(0), dataset.test_mask)


@needs_grb_cora
def test_from_npz_reads_the_same_dataset(tmp_path: Path) -> None:
    directory = find_dataset("GRB/grb-cora")
    assert directory is not None
    assert Dataset.from_npz(directory).fingerprint() == Dataset("grb-cora").fingerprint()
    assert Dataset.from_npz(directory).name == "grb-cora"
    assert Dataset("grb-cora", data_dir=directory).fingerprint() == Dataset("GRB-Cora").fingerprint()


def test_own_arrays_and_the_papers_attributes() -> None:
    dataset = own(name="mine", mode="hard")
    adj, x, y = arrays()
    assert isinstance(dataset.adj, sp.csr_matrix) and (dataset.adj != adj).nnz == 0
    np.testing.assert_allclose(dataset.features.numpy(), x, rtol=1e-6)
    assert dataset.labels.tolist() == y.tolist()
    assert dataset.index_train.tolist() == list(range(12)) and dataset.index_val.tolist() == list(range(12, 18))
    assert dataset.index_test_easy.tolist() == [18, 19, 20, 21]
    assert dataset.index_test_medium.tolist() == [22, 23, 24, 25]
    assert sorted(dataset.index_test_hard.tolist()) == [26, 27, 28, 29]
    assert dataset.test_mask.nonzero().flatten().tolist() == [26, 27, 28, 29]
    assert dataset.with_mode("full").index_test.tolist() == list(range(18, 30))
    assert dataset.num_classes == 3 and dataset.num_features == 4
    assert repr(dataset).startswith("Dataset('mine', mode='hard', nodes=30")


def test_masks_mean_the_same_as_ids() -> None:
    masks: dict[str, Any] = {}
    for place, (name, ids) in enumerate(SPLIT.items()):
        mask = np.zeros(N, dtype=bool)
        mask[ids] = True
        masks[name] = [mask, torch.from_numpy(mask), mask.tolist()][place % 3]
    assert own(split=masks).with_mode("full").test_mask.equal(own().with_mode("full").test_mask)
    assert own(split=masks).index_train.equal(own().index_train)


def test_without_a_split_the_papers_scheme_is_used() -> None:
    one, same, other = (own(split=None, seed=seed) for seed in (1, 1, 2))
    assert (one.num_train, one.num_val, one.num_test) == (18, 3, 9)
    assert one.fingerprint() == same.fingerprint() != other.fingerprint()
    assert any("seed 1" in note for note in one.notes)


REFUSED_SPLITS: dict[str, tuple[dict[str, Any], str]] = {
    "train and test overlap": ({"train": [0, 1], "test": [1, 2]}, "overlap"),
    "train and validation overlap": ({"train": [0, 1], "val": [1], "test": [2]}, "overlap"),
    "two difficulties overlap": ({"train": [0], "easy": [1, 2], "hard": [2]}, "overlap"),
    "masks that overlap": ({"train": np.ones(N, bool), "test": np.ones(N, bool)}, "overlap"),
    "empty training set": ({"train": [], "test": [1]}, "training set is empty"),
    "empty training mask": ({"train": np.zeros(N, bool), "test": [1]}, "training set is empty"),
    "no training set": ({"test": [1]}, "needs 'train'"),
    "node that does not exist": ({"train": [0, N]}, f"names node {N}"),
    "negative node": ({"train": [0, -1]}, "names node -1"),
    "node twice": ({"train": [0, 0]}, "twice"),
    "float ids": ({"train": [0.0, 1.0]}, "integers"),
    "mask of another length": ({"train": np.ones(N - 1, bool)}, "mask 'train'"),
    "difficulty outside of the full set": ({"train": [0], "easy": [1], "full": [2]}, "not in the full"),
    "test and full": ({"train": [0], "test": [1], "full": [2]}, "two names"),
}


@pytest.mark.parametrize("fault", REFUSED_SPLITS)
def test_impossible_splits_are_refused(fault: str) -> None:
    split, words = REFUSED_SPLITS[fault]
    with pytest.raises(DataError, match=words):
        own(split=split)


def test_unknown_parts_and_difficulties_are_named() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'easy'"):
        own(split={"train": [0], "eazy": [1]})
    with pytest.raises(UnknownName, match="Did you mean 'medium'"):
        own(mode="mediun")
    with pytest.raises(UnknownName):
        Split.build([0], [], {"expert": [1]}, 3)
    only = own(split={"train": [0], "test": [1]})
    with pytest.raises(DataError, match="no easy test set; it has full"):
        only.index_test_easy


def test_hidden_labels_are_refused_where_they_are_needed() -> None:
    adj, x, y = arrays()
    y[5] = -1
    with pytest.raises(DataError, match="node 5 is in the split"):
        Dataset.from_arrays(adj, x, y, split=SPLIT)
    rest = SPLIT | {"train": [0, 1, 2]}
    assert Dataset.from_arrays(adj, x, y, split=rest).num_classes == 3
    with pytest.raises(DataError, match="hidden"):
        Dataset.from_arrays(adj, x, np.full(N, -1), split=SPLIT)


def test_labels_are_needed_and_have_one_row_per_node() -> None:
    adj, x, y = arrays()
    with pytest.raises(DataError, match="needs labels"):
        Dataset.from_arrays(adj, x, None)
    with pytest.raises(DataError, match="labels have shape"):
        Dataset.from_arrays(adj, x, y[:-1])


def test_several_labels_per_node() -> None:
    adj, x, _ = arrays()
    labels = np.random.default_rng(0).integers(0, 2, (N, 5))
    dataset = Dataset.from_arrays(adj, x, labels, split=SPLIT)
    assert dataset.num_classes == 5 and dataset.labels.dtype == torch.float32


def test_careless_graphs_are_mended_with_a_note_or_refused() -> None:
    adj, x, y = arrays()
    directed = sp.triu(adj).tolil()
    directed[3, 3] = 1
    dataset = Dataset.from_arrays(directed, x, y, split=SPLIT)
    assert (dataset.adj != adj).nnz == 0
    assert any("self-loops" in note for note in dataset.notes)
    assert any("undirected" in note for note in dataset.notes)
    with pytest.raises(DataError, match="self-loops"):
        Dataset.from_arrays(directed, x, y, split=SPLIT, strictness="strict")


def test_datasets_never_change() -> None:
    dataset = own()
    for name in ("mode", "graph", "split", "anything"):
        with pytest.raises(AttributeError, match="never changes"):
            setattr(dataset, name, None)
    with pytest.raises(AttributeError):
        dataset.features = torch.zeros(1)  # type: ignore[misc]
    adj, x, y = arrays()
    made = Dataset.from_arrays(adj, x, y, split=SPLIT)
    mark = made.fingerprint()
    adj.data[:] = 5
    adj.indices[:] = 0
    x[:] = 0
    y[:] = 0
    made.adj.data[:] = 7
    assert made.fingerprint() == mark
    assert made.with_mode("easy").fingerprint() == mark and made.mode == "full"


def test_fingerprint_follows_content_and_split() -> None:
    marks = {own().fingerprint(), own(feat_norm="tanh").fingerprint(), own(split=None).fingerprint()}
    moved = SPLIT | {"train": np.arange(0, 11), "val": np.arange(11, 18)}
    marks.add(own(split=moved).fingerprint())
    assert len(marks) == 4
    assert own(name="other").fingerprint() == own().fingerprint()


def test_features_are_normalised_only_on_request() -> None:
    assert own().feature_scale.kind == "none"
    low, high = own(feat_norm="linear").feature_range
    assert (low, high) == pytest.approx((-1, 1))
    with pytest.raises(UnknownName):
        own(feat_norm="arcsin")


def test_from_pyg_with_our_split_or_its_own() -> None:
    adj, x, y = arrays()
    coo = adj.tocoo()
    data = Data(
        x=torch.from_numpy(x).float(),
        edge_index=torch.from_numpy(np.stack([coo.row, coo.col])).long(),
        y=torch.from_numpy(y),
    )
    with pytest.warns(UserWarning, match="no train_mask and test_mask, so that a split was drawn with seed 3"):
        drawn = Dataset.from_pyg(data, seed=3)
    assert drawn.fingerprint() == own(split=None, seed=3).fingerprint()
    with pytest.raises(DataError, match="own_split"):
        Dataset.from_pyg(data, own_split=True)
    for part, ids in (("train", range(12)), ("val", range(12, 18)), ("test", range(18, 30))):
        mask = torch.zeros(N, dtype=torch.bool)
        mask[list(ids)] = True
        data[f"{part}_mask"] = mask
    for made in (Dataset.from_pyg(data), Dataset.from_pyg(data, own_split=True)):
        assert made.index_train.tolist() == list(range(12)) and made.index_test.tolist() == list(range(18, 30))
    assert Dataset.from_pyg(data, own_split=False, seed=3).fingerprint() == drawn.fingerprint()
    columns = torch.stack([data.train_mask, data.train_mask.roll(1)], dim=1)
    columns[:, 1] &= ~(data.val_mask | data.test_mask)
    data.train_mask = columns
    several = Dataset.from_pyg(data)
    assert several.with_split(1).index_train.tolist() == list(range(1, 12))
    del data.test_mask
    with pytest.raises(DataError, match="no test_mask; give train_mask and test_mask, or own_split=False"):
        Dataset.from_pyg(data)


def test_from_networkx() -> None:
    adj, x, y = arrays()
    source = networkx.from_scipy_sparse_array(adj)
    made = Dataset.from_networkx(source, x, y, seed=3)
    assert made.fingerprint() == own(split=None, seed=3).fingerprint()
    for node in source:
        source.nodes[node].update(x=x[node], y=int(y[node]))
    assert Dataset.from_networkx(source, seed=3).fingerprint() == made.fingerprint()


def write_directory(path: Path, **changes: dict[str, np.ndarray] | None) -> Path:
    """The npz layout of GRB; a change replaces arrays of a file, None leaves the file out."""
    adj, x, y = arrays()
    files: dict[str, dict[str, np.ndarray]] = {
        "adj": {"indptr": adj.indptr, "indices": adj.indices, "data": adj.data, "shape": np.array(adj.shape)},
        "features": {"data": x},
        "labels": {"data": y},
        "index": {
            "index_train": SPLIT["train"],
            "index_val": SPLIT["val"],
            **{f"index_test_{band}": np.array(SPLIT[band]) for band in ("easy", "medium", "hard")},
            "index_test": np.arange(18, 30),
        },
    }
    path.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        change = changes.get(name, {})
        if change is not None:
            np.savez(path / f"{name}.npz", **content | change)
    return path


def test_own_directory_in_the_layout_of_grb(tmp_path: Path) -> None:
    dataset = Dataset.from_npz(write_directory(tmp_path / "mine"), feat_norm=None)
    assert dataset.name == "mine" and dataset.fingerprint() == own().fingerprint()
    assert dataset.index_test.tolist() == list(range(18, 30))


def nan_feature() -> np.ndarray:
    x = arrays()[1]
    x[3, 2] = np.nan
    return x


DAMAGE: dict[str, tuple[dict[str, Any], str]] = {
    "NaN feature": ({"features": {"data": nan_feature()}}, "feature 2 of node 3 is nan"),
    "fewer features than nodes": ({"features": {"data": np.ones((N - 1, 4))}}, r"\[29, 4\]"),
    "fewer labels than nodes": ({"labels": {"data": np.zeros(N - 1, int)}}, "labels have shape"),
    "float labels": ({"labels": {"data": np.full(N, 0.5)}}, "integers"),
    "asymmetric adjacency": (
        {"adj": {"indptr": np.r_[0, np.ones(N, int)], "indices": np.array([1]), "data": np.ones(1)}},
        "without their reverse",
    ),
    "index out of range": (
        {"adj": {"indptr": np.r_[0, np.ones(N, int)], "indices": np.array([10**6]), "data": np.ones(1)}},
        "names node 1000000",
    ),
    "shape that does not fit": ({"adj": {"shape": np.array([N + 1, N + 1])}}, "indptr has 31"),
    "no adjacency": ({"adj": None}, "no file"),
    "no features": ({"features": None}, "no file"),
    "no index": ({"index": None}, "no file"),
    "ids out of range": ({"index": {"index_train": np.array([0, N])}}, f"names node {N}"),
    "overlapping sets": ({"index": {"index_val": np.arange(5, 9)}}, "overlap"),
    "object labels": ({"labels": {"data": np.array([None] * N, dtype=object)}}, "Python objects"),
}


@pytest.mark.parametrize("fault", DAMAGE)
def test_damaged_directories_are_refused(fault: str, tmp_path: Path) -> None:
    changes, words = DAMAGE[fault]
    with pytest.raises(DataError, match=words):
        Dataset.from_npz(write_directory(tmp_path / "mine", **changes))


def test_file_without_its_array_is_refused(tmp_path: Path) -> None:
    directory = write_directory(tmp_path / "mine")
    np.savez(directory / "features.npz", x=np.ones((N, 4)))
    with pytest.raises(DataError, match="no array 'data'; it holds x"):
        Dataset.from_npz(directory)


def test_other_files_under_a_known_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_directory(tmp_path / "GRB" / "grb-cora")
    monkeypatch.setenv("GRB_DATA", str(tmp_path))
    with pytest.raises(DataError, match="have 30 nodes, but grb-cora of the paper has 2680"):
        Dataset("grb-cora")


@needs_grb_cora
@pytest.mark.parametrize("file", ["adj.npz", "features.npz", "labels.npz", "index.npz"])
def test_damaged_grb_cora_is_refused(file: str, tmp_path: Path) -> None:
    directory = find_dataset("GRB/grb-cora")
    assert directory is not None
    for source in directory.glob("*.npz"):
        shutil.copy(source, tmp_path / source.name)
    path = tmp_path / file
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataError, match=file):
        Dataset("grb-cora", data_dir=tmp_path)


def test_import_paths_are_for_load_dataset() -> None:
    with pytest.raises(DataError, match="import path"):
        Dataset("os:getcwd")
    with pytest.raises(DataError, match="made a str"):
        load_dataset("os:getcwd")
    with pytest.raises(UnknownName, match="Did you mean 'grb-cora'"):
        load_dataset("grb-corra")


def test_generator_of_the_split_is_not_the_global_one() -> None:
    np_state: Callable[[], Any] = lambda: np.random.get_state()[1].tolist()  # noqa: NPY002
    before, torch_before = np_state(), torch.get_rng_state()
    own(split=None)
    assert np_state() == before and torch.equal(torch.get_rng_state(), torch_before)


def test_from_pyg_never_tests_on_nodes_that_its_masks_train_on() -> None:
    """A model that was trained outside with the masks has not seen a single test node."""
    adj, x, y = arrays()
    coo = adj.tocoo()
    data = Data(x=torch.from_numpy(x).float(), edge_index=torch.from_numpy(np.stack([coo.row, coo.col])).long())
    data.y = torch.from_numpy(y)
    data.train_mask = torch.arange(N) % 3 != 0
    data.test_mask = ~data.train_mask
    made = Dataset.from_pyg(data)
    assert not data.train_mask[made.index_test].any()
    assert made.num_test == int(data.test_mask.sum()) and made.num_val == 0
    assert not any("split by the paper" in note for note in made.notes)


def test_targets_by_ids_mask_class_and_column() -> None:
    dataset = load_dataset("synth-tiny")
    tests = dataset.index_test
    first = tests[:5]
    for given in (first, first.tolist(), first.numpy(), [str(each) for each in first.tolist()]):
        assert dataset.with_targets(given).index_test.tolist() == sorted(first.tolist())
    mask = torch.zeros(dataset.num_nodes, dtype=torch.bool)
    mask[first] = True
    mask[dataset.index_train[0]] = True  # a mask may cover more than test nodes
    assert dataset.with_targets(mask).index_test.tolist() == sorted(first.tolist())
    ones = dataset.with_targets("class=1")
    assert (ones.labels[ones.index_test] == 1).all()
    assert ones.num_test == int((dataset.labels[tests] == 1).sum())
    # the attacker still sees no test label, not even of nodes that are no targets
    view = ones.attacker_view()
    assert (view.labels[tests] == -1).all() and view.targets.tolist() == ones.index_test.tolist()
    with pytest.raises(DataError, match="is a target and no test node"):
        dataset.with_targets(dataset.index_train[:2])
    with pytest.raises(DataError, match="there are nodes 0 to"):
        dataset.with_targets([10**6])
    with pytest.raises(UnknownName, match="no class '9'"):
        dataset.with_targets("class=9")
    with pytest.raises(UnknownName, match="class=NAME"):
        dataset.with_targets("vip")
    with pytest.raises(DataError, match="shape"):
        dataset.with_targets(mask[:3])
