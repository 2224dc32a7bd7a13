"""A small ogbn-arxiv in the folders that OGB's package makes; neither the package nor the network is needed."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from grb.dataset import load_dataset
from grb.errors import DataError, MissingDataset
from grb.graph import CSR
from grb.model.profiling import profiler
from grb.trainer.profile import fit_profile

N = 40


def write(path: Path, rows: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt") as stream:
        stream.write("".join(",".join(map(str, row)) + "\n" for row in np.atleast_2d(rows).tolist()))


@pytest.fixture
def machine(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("GRB_DATA", str(tmp_path))
    monkeypatch.setenv("GRB_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(sys.modules, "ogb", None)  # type: ignore[arg-type]
    folder = tmp_path / "ogb" / "ogbn_arxiv"
    rng = np.random.default_rng(0)
    edges = np.array([(i, (i * 3 + 1) % N) for i in range(N)] + [(0, 1), (1, 0)])
    write(folder / "raw" / "edge.csv.gz", edges)
    write(folder / "raw" / "node-feat.csv.gz", rng.normal(size=(N, 4)).round(4))
    write(folder / "raw" / "node-label.csv.gz", (np.arange(N) % 3)[:, None])
    write(folder / "raw" / "node_year.csv.gz", np.full((N, 1), 2015))
    write(folder / "raw" / "num-node-list.csv.gz", np.array([[N]]))
    write(folder / "raw" / "num-edge-list.csv.gz", np.array([[len(edges)]]))
    for part, ids in zip(("train", "valid", "test"), np.split(np.arange(N), [24, 30]), strict=True):
        write(folder / "split" / "time" / f"{part}.csv.gz", ids[:, None])
    return folder


def test_the_official_split_and_ours(machine) -> None:
    dataset = load_dataset("ogbn-arxiv")
    assert (dataset.task, dataset.num_nodes, dataset.num_features, dataset.num_classes) == ("node", N, 4, 3)
    pairs = {frozenset((i, (i * 3 + 1) % N)) for i in range(N)} | {frozenset((0, 1))}
    assert dataset.num_edges == sum(len(pair) == 2 for pair in pairs)
    assert dataset.index_train.tolist() == list(range(24)) and dataset.index_test.tolist() == list(range(30, N))
    assert dataset.labels.tolist() == (np.arange(N) % 3).tolist()
    assert any("made undirected" in note for note in dataset.notes)
    ours = load_dataset("ogbn-arxiv", split="difficulty", mode="easy")
    assert ours.num_test == 4 and sorted(ours.split.test) == ["easy", "full", "hard", "medium"]


def test_the_second_time_the_text_is_not_read(machine, monkeypatch) -> None:
    from grb.dataset import tables

    first = load_dataset("ogbn-arxiv").fingerprint()
    monkeypatch.setattr(tables, "fast", None)
    assert load_dataset("ogbn-arxiv").fingerprint() == first


def test_several_labels_and_no_features(machine, tmp_path) -> None:
    folder = tmp_path / "ogb" / "ogbn_proteins"
    machine.rename(folder)
    (folder / "split" / "time").rename(folder / "split" / "species")
    (folder / "raw" / "node-feat.csv.gz").unlink()
    write(folder / "raw" / "node-label.csv.gz", np.stack([np.arange(N) % 2, np.arange(N) % 3 == 0], axis=1).astype(int))
    write(folder / "raw" / "edge-feat.csv.gz", np.ones((N + 2, 8)))
    dataset = load_dataset("ogbn-proteins")
    assert dataset.labels.shape == (N, 2) and dataset.num_features == 1
    assert "edge attributes dropped" in dataset.notes and any("no node features" in note for note in dataset.notes)


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("raw/edge.csv.gz", [["0", "x"]], "edge.csv.gz holds something else than whole numbers"),
        ("raw/edge.csv.gz", [[0, 99]], "node 99"),
        ("raw/node-feat.csv.gz", [[1.0, 2.0]], "node-feat.csv.gz has 1 rows, but there are 40 nodes"),
        ("split/time/train.csv.gz", None, "train.csv.gz is missing; let the ogb package download the dataset again"),
    ],
)
def test_files_that_do_not_fit_are_named(machine, file: str, content, sentence: str) -> None:
    (machine / file).unlink()
    if content is not None:
        write(machine / file, np.array(content))
    with pytest.raises(DataError, match=sentence):
        load_dataset("ogbn-arxiv")


def test_what_is_not_there_says_where_to_put_it(machine) -> None:
    with pytest.raises(MissingDataset, match=r"'ogbn-products' is not on this machine .*<root>/ogb/ogbn_products"):
        load_dataset("ogbn-products")


@pytest.fixture
def molecules(tmp_path, monkeypatch) -> Path:
    """Ten molecules in the folders and files of ogbg-molhiv: rings of three atoms and chains of two, every bond once."""
    monkeypatch.setenv("GRB_DATA", str(tmp_path))
    monkeypatch.setenv("GRB_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(sys.modules, "ogb", None)  # type: ignore[arg-type]
    folder = tmp_path / "ogb" / "ogbg_molhiv"
    rings = [number % 2 for number in range(10)]
    edges = [pair for ring in rings for pair in ([(0, 1), (1, 2), (0, 2)] if ring else [(0, 1)])]
    atoms = [(6 + ring, 0, 2, 5, 0, 0, 2, ring, ring) for ring in rings for _ in range(3 if ring else 2)]
    write(folder / "raw" / "num-node-list.csv.gz", np.array([[3 if ring else 2] for ring in rings]))
    write(folder / "raw" / "num-edge-list.csv.gz", np.array([[3 if ring else 1] for ring in rings]))
    write(folder / "raw" / "edge.csv.gz", np.array(edges))
    write(folder / "raw" / "edge-feat.csv.gz", np.zeros((len(edges), 3), dtype=int))
    write(folder / "raw" / "node-feat.csv.gz", np.array(atoms))
    write(folder / "raw" / "graph-label.csv.gz", np.array(rings)[:, None])
    for part, ids in zip(("train", "valid", "test"), ([0, 1, 2, 3, 4, 5], [6, 7], [8, 9]), strict=True):
        write(folder / "split" / "scaffold" / f"{part}.csv.gz", np.array(ids)[:, None])
    return folder


def test_molecules_are_read_from_their_raw_files_with_sparse_features(molecules) -> None:
    dataset = load_dataset("ogbg-molhiv")
    assert (dataset.task, dataset.graph.num_graphs, dataset.num_nodes, dataset.num_edges) == ("graph", 10, 25, 20)
    assert dataset.num_features == 174 and isinstance(dataset.graph.x, CSR)
    assert dataset.graph.x.pattern.indices.numel() == 9 * 25  # nothing dense
    dense = dataset.graph.x @ torch.eye(174)
    assert dense.sum(1).tolist() == [9.0] * 25 and dense[0, 6] == 1 and dense[2, 7] == 1 and dense[2, 173] == 1
    assert dataset.index_val.tolist() == [6, 7] and dataset.index_test.tolist() == [8, 9]
    assert dataset.labels.tolist() == [0, 1] * 5 and "edge attributes dropped" in dataset.notes


def test_molecules_with_sparse_features_train_as_those_with_dense_ones(molecules) -> None:
    dataset = load_dataset("ogbg-molhiv")
    chosen = profiler("gcn", collection=True, width=8, epochs=3)
    dense = dataset.graph.with_features(dataset.graph.x @ torch.eye(174))
    runs = [
        fit_profile(graph, dataset.split, chosen, task="graph", classes=2, seed=0) for graph in (dataset.graph, dense)
    ]
    assert [point.loss for point in runs[0].history] == pytest.approx(
        [point.loss for point in runs[1].history], rel=1e-4
    )


@pytest.mark.parametrize(
    ("file", "rows", "sentence"),
    [
        ("edge", [[0, 5]] * 20, "names nodes that its graph does not have"),
        ("edge", [[0, 1]] * 3, "edge.csv.gz has 3 rows"),
        ("node-feat", [[200, 0, 0, 0, 0, 0, 0, 0, 0]] * 25, "a code that OGB's tables of atoms do not have"),
        ("node-feat", [[1, 2]] * 25, "9 are known"),
        ("graph-label", [[0]], "graph-label.csv.gz has 1 rows"),
    ],
)
def test_raw_files_of_molecules_that_do_not_fit_are_refused(molecules, file, rows, sentence) -> None:
    write(molecules / "raw" / f"{file}.csv.gz", np.array(rows))
    with pytest.raises(DataError, match=sentence):
        load_dataset("ogbg-molhiv")
