from __future__ import annotations

import csv

import numpy as np
import pytest

from grb import taxonomy
from grb.graph.files import write_npz
from grb.pipeline import Store
from made_collections import edge_index, random_collection

from .conftest import refusal
from .test_taxonomy import keep


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


def test_runs_of_several_settings_are_chosen_among(grb, grb_json, graphs, tmp_path):
    """Equal seeds under two settings; those of another dataset do not matter."""
    store = Store(tmp_path / "store")
    for name, score in (("-", 0.9), ("NoEdges", 0.6), ("NodeDeg", 0.7), ("NoNodeFtrs", 0.8)):
        for seed in (0, 1):
            keep(store, "mine", name, seed, score)
            keep(store, "mine", name, seed, 0.5, epochs=5)
            keep(store, "other", name, seed, score, epochs=3 + seed)
    told = refusal(grb("taxonomy", "place", graphs, "--runs", store.path))
    assert "runs of mine with gcn under 2 different settings" in told and "--where epochs=300" in told
    found = grb_json("taxonomy", "place", graphs, "--runs", store.path, "--where", "epochs=300")
    left = {mark["perturbation"]: mark["ratio"] for mark in found["perturbations"]}
    assert left["NoEdges"] == pytest.approx(0.6 / 0.9)
    short = grb_json("taxonomy", "place", graphs, "--runs", store.path, "--where", "epochs=5")
    assert all(mark["ratio"] == 1 for mark in short["perturbations"])


def test_the_plan_says_how_many_runs_there_would_be(grb, grb_json, graphs, tmp_path):
    found = grb_json(
        "taxonomy", "place", graphs, "--plan", "--models", "gcn,gin", "--seeds", 2, "--store", tmp_path / "store"
    )
    assert found["jobs"] == 2 * 2 * 13 and found["cached"] == 0 and found["cpu_seconds"] > 0
    assert not list((tmp_path / "store").rglob("*.json"))
    done = grb("taxonomy", "place", graphs, "--plan", "--runs", tmp_path)
    assert done.exit_code == 2 and "--runs trains nothing" in refusal(done)


def test_several_models_are_placed_by_their_own_published_rows_and_drawn(grb, grb_json, graphs, tmp_path):
    known = taxonomy.published("inductive").models
    lines = ["dataset,perturbation,model,seed,auroc"]
    for model, title in (("gcn", "GCN"), ("gin", "GIN"), ("mine", "GCN")):
        for name, value in {"-": 0.0, **known[title].row("ENZYMES")}.items():
            lines += [f"mine,{name},{model},{seed},{0.9 * 2**value - 0.002 * seed}" for seed in range(3)]
    (tmp_path / "runs.csv").write_text("\n".join(lines))
    options = ("--runs", tmp_path / "runs.csv", "--models", "gcn,gin,mine", "--exclude", "ENZYMES")
    found = grb_json("taxonomy", "place", graphs, *options, "-o", tmp_path / "place.svg")
    assert {name: own["model"] for name, own in found["models"].items()} == {"gcn": "GCN", "gin": "GIN", "mine": "GCN"}
    assert all(mark["low"] < mark["ratio"] < mark["high"] for mark in found["perturbations"])
    assert any("nobody published mine" in note for note in found["remarks"])
    drawn = (tmp_path / "place-gin.svg").read_text()
    assert "mine: I-1 with" in drawn and "NoNodeFtrs" in drawn
    told = grb("taxonomy", "place", graphs, *options).stdout
    assert "The models agree: I-1 by gcn, I-1 by gin, I-1 by mine." in told
    bad = grb("taxonomy", "place", graphs, *options, "-o", tmp_path / "place.txt")
    assert bad.exit_code == 2 and ".png, .svg, .pdf is needed" in refusal(bad)


def test_the_reliability_of_stated_groups_is_printed_and_drawn(grb, grb_json, tmp_path):
    found = grb_json("taxonomy", "reliability", "inductive")
    assert [curve["setting"] for curve in found] == ["own row", "other models", "noisy rows"]
    shown = grb("taxonomy", "reliability", "transductive", "-o", tmp_path / "curve.png")
    assert "80 to 100" in shown.stdout and (tmp_path / "curve.png").stat().st_size > 1000
    assert "published taxonomy 'both'" in refusal(grb("taxonomy", "reliability", "both"))


def test_a_store_without_runs_of_it_is_refused(grb, graphs, tmp_path):
    done = grb("taxonomy", "place", graphs, "--runs", tmp_path)
    assert done.exit_code == 2
