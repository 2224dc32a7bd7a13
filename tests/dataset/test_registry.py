"""Where datasets are looked for, read from the environment at call time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grb.dataset import Dataset, dataset_reference, load_dataset, registry, storage
from grb.errors import DataError, UnknownName


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRB_DATA", os.pathsep.join([str(tmp_path / "one"), "", str(tmp_path / "two")]))
    monkeypatch.setenv("GRB_HOME", str(tmp_path / "home"))
    return tmp_path


def fill(directory: Path, *left_out: str) -> Path:
    directory.mkdir(parents=True)
    for name in registry.FILES:
        if name not in left_out:
            (directory / name).touch()
    return directory


def test_roots_in_order(places: Path) -> None:
    expected = [places / "here", places / "one", places / "two", places / "home" / "data"]
    assert registry.roots(places / "here") == expected
    assert registry.roots() == expected[1:]


def test_home_falls_back_to_the_cache_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GRB_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert registry.home() == tmp_path / "grb"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    assert registry.home() == tmp_path / "user" / ".cache" / "grb"


def test_first_complete_directory_is_taken(places: Path) -> None:
    cached = fill(places / "home" / "data" / "grb-cora")
    assert registry.find("grb-cora") == cached
    fill(places / "one" / "GRB" / "grb-cora", "index.npz")
    second = fill(places / "two" / "GRB" / "grb-cora")
    assert registry.find("GRB-CORA") == second
    given = fill(places / "given")
    assert registry.find("grb-cora", given) == given
    assert registry.find("grb-cora", places / "two") == second


def test_missing_dataset_is_one_sentence_with_advice(places: Path) -> None:
    with pytest.raises(DataError) as refusal:
        Dataset("grb-cora")
    sentence = str(refusal.value)
    assert "'grb-cora' is not on this machine" in sentence
    assert str(places / "one") in sentence and str(places / "home" / "data") in sentence
    assert "adj.npz, features.npz, labels.npz, index.npz" in sentence and "GRB_DATA" in sentence
    assert "synth-cora" in sentence and "\n" not in sentence


def test_incomplete_directory_is_named(places: Path) -> None:
    fill(places / "two" / "GRB" / "grb-cora", "features.npz", "index.npz")
    with pytest.raises(DataError, match=r"GRB/grb-cora lacks features\.npz, index\.npz\."):
        registry.find("grb-cora")


def test_unknown_names_never_become_paths(places: Path) -> None:
    for name in ("../grb-cora", "/etc", "grb-cora/../..", "", "grb-cora\0"):
        with pytest.raises(UnknownName):
            registry.find(name)
    assert os.listdir(places) == []


@pytest.mark.parametrize("name", ["synth-tiny", "SYNTH-TINY"])
def test_the_reference_of_a_named_dataset_is_its_catalogue_name(name: str) -> None:
    assert dataset_reference(name) == "synth-tiny"
    assert load_dataset(dataset_reference(name)).name == "synth-tiny"


def test_the_reference_of_files_holds_in_any_directory(tmp_path, monkeypatch) -> None:
    storage.save(load_dataset("synth-tiny"), tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    reference = dataset_reference("./mine")
    assert reference == str(tmp_path / "mine")
    monkeypatch.chdir("/")
    assert load_dataset(reference).num_nodes == 300


def test_the_reference_of_code_is_its_import_path() -> None:
    assert dataset_reference("some.module:load") == "some.module:load"


def test_a_dataset_of_this_process_alone_has_no_reference() -> None:
    with pytest.raises(UnknownName, match="no dataset 'custom'"):
        dataset_reference("custom")
    with pytest.raises(DataError, match="exists in this process only"):
        dataset_reference("custom", load_dataset("synth-tiny"))
