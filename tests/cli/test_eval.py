from __future__ import annotations

import json

import pytest
import torch

from grb import GraphEdit, evaluate, load_dataset, load_model, save_model, train
from grb.model.torch import GCN

from .conftest import refusal


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    dataset = load_dataset("synth-tiny")
    model = train("gcn", dataset, epochs=5)
    path = tmp_path_factory.mktemp("models") / "gcn.safetensors"
    return save_model(model, path, dataset="synth-tiny", fingerprint=dataset.fingerprint())


def test_the_checkpoint_knows_its_dataset(grb, grb_json, checkpoint):
    result = grb_json("eval", checkpoint)
    assert result["dataset"]["name"] == "synth-tiny"
    assert result["scores"] == {"clean": evaluate(load_model(checkpoint), load_dataset("synth-tiny"))}
    done = grb("eval", checkpoint, "--dataset", "synth-tiny")
    assert done.stdout.startswith("gcn on synth-tiny (synthetic): accuracy in %\n")
    assert done.stderr == ""


def test_an_edit_is_applied_and_the_change_is_shown(grb, grb_json, checkpoint, tmp_path):
    dataset = load_dataset("synth-tiny")
    edges = dataset.graph.adj.edges()
    edit = GraphEdit(n=dataset.num_nodes, drop=edges[:, ::2])
    edit.save(tmp_path / "edit.npz")
    result = grb_json("eval", checkpoint, "--edit", tmp_path / "edit.npz")
    assert result["scores"]["edited"] == evaluate(load_model(checkpoint), dataset, edit)
    assert result["edit"]["edges_dropped"] == edit.drop.shape[1]
    done = grb("eval", checkpoint, "--edit", tmp_path / "edit.npz")
    assert "change" in done.stdout
    assert "limits of the edit were not checked here" in done.stderr


def test_json_stays_json_beside_notes(grb, checkpoint, tmp_path):
    GraphEdit(n=load_dataset("synth-tiny").num_nodes).save(tmp_path / "edit.npz")
    done = grb("eval", checkpoint, "--edit", tmp_path / "edit.npz", "--json")
    scores = json.loads(done.stdout)["scores"]
    assert scores["clean"] == scores["edited"]


@pytest.mark.parametrize("what, wrong", [("features", (1, 0)), ("classes", (0, 1))])
def test_a_model_of_another_shape_does_not_fit(grb, tmp_path, what, wrong):
    dataset = load_dataset("synth-tiny")
    shape = {"features": dataset.num_features, "classes": dataset.num_classes}
    path = save_model(GCN(shape["features"] + wrong[0], shape["classes"] + wrong[1]), tmp_path / "other.safetensors")
    done = grb("eval", path, "--dataset", "synth-tiny")
    assert done.exit_code == 2
    assert refusal(done) == (
        f"{path} is a gcn for {shape[what] + 1} {what}, but dataset 'synth-tiny' has {shape[what]}; "
        "give the dataset it was trained on with --dataset"
    )


@pytest.mark.parametrize(
    "name, sentence",
    [
        ("nowhere.safetensors", "no model file"),
        ("text.safetensors", "is not a safetensors file"),
    ],
)
def test_missing_and_foreign_files(grb, tmp_path, name, sentence):
    (tmp_path / "text.safetensors").write_text("not a model")
    done = grb("eval", tmp_path / name)
    assert done.exit_code == 2
    assert sentence in refusal(done)


def test_missing_edit(grb, checkpoint, tmp_path):
    done = grb("eval", checkpoint, "--edit", tmp_path / "no.npz")
    assert done.exit_code == 2
    assert "no.npz" in refusal(done)


def test_a_file_may_not_choose_code_to_import(grb, checkpoint, tmp_path):
    path = save_model(load_model(checkpoint), tmp_path / "evil.safetensors", dataset="antigravity:anything")
    done = grb("eval", path)
    assert done.exit_code == 2
    assert "names code 'antigravity:anything' as its dataset" in refusal(done)


def test_a_file_without_dataset_asks_for_one(grb, checkpoint, tmp_path):
    path = save_model(load_model(checkpoint), tmp_path / "bare.safetensors")
    done = grb("eval", path)
    assert done.exit_code == 2
    assert refusal(done).endswith("give one with --dataset")
    assert grb("eval", path, "--dataset", "synth-tiny").exit_code == 0


def test_other_data_under_the_same_name_is_warned_about(grb, checkpoint, tmp_path):
    model = load_model(checkpoint)
    path = save_model(model, tmp_path / "old.safetensors", dataset="synth-tiny", fingerprint="0" * 64)
    done = grb("eval", path)
    assert done.exit_code == 0
    assert done.stderr.startswith("warning: ")


def test_threads_are_set(grb_json, checkpoint):
    assert grb_json("eval", checkpoint, "--threads", 1)["threads"] == torch.get_num_threads() == 1


def test_checks_are_silent_about_an_honest_model(grb, grb_json, checkpoint):
    assert grb_json("eval", checkpoint)["warnings"] is None
    assert grb_json("eval", checkpoint, "--checks")["warnings"] == []
    done = grb("eval", checkpoint, "--checks")
    assert "Warnings" not in done.stdout
    assert done.stderr == "checks: nothing suspicious about the model's randomness, outputs and gradients\n"


def test_checks_show_what_is_wrong_with_a_model(grb, grb_json, checkpoint, monkeypatch):
    forward = GCN.forward
    monkeypatch.setattr(GCN, "forward", lambda self, x, op: torch.softmax(forward(self, x.detach(), op), 1))
    found = grb_json("eval", checkpoint, "--checks")["warnings"]
    assert [flag["name"] for flag in found] == ["probabilities-not-logits", "zero-gradient", "masked-gradient"]
    assert found[1]["numbers"] == {"targets": 1.0, "injected": 1.0, "rows": 16}
    done = grb("eval", checkpoint, "--checks")
    assert done.exit_code == 0
    assert "Warnings" in done.stdout and "\nzero-gradient" in done.stdout
    assert "look for detach()" in done.stdout
