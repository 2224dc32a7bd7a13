from __future__ import annotations

import hashlib
import json
import shutil
import zipfile

import numpy as np
import pytest

from grb.dataset import registry
from helpers import find_dataset, needs_grb_cora

from .conftest import refusal

# found before a test hides it
CORA = find_dataset("GRB/grb-cora")


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
    assert "embedded" in grb("info", "synth-tiny", "--path").stdout
    assert grb_json("info", "synth-tiny", "--path") == {"name": "synth-tiny", "embedded": True, "path": None}


def test_path_is_the_directory_and_nothing_else(grb, impostor):
    assert grb("info", "grb-cora", "--data-dir", impostor, "--path").stdout == f"{impostor}\n"


def test_path_of_an_absent_dataset_says_what_to_do(grb, monkeypatch, tmp_path):
    monkeypatch.setenv("GRB_DATA", str(tmp_path))
    done = grb("info", "grb-cora", "--path")
    assert done.exit_code == 2
    assert refusal(done).startswith("dataset 'grb-cora' is not on this machine")


def test_unknown_dataset(grb):
    done = grb("data", "check", "synth-tinny")
    assert done.exit_code == 2
    assert "Did you mean 'synth-tiny'?" in refusal(done)


def test_embedded_datasets_are_checked(grb_json):
    assert grb_json("data", "check", "synth-tiny")["ok"] is True


def test_the_old_verb_names_the_new_one(grb):
    done = grb("data", "verify", "grb-cora", "--data-dir", "anywhere")
    assert done.exit_code == 2
    assert refusal(done).startswith("`grb data verify` is part of `grb data check DATASET` now")
    assert "verify" not in grb("data", "--help").stdout


EMBEDDED = ["synth-tiny", "synth-cora", "synth-graphs", "synth-cora-fresh"]


def test_every_dataset_on_this_machine_is_checked_without_a_name(grb, grb_json, empty_machine):
    found = grb_json("data", "check")
    assert found["ok"] and [row["name"] for row in found["datasets"]] == EMBEDDED
    shown = grb("data", "check").stdout
    assert "synth-tiny: as expected" in shown and "degree quantiles" not in shown


@needs_grb_cora
def test_grb_cora_is_the_papers(grb_json):
    (row,) = grb_json("data", "check", "grb-cora")["datasets"]
    checks = row["checks"]
    assert len(checks) == 16
    assert sum(check["what"].startswith("sha256 of ") for check in checks) == 4
    assert all(check["ok"] for check in checks)


def test_every_difference_is_shown_and_exits_with_3(grb, impostor):
    done = grb("data", "check", "grb-cora", "--data-dir", impostor, "--json")
    assert done.exit_code == 3
    found = {row["what"]: row for row in json.loads(done.stdout)["datasets"][0]["checks"]}
    assert found["nodes"] == {"what": "nodes", "expected": 2680, "found": 10, "ok": False}
    assert found["mean degree, all"]["found"] == 1.8
    assert found["mean degree, hard"]["found"] == 1.5
    assert found["files are readable and valid"]["ok"] is True
    shown = grb("data", "check", "grb-cora", "--data-dir", impostor)
    assert shown.exit_code == 3
    assert shown.stdout.startswith("grb-cora: NOT as expected\n")


def test_damaged_file_exits_with_3_and_names_the_file(grb, impostor):
    (impostor / "labels.npz").write_bytes(b"<html>not found</html>")
    done = grb("data", "check", "grb-cora", "--data-dir", impostor)
    assert done.exit_code == 3
    assert "labels.npz" in done.stdout and "web page" in done.stdout


def test_check_compares_hashes_where_they_are_known(grb, impostor):
    done = grb("data", "check", "grb-cora", "--data-dir", impostor, "--json")
    found = {row["what"]: row for row in json.loads(done.stdout)["datasets"][0]["checks"]}
    row = found["sha256 of labels.npz"]
    assert row["found"] == hashlib.sha256((impostor / "labels.npz").read_bytes()).hexdigest()
    assert len(row["expected"]) == 64 and row["ok"] is False
    done = grb("data", "check", "grb-flickr", "--data-dir", impostor, "--json")
    found = {row["what"]: row for row in json.loads(done.stdout)["datasets"][0]["checks"]}
    row = found["sha256 of labels.npz"]
    assert row["expected"] == "not checked: no known hash" and row["ok"] is True


