from __future__ import annotations

import csv

import numpy as np
import pytest

from grb import taxonomy
from grb.graph.files import write_npz
from made_collections import edge_index, random_collection

from .conftest import refusal


@pytest.fixture
def graphs(tmp_path):
    """A file of labelled graphs."""
    graph = random_collection(graphs=40, seed=5, classes=2)
    given = {"edge_index": edge_index(graph), "x": graph.x, "y": graph.y, "ptr": graph.ptr}
    path = tmp_path / "mine.npz"
    write_npz(path, {name: array.numpy() for name, array in given.items()})
    return path


def test_a_dataset_is_placed_by_the_runs_of_a_file(grb, grb_json, graphs, tmp_path):
    """With the published profile of ENZYMES it is put where ENZYMES is."""
    row = taxonomy.published("inductive").profiles
    scores = {"-": 0.5, **{name: 0.5 * 2**value for name, value in row.row("ENZYMES").items()}}
    with (tmp_path / "runs.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["dataset", "perturbation", "auroc"])
        writer.writerows(["mine", name, value] for name, value in scores.items() if np.isfinite(value))
    found = grb_json("taxonomy", "place", graphs, "--runs", tmp_path / "runs.csv")
    assert found["neighbours"][0]["dataset"] == "ENZYMES" and found["group"] == "I-1"
    assert found["left_out"] is None
    again = grb_json("taxonomy", "place", graphs, "--runs", tmp_path / "runs.csv", "--exclude", "ENZYMES")
    assert again["left_out"] == "ENZYMES" and "ENZYMES" not in {each["dataset"] for each in again["neighbours"]}
    assert "mine belongs to I-1" in grb("taxonomy", "place", graphs, "--runs", tmp_path / "runs.csv").stdout


def test_a_dataset_is_trained_on_and_placed(grb_json, graphs, tmp_path, monkeypatch):
    from grb.taxonomy import profile

    monkeypatch.setattr(profile, "PAPER_ORDER", ("RandFtrs", "NoNodeFtrs", "NoEdges", "FiedlerFrag"))
    options = ("--seeds", 2, "--epochs", 2, "--store", tmp_path / "store", "--workers", 0)
    found = grb_json("taxonomy", "place", graphs, *options)
    assert found["dataset"] == "mine" and found["reference"] == "inductive"
    assert {mark["perturbation"] for mark in found["perturbations"]} == {"RandFtrs", "NoNodeFtrs", "NoEdges"}
    assert len(list((tmp_path / "store" / "records").rglob("*.json"))) == 2 * 4


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"y": np.zeros(40, dtype=np.int64)}, "one class"),
        ({"edge_index": np.zeros((2, 0), dtype=np.int64)}, "no edges"),
    ],
)
def test_what_has_no_place_gets_a_clear_answer(grb, graphs, tmp_path, changes, sentence):
    from grb.graph.files import read_npz

    write_npz(graphs, {**read_npz(graphs), **changes})
    done = grb("taxonomy", "place", graphs, "--store", tmp_path / "store")
    assert done.exit_code == 2 and sentence in refusal(done)
    assert not (tmp_path / "store").exists()


def test_a_store_without_runs_of_it_is_refused(grb, graphs, tmp_path):
    done = grb("taxonomy", "place", graphs, "--runs", tmp_path)
    assert done.exit_code == 2
