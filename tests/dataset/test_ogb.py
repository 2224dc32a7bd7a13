"""A small ogbn-arxiv in the folders that OGB's package makes; neither the package nor the network is needed."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

from grb.dataset import load_dataset
from grb.errors import DataError, MissingDataset

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