@pytest.fixture
def empty_machine(monkeypatch, tmp_path):
    monkeypatch.setenv("GRB_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("GRB_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "data" / "GRB"


def test_get_says_in_one_sentence_that_the_network_is_forbidden(grb, empty_machine):
    done = grb("data", "get", "grb-flickr")
    assert done.exit_code == 2
    sentence = refusal(done)
    assert "GRB_OFFLINE forbids the network" in sentence and "grb data get grb-flickr --from DIR" in sentence
    assert not any(empty_machine.glob("**/*"))


def test_get_of_an_embedded_dataset_has_nothing_to_do(grb, grb_json, empty_machine):
    assert "nothing to get" in grb("data", "get", "synth-tiny").stdout
    (row,) = grb_json("data", "get", "synth-tiny", "SYNTH-TINY")["datasets"]
    assert row["path"] is None and row["files"] == []


@needs_grb_cora
@pytest.mark.parametrize("packed", [False, True])
def test_get_from_a_folder_or_an_archive_copies_and_checks(grb, grb_json, empty_machine, tmp_path, packed):
    source = CORA
    if packed:
        with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
            for file in registry.FILES:
                archive.write(source / file, f"datasets/grb-cora/{file}")
        source = tmp_path / "all.zip"
    (row,) = grb_json("data", "get", "grb-cora", "--from", source)["datasets"]
    assert row["path"] == str(empty_machine / "grb-cora") and row["source"] == str(source)
    assert [(each["file"], each["check"]) for each in row["files"]] == [
        (file, "sha256 as listed") for file in registry.FILES
    ]
    assert "already here" in grb("data", "get", "grb-cora", "--from", source).stdout
    forced = grb("data", "get", "grb-cora", "--from", source, "--force")
    assert "sha256 as listed" in forced.stdout and "d29db909d22f..." in forced.stdout
    assert grb("data", "check", "grb-cora").exit_code == 0


@needs_grb_cora
def test_get_from_a_folder_with_a_changed_file_exits_with_3(grb, empty_machine, tmp_path):
    shutil.copytree(CORA, tmp_path / "mine")
    (tmp_path / "mine" / "labels.npz").chmod(0o644)
    np.savez(tmp_path / "mine" / "labels.npz", data=np.zeros(2680, dtype=np.int64))
    done = grb("data", "get", "grb-cora", "--from", tmp_path / "mine")
    assert done.exit_code == 3
    assert "labels.npz" in refusal(done) and "is not the listed file" in refusal(done)
    assert not (empty_machine / "grb-cora").exists()


def test_get_from_a_folder_that_lacks_files(grb, empty_machine, tmp_path):
    done = grb("data", "get", "grb-cora", "--from", tmp_path)
    assert done.exit_code == 2 and "lacks adj.npz" in refusal(done)


def test_split_of_a_directory_needs_edges_only(grb, grb_json, impostor):
    for file in ("features.npz", "labels.npz", "index.npz"):
        (impostor / file).unlink()
    result = grb_json("data", "split", impostor, "--seed", 3)
    assert (result["nodes"], result["edges"], result["seed"], result["written"]) == (10, 9, 3, None)
    parts = {row["part"]: row for row in result["parts"]}
    assert [parts[part]["nodes"] for part in ("all", "train", "val", "easy", "medium", "hard", "full")] == [
        10,
        6,
        1,
        1,
        1,
        1,
        3,
    ]
    assert parts["all"]["mean_degree"] == 1.8 and (parts["all"]["lowest"], parts["all"]["highest"]) == (1, 2)
    assert grb("data", "split", impostor).stdout.startswith(f"{impostor}: 10 nodes, 9 edges, seed 0\n")


def test_split_writes_ids_that_make_a_dataset(grb, grb_json, impostor):
    written = grb_json("data", "split", impostor, "--seed", 5, "-o", impostor / "index")["written"]
    assert written == str(impostor / "index.npz")
    first = (impostor / "index.npz").read_bytes()
    assert grb("data", "split", impostor, "--seed", 5, "-o", impostor / "index.npz").exit_code == 0
    assert (impostor / "index.npz").read_bytes() == first
    with np.load(impostor / "index.npz") as index:
        tests = [index[f"index_test_{band}"] for band in ("easy", "medium", "hard")]
        assert np.array_equal(index["index_test"], np.sort(np.concatenate(tests)))
        every = np.concatenate([index["index_train"], index["index_val"], index["index_test"]])
    assert sorted(every) == list(range(10))
    assert grb("data", "check", "grb-flickr", "--data-dir", impostor).exit_code == 3  # readable, but not grb-flickr


def test_split_by_name(grb, grb_json):
    parts = {row["part"]: row for row in grb_json("data", "split", "synth-tiny")["parts"]}
    assert parts["easy"]["mean_degree"] < parts["medium"]["mean_degree"] < parts["hard"]["mean_degree"]
    done = grb("data", "split", "synth-tinny")
    assert done.exit_code == 2 and "Did you mean 'synth-tiny'?" in refusal(done)
    done = grb("data", "split", "synth-tiny", "--seed", "-1")
    assert done.exit_code == 2 and "--seed is -1" in refusal(done)


def test_split_of_a_dataset_without_features(grb_json):
    if find_dataset("GRB/grb-citeseer") is None:
        pytest.skip("needs the true grb-citeseer")
    parts = {row["part"]: row["nodes"] for row in grb_json("data", "split", "grb-citeseer")["parts"]}
    assert parts == {"all": 3191, "train": 1914, "val": 320, "easy": 319, "medium": 319, "hard": 319, "full": 957}


@pytest.mark.parametrize("words", [("data", "split", "synth-tiny"), ("data", "get", "synth-tiny")])
def test_json_may_stand_before_the_verb(grb, words):
    assert json.loads(grb("--json", *words).stdout)
