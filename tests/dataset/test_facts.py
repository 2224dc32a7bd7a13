"""Facts of a dataset: right, cached while its files are unchanged, and read without torch."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from grb.dataset import Dataset, dataset_facts, facts, load_dataset, registry, storage
from grb.errors import UnknownName
from test_imports import imported_after


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRB_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The datasets that were loaded."""
    from grb.dataset import load

    seen: list[str] = []
    real = load.load_dataset
    monkeypatch.setattr(load, "load_dataset", lambda name, **options: (seen.append(name), real(name, **options))[1])
    return seen


def entry(home: Path) -> Path:
    (found,) = (home / "facts").iterdir()
    return found


@pytest.mark.parametrize("name", ["synth-tiny", "synth-graphs"])
def test_facts_are_those_of_the_dataset_and_come_back_equal(name: str) -> None:
    dataset = load_dataset(name)
    found = dataset_facts(name)
    assert found.fingerprint == dataset.fingerprint()
    for count in ("num_nodes", "num_edges", "num_features", "num_classes", "num_items", "num_train", "num_val"):
        assert getattr(found, count) == getattr(dataset, count)
    assert (found.name, found.task, found.synthetic) == (name, dataset.task, True)
    assert found.test_sizes == {mode: len(ids) for mode, ids in dataset.split.test.items()}
    assert found.feature_range == dataset.feature_range and not found.multi_label
    assert (found.num_splits, found.numbered_splits) == ((10, True) if name == "synth-graphs" else (1, False))
    assert dataset_facts(name) == found


def test_a_hit_loads_nothing_and_imports_nothing_heavy(loads: list[str]) -> None:
    dataset_facts("synth-tiny")
    dataset_facts("SYNTH-TINY")
    assert loads == ["synth-tiny"]
    assert (
        imported_after("import grb.dataset; assert grb.dataset.dataset_facts('synth-tiny').num_nodes == 300") == set()
    )


def test_changed_files_are_loaded_again(tmp_path: Path, loads: list[str]) -> None:
    mine = storage.save(Dataset("synth-tiny"), tmp_path / "mine")
    first = dataset_facts(str(mine))
    assert dataset_facts(str(mine)) == first and len(loads) == 1
    other = storage.save(Dataset("synth-tiny").with_difficulty(7), tmp_path / "other")
    shutil.copy(other / "index.npz", mine / "index.npz")
    second = dataset_facts(str(mine))
    assert second.fingerprint == load_dataset(str(mine)).fingerprint() != first.fingerprint
    os.utime(mine / "adj.npz", ns=(1, 1))
    assert dataset_facts(str(mine)) == second and len(loads) == 3


def test_edge_lists_are_known_by_all_tables_of_their_folder(tmp_path: Path, loads: list[str]) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "edges.csv").write_text(
        "source,target\n" + "".join(f"{i},{(i + 1) % 20}\n" for i in range(20))
    )
    (tmp_path / "mine" / "labels.csv").write_text("label\n" + "".join("ab"[i % 2] + "\n" for i in range(20)))
    name = str(tmp_path / "mine" / "edges.csv")
    assert dataset_facts(name).num_classes == 2
    (tmp_path / "mine" / "labels.csv").write_text("label\n" + "".join("abc"[i % 3] + "\n" for i in range(20)))
    assert dataset_facts(name).num_classes == 3
    assert len(loads) == 2


@pytest.mark.parametrize("damage", ["cut", "changed", "other", "field", "list"])
def test_a_damaged_entry_is_ignored_and_written_again(home: Path, loads: list[str], damage: str) -> None:
    right = dataset_facts("synth-tiny")
    path = entry(home)
    whole = path.read_text()
    stored = json.loads(whole)
    if damage == "changed":
        stored["facts"]["fingerprint"] = "0" * 64
    if damage == "other":
        stored["identity"]["grb"] = "0.0.0"
    if damage == "field":
        del stored["facts"]["task"]
        stored["sha256"] = facts._digest(stored["identity"], stored["facts"])
    path.write_text(whole[:-20] if damage == "cut" else "[]" if damage == "list" else json.dumps(stored))
    assert dataset_facts("synth-tiny") == right and len(loads) == 2
    assert path.read_text() == whole
    assert dataset_facts("synth-tiny") == right and len(loads) == 2


def test_code_is_always_asked(loads: list[str], home: Path) -> None:
    name = "made_collections:tiny_graphs"
    assert dataset_facts(name).reference == name
    dataset_facts(name)
    assert loads == [name, name] and not (home / "facts").exists()


def test_a_home_that_cannot_be_written_is_only_slower(home: Path, loads: list[str]) -> None:
    home.write_text("a file")
    assert dataset_facts("synth-tiny") == dataset_facts("synth-tiny")
    assert len(loads) == 2


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'synth-tiny'"):
        dataset_facts("synth-tinny")
    assert not (registry.home() / "facts").exists()
