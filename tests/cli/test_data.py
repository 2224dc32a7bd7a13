from __future__ import annotations

import json

import numpy as np
import pytest

from helpers import needs_grb_cora

from .conftest import refusal


@pytest.fixture
def impostor(tmp_path):
    """A directory with the files of grb-cora, but of a path of ten nodes."""
    ends = np.array([(u, u + 1) for u in range(9)])
    both = np.concatenate([ends, ends[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    indptr = np.searchsorted(both[:, 0], np.arange(11))
    np.savez(
        tmp_path / "adj.npz", indptr=indptr, indices=both[:, 1], data=np.ones(18, dtype=np.float32), shape=(10, 10)
    )
    np.savez(tmp_path / "features.npz", data=np.linspace(-1, 1, 20, dtype=np.float32).reshape(10, 2))
    np.savez(tmp_path / "labels.npz", data=np.arange(10) % 2)
    parts = {"index_train": [0, 1, 2, 3], "index_val": [4], "index_test_easy": [5]}
    np.savez(tmp_path / "index.npz", **parts, index_test_medium=[6, 7], index_test_hard=[8, 9])
    return tmp_path


def test_path_of_an_embedded_dataset_says_so(grb, grb_json):
    assert "embedded" in grb("data", "path", "synth-tiny").stdout
    assert grb_json("data", "path", "synth-tiny") == {"name": "synth-tiny", "embedded": True, "path": None}


def test_path_is_the_directory_and_nothing_else(grb, impostor):
    assert grb("data", "path", "grb-cora", "--data-dir", impostor).stdout == f"{impostor}\n"


def test_path_of_an_absent_dataset_says_what_to_do(grb, monkeypatch, tmp_path):
    monkeypatch.setenv("GRB_DATA", str(tmp_path))
    done = grb("data", "path", "grb-cora")
    assert done.exit_code == 2
    assert refusal(done).startswith("dataset 'grb-cora' is not on this machine")


def test_unknown_dataset(grb):
    done = grb("data", "verify", "synth-tinny")
    assert done.exit_code == 2
    assert "Did you mean 'synth-tiny'?" in refusal(done)


def test_embedded_datasets_verify(grb_json):
    assert grb_json("data", "verify", "synth-tiny")["ok"] is True


@needs_grb_cora
def test_grb_cora_is_the_papers(grb_json):
    (checks,) = grb_json("data", "verify", "grb-cora")["datasets"].values()
    assert len(checks) == 12
    assert all(check["ok"] for check in checks)


def test_every_difference_is_shown_and_exits_with_3(grb, impostor):
    done = grb("data", "verify", "grb-cora", "--data-dir", impostor, "--json")
    assert done.exit_code == 3
    found = {row["what"]: row for row in json.loads(done.stdout)["datasets"]["grb-cora"]}
    assert found["nodes"] == {"what": "nodes", "expected": 2680, "found": 10, "ok": False}
    assert found["mean degree, all"]["found"] == 1.8
    assert found["mean degree, hard"]["found"] == 1.5
    assert found["files are readable and valid"]["ok"] is True
    shown = grb("data", "verify", "grb-cora", "--data-dir", impostor)
    assert shown.exit_code == 3
    assert shown.stdout.startswith("grb-cora: NOT as expected\n")


def test_damaged_file_exits_with_3_and_names_the_file(grb, impostor):
    (impostor / "labels.npz").write_bytes(b"<html>not found</html>")
    done = grb("data", "verify", "grb-cora", "--data-dir", impostor)
    assert done.exit_code == 3
    assert "labels.npz" in done.stdout and "web page" in done.stdout
