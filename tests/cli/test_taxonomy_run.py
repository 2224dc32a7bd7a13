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
