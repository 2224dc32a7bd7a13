"""flickr and reddit from a small stand-in for torch_geometric's classes: the true files are large and far away."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
import torch_geometric.datasets
from torch_geometric.data import Data

from grb import catalogue
from grb.dataset import Dataset, download, load_dataset, rebuild, registry, storage
from grb.dataset.splits import difficulty_split
from grb.errors import DataError, MissingDataset, UnknownName

NODES, EDGES = 40, 60


def tiny() -> Data:
    """A ring with 20 chords, listed with a self-loop and an edge twice, as raw files may."""
    ring = torch.stack([torch.arange(NODES), (torch.arange(NODES) + 1) % NODES])
    chords = torch.stack([torch.arange(20), torch.arange(20) + 20])
    once = torch.cat([ring, chords], dim=1)
    edges = torch.cat([once, once.flip(0), torch.tensor([[3, 0], [3, 1]])], dim=1)
    x = torch.rand(NODES, 5, generator=torch.Generator().manual_seed(0))
    return Data(x=x, edge_index=edges, y=torch.arange(NODES) % 7)


class Stand:
    """What a class of torch_geometric.datasets does: take a root whose raw files are there, give one graph."""

    adj_full_id = feats_id = class_map_id = role_id = "id"
    roots: list[Path] = []

    def __init__(self, root: str) -> None:
        self.roots.append(Path(root))
        assert all((Path(root) / "raw" / file).read_text() == file for file in rebuild.RAW)

    def __getitem__(self, place: int) -> Data:
        return tiny()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with raw files in GRB_DATA, and a paper whose flickr has forty nodes."""
    for pyg in ("Flickr", "Reddit2"):
        monkeypatch.setattr(torch_geometric.datasets, pyg, Stand)
        raw = tmp_path / "data" / pyg / "raw"
        raw.mkdir(parents=True)
        for file in rebuild.RAW:
            (raw / file).write_text(file)
    paper = {"nodes": NODES, "edges": EDGES, "features": 5, "classes": 7}
    tables = {
        "datasets": {"grb-flickr": paper, "grb-reddit": paper},
        "mirrors": {"archives": [], "datasets": {}},
    }
    monkeypatch.setattr(catalogue, "preset", tables.__getitem__)
    monkeypatch.setenv("GRB_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("GRB_HOME", str(tmp_path / "home"))
    Stand.roots.clear()
    return tmp_path / "home"


@pytest.mark.parametrize("name", ["flickr", "reddit"])
def test_rebuild_has_the_graph_of_the_source_and_the_papers_scheme_with_a_fixed_seed(home: Path, name: str) -> None:
    place = rebuild.rebuild(name)
    assert place == home / "data" / "GRB" / f"{name}-rebuilt"
    dataset = Dataset(f"{name}-rebuilt", feat_norm=None)
    assert (dataset.num_nodes, dataset.num_edges, dataset.num_classes) == (NODES, EDGES, 7)
    assert torch.equal(dataset.features, tiny().x)
    index = difficulty_split(dataset.graph.adj.degrees.numpy(), np.random.default_rng(0))
    assert dataset.index_train.tolist() == index["index_train"].tolist()
    assert dataset.index_test_hard.tolist() == index["index_test_hard"].tolist()
    assert dataset.name == f"{name}-rebuilt" and not dataset.synthetic
    assert any("not the files of GRB" in note for note in dataset.notes)


def test_loading_rebuilds_once_even_offline_and_leaves_the_data_directory_alone(home: Path) -> None:
    before = sorted(path.name for path in (home.parent / "data").rglob("*"))
    assert load_dataset("flickr-rebuilt").fingerprint() == Dataset("flickr-rebuilt").fingerprint()
    assert download.get("flickr-rebuilt").source == "already here"
    assert Stand.roots == [home / "data" / "Flickr"]
    assert sorted(path.name for path in (home.parent / "data").rglob("*")) == before
    assert (home / "data" / "Flickr" / "raw" / "feats.npy").read_text() == "feats.npy"


def test_rebuild_is_the_same_every_time(home: Path) -> None:
    first = {path.name: path.read_bytes() for path in rebuild.rebuild("flickr").iterdir()}
    again = {path.name: path.read_bytes() for path in rebuild.rebuild("flickr", force=True).iterdir()}
    assert first == again and len(Stand.roots) == 2


def test_without_raw_files_and_offline_the_sentence_says_where_to_put_them(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRB_DATA", str(home / "nothing"))
    with pytest.raises(download.DownloadError, match="no root of GRB_DATA has Flickr/raw/adj_full.npz"):
        rebuild.rebuild("flickr")
    with pytest.raises(MissingDataset, match="'flickr-rebuilt' is not on this machine.*Flickr/raw/adj_full.npz"):
        load_dataset("flickr-rebuilt")
    assert Stand.roots == []


def test_raw_files_are_downloaded_by_us_over_https(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def fake(url: str, target: Path, **options: object) -> str:
        asked.append(url)
        target.write_text(target.name)
        return ""

    monkeypatch.setenv("GRB_DATA", str(home / "nothing"))
    monkeypatch.delenv("GRB_OFFLINE")
    monkeypatch.setattr(rebuild, "download", fake)
    rebuild.rebuild("reddit")
    assert asked == ["https://drive.usercontent.google.com/download?id=id&confirm=t"] * 4
    assert storage.is_complete(home / "data" / "GRB" / "reddit-rebuilt")


def test_other_raw_files_than_the_papers_graph_are_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Stand, "__getitem__", lambda self, place: Data(x=torch.ones(9, 5), edge_index=tiny().edge_index)
    )
    with pytest.raises(DataError):
        rebuild.rebuild("flickr")
    small = tiny()
    small.x = small.x[:, :4]
    monkeypatch.setattr(Stand, "__getitem__", lambda self, place: small)
    with pytest.raises(DataError, match="flickr-rebuilt have 4 features, but grb-flickr of the paper has 5"):
        rebuild.rebuild("flickr")
    assert not (home / "data" / "GRB").exists()


def test_broken_raw_files_are_one_sentence(home: Path) -> None:
    (home.parent / "data" / "Flickr" / "raw" / "role.json").write_text("<html>")
    with pytest.raises(DataError, match="flickr-rebuilt cannot be made from .*delete that directory and try again"):
        rebuild.rebuild("flickr")


def test_only_two_datasets_can_be_rebuilt(home: Path) -> None:
    with pytest.raises(UnknownName, match="Allowed: flickr, reddit"):
        rebuild.rebuild("grb-flickr")
    assert set(registry.REBUILT.values()) == set(rebuild.SOURCES)
    assert not any(name.startswith("grb-") for name in registry.REBUILT)
    assert not os.path.exists(home)


def test_the_named_classes_are_those_of_torch_geometric() -> None:
    for source in rebuild.SOURCES.values():
        real = getattr(torch_geometric.datasets, source.pyg)
        assert all(isinstance(getattr(real, attribute), str) for attribute in rebuild.RAW.values())
        assert set(real.raw_file_names.fget(None)) == set(rebuild.RAW)
