from __future__ import annotations

import csv
import json

import pytest

from grb.cli.taxonomy_run import parse_perturbation, parse_seeds
from grb.errors import DataError
from grb.pipeline import Spec

from .conftest import refusal

TINY = "made_collections:tiny_graphs"
RUN = ("taxonomy", "run", TINY, "--epochs", 1, "--workers", 0)


def test_run_resume_and_analyse(grb, grb_json, tmp_path):
    store = tmp_path / "store"
    few = (*RUN, "--perturbations", "NoEdges,NodeDeg", "--seeds", 2, "--store", store)
    assert grb_json(*few, "--plan")["jobs"] == 6
    assert not store.exists()
    done = grb(*few)
    assert done.exit_code == 0, done.stderr
    assert "6 jobs done, 0 were there already" in done.stderr
    assert "NodeDeg" in done.stdout and "of original" in done.stdout
    assert "0 jobs done, 6 were there already" in grb(*few).stderr
    assert grb_json(*few, "--plan")["cached"] == 6
    told = grb_json("store", "copy", store, tmp_path / "runs.csv")
    assert told["records"] == 6
    with (tmp_path / "runs.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert {row["perturbation"] for row in rows} == {"-", "NoEdges", "NodeDeg"} and rows[0]["model"] == "gcn"
    shown = grb("store", "ls", store, "--kind", "profile").stdout
    assert "AUROC" in shown and "1 epochs" in shown


def test_events_as_json_lines(grb, tmp_path):
    done = grb(*RUN, "--perturbations", "original", "--seeds", "0,3", "--store", tmp_path / "store", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["event"] for event in events] == ["started", "done"] * 2
    assert "seed 3" in events[-1]["job"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--seeds", "0"), "--seeds is '0'"),
        (("--seeds", "x"), "--seeds is 'x'"),
        (("--epochs", "0"), "--epochs is 0"),
        (("--perturbations", "NoEdge"), "Did you mean 'noedges'?"),
        (("--perturbations", "RandFtrs@paper"), "compat is 'paper'"),
        (("--models", ","), "--models is ','"),
        (("--models", "gcnn"), "no profiler 'gcnn'"),
        (("--shard", "3"), "--shard is '3'"),
        (("flickr",), "dataset 'flickr' is not on this machine"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(grb, tmp_path, options, sentence):
    done = grb(*RUN, *options, "--store", tmp_path / "store")
    assert done.exit_code == 2 and sentence in refusal(done)
    assert not (tmp_path / "store").exists()


def test_numbers_of_runs():
    assert (parse_seeds("3"), parse_seeds("0,4"), parse_seeds(" 2-4 ")) == ([0, 1, 2], [0, 4], [2, 3, 4])
    for wrong in ("", "-1", "4-2", "1;2", "10000000"):
        with pytest.raises(DataError, match="--seeds is"):
            parse_seeds(wrong)


def test_perturbations_of_the_command_line():
    assert parse_perturbation(" RandFtrs@gtaxogym ") == Spec("RandFtrs", {"compat": "gtaxogym"})
    assert parse_perturbation("original") is None


def test_links_are_a_task_of_their_own(grb, grb_json, tmp_path):
    """Run, analyse, and a placement that does not mix tasks."""
    options = ("--seeds", 2, "--epochs", 6, "--store", tmp_path / "store", "--workers", 0)
    done = grb(
        "taxonomy", "run", "synth-tiny", "--task", "link", "--perturbations", "NoEdges,NoNodeFtrs,RandRewire", *options
    )
    assert done.exit_code == 0, done.stderr
    found = grb_json("taxonomy", "analyse", tmp_path / "store", "--n-bootstrap", 9)
    assert [name.endswith("(links)") for name in found["datasets"]] == [True]
    assert set(found["perturbations"]) == {"NoEdges", "NoNodeFtrs", "RandRewire"}
    placed = grb("taxonomy", "place", "synth-tiny", "--runs", tmp_path / "store")
    assert placed.exit_code == 2 and "tasks are not mixed" in placed.stderr
    again = grb("taxonomy", "run", "synth-tiny", "--perturbations", "NoEdges", *options)
    assert again.exit_code == 0, again.stderr  # the labels of the same dataset are other runs
    both = grb_json("taxonomy", "analyse", tmp_path / "store", "--n-bootstrap", 9)
    assert len(both["datasets"]) == 2
    wrong = grb("taxonomy", "run", "synth-graphs", "--task", "link", *options)
    assert wrong.exit_code == 2 and "needs a single graph" in wrong.stderr
    assert "task 'edges'" in grb("taxonomy", "run", "synth-tiny", "--task", "edges").stderr


@pytest.mark.parametrize("collection", [False, True])
def test_values_of_a_file_are_a_regression_from_end_to_end(grb, grb_json, tmp_path, collection):
    """A file whose labels are numbers: check, run, analyse; robustness and placements refuse it in a sentence."""
    import numpy as np

    generator = np.random.default_rng(0)
    if collection:  # graphs of 6 nodes; the value is the share of edges, some below zero
        sizes = np.full(40, 6)
        pairs = [(u, v, i) for i in range(40) for u in range(6) for v in range(u) if generator.random() < 0.1 + i / 50]
        edges = np.array([[u + 6 * i, v + 6 * i] for u, v, i in pairs]).T
        y = np.bincount([i for _, _, i in pairs], minlength=40) / 15 - 0.5
        arrays = {"edge_index": edges, "y": y, "x": np.ones((240, 1)), "ptr": np.concatenate([[0], np.cumsum(sizes)])}
    else:
        edges = generator.integers(0, 60, (2, 150))
        arrays = {"edge_index": edges, "y": generator.normal(size=60), "x": generator.normal(size=(60, 4))}
    path, store = tmp_path / "values.npz", tmp_path / "store"
    np.savez(path, **arrays)
    options = ("--perturbations", "NoEdges,NodeDeg", "--seeds", 2, "--epochs", 3, "--workers", 0, "--store", store)
    done = grb("taxonomy", "run", path, *options)
    assert done.exit_code == 0, done.stderr
    found = grb_json("taxonomy", "analyse", store, "--n-bootstrap", 9)
    assert found["datasets"] == ["values"] and set(found["perturbations"]) == {"NoEdges", "NodeDeg"}
    checked = grb("data", "check", path)
    assert checked.exit_code == 0 and "predict values of" in checked.stdout
    placed = grb("taxonomy", "place", path, "--runs", store)
    assert placed.exit_code == 2 and "tasks are not mixed" in refusal(placed)
    trained = grb("train", "gcn", "--dataset", path, "-o", tmp_path / "gcn.safetensors")
    assert trained.exit_code in (1, 2) and "values to predict" in trained.stderr


def test_split_weights_and_draw_vary_apart(grb, grb_json, tmp_path):
    """Each alone moves what hangs on it and nothing else; they share no cell, and --where chooses."""
    store = tmp_path / "store"
    base = ("taxonomy", "run", "synth-graphs", "--perturbations", "Frag-k1,LowPass", "--seeds", 2, "--epochs", 2)
    rows = {}
    for part in ("all", "split", "weights", "draw"):
        done = grb(*base, "--vary", part, "--workers", 0, "--store", tmp_path / part)
        assert done.exit_code == 0, done.stderr
        assert grb("store", "verify", tmp_path / part).exit_code == 0
        assert grb_json("store", "copy", tmp_path / part, tmp_path / f"{part}.jsonl")["records"] == 6
        lines = map(json.loads, (tmp_path / f"{part}.jsonl").read_text().splitlines())
        rows[part] = {(row["perturbation"], row["seed"]): row for row in lines}

    def moved(part, name):
        return rows[part][name, 0]["val_auroc"] != rows[part][name, 1]["val_auroc"]

    assert [moved("draw", name) for name in ("-", "LowPass", "Frag-k1")] == [False, False, True]
    assert all(moved(part, "-") for part in ("all", "split", "weights"))
    assert {row["split"] for row in rows["split"].values()} == {0, 1}
    assert {row["split"] for part in ("weights", "draw") for row in rows[part].values()} == {0}
    for part in ("split", "weights", "draw"):  # run 0 is the same run whatever varies
        assert rows[part]["Frag-k1", 0]["auroc"] == rows["all"]["Frag-k1", 0]["auroc"]
    grb(*base, "--vary", "draw", "--workers", 0, "--store", store)
    grb(*base, "--vary", "split", "--workers", 0, "--store", store)
    mixed = grb("taxonomy", "analyse", store)
    assert mixed.exit_code == 2 and "vary" in mixed.stderr
    found = grb_json("taxonomy", "analyse", store, "--where", "vary=draw", "--n-bootstrap", 9)
    assert [row["perturbation"] for row in found["seeds"]] == ["Frag-k1"]
    assert "part of a run 'fold'" in grb(*base, "--vary", "fold").stderr


def test_settings_of_the_training_can_be_given(grb, tmp_path):
    base = ("taxonomy", "run", "synth-tiny", "--perturbations", "NoEdges", "--seeds", 1, "--workers", 0)
    done = grb(*base, "--epochs", 2, "--param", "neighbours=3", "--param", "depth=2", "--store", tmp_path / "store")
    assert done.exit_code == 0, done.stderr
    grb("store", "copy", tmp_path / "store", tmp_path / "runs.jsonl")
    row = json.loads((tmp_path / "runs.jsonl").read_text().splitlines()[0])
    assert row["training.neighbours"] == 3 and row["training.depth"] == 2 and row["training.batch"] == 1024
    twice = grb(*base, "--epochs", 2, "--param", "epochs=3")
    assert twice.exit_code == 2 and "both given" in refusal(twice)
    wrong = grb("taxonomy", "run", "synth-graphs", "--param", "neighbours=3", "--seeds", 1)
    assert wrong.exit_code == 2 and "leave out neighbours" in refusal(wrong)
