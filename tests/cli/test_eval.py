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
    (clean,) = result["results"]
    assert clean["values"] == {"accuracy": evaluate(load_model(checkpoint), load_dataset("synth-tiny"))}
    done = grb("eval", checkpoint, "--dataset", "synth-tiny")
    assert done.stdout.startswith("gcn on synth-tiny (synthetic): accuracy in %\n")
    assert done.stderr == ""


def test_every_edit_is_applied_and_its_change_is_shown(grb, grb_json, checkpoint, tmp_path):
    dataset, model = load_dataset("synth-tiny"), load_model(checkpoint)
    edges = dataset.graph.adj.edges()
    edits = [GraphEdit(n=dataset.num_nodes, drop=edges[:, ::2]), GraphEdit(n=dataset.num_nodes)]
    files = [tmp_path / "half.npz", tmp_path / "none.npz"]
    for edit, file in zip(edits, files, strict=True):
        edit.save(file)
    clean, half, none = grb_json("eval", checkpoint, *files)["results"]
    assert [each["graph"] for each in (clean, half, none)] == ["clean", *map(str, files)]
    assert half["values"]["accuracy"] == evaluate(model, dataset, edits[0])
    assert half["edit"]["edges_dropped"] == edits[0].drop.shape[1] and clean["edit"] is None
    assert none["values"] == clean["values"] and none["changed"]["full"] == 0.0 < half["changed"]["full"]
    done = grb("eval", checkpoint, *files, "--difficulty", "easy,full")
    table = [line.split() for line in done.stdout.splitlines() if line]
    assert table[1] == ["graph", "easy", "full"]
    assert [row[0] for row in table[3:]] == ["clean", "half.npz", "change", "none.npz", "change"]
    drop = 100 * (half["values"]["accuracy"]["full"] - clean["values"]["accuracy"]["full"])
    assert table[5][2] == f"{drop:+.2f}" and table[7] == ["change", "+0.00", "+0.00"]
    assert "limits of the edits were not checked here" in done.stderr


def test_metrics_are_chosen_by_name(grb, grb_json, checkpoint):
    (clean,) = grb_json("eval", checkpoint, "--metrics", "recall:1,auroc", "-d", "synth-tiny")["results"]
    assert clean["values"] == evaluate(
        load_model(checkpoint), load_dataset("synth-tiny"), metrics=["recall:1", "auroc"]
    )
    assert list(clean["values"]) == ["accuracy", "recall:1", "auroc"]
    lines = grb("eval", checkpoint, "--metrics", "recall:1").stdout.splitlines()
    assert lines[1].split()[:2] == ["metric", "graph"] and lines[4].split()[:2] == ["recall:1", "clean"]
    done = grb("eval", checkpoint, "--metrics", "recal:1")
    assert done.exit_code == 2 and "Did you mean 'recall'?" in refusal(done)


def test_a_custom_metric_is_shown_as_it_is(grb, checkpoint, tmp_path, monkeypatch):
    (tmp_path / "my_metrics.py").write_text("def small(logits, decisions, labels):\n    return len(labels) / 1e6\n")
    monkeypatch.syspath_prepend(tmp_path)
    lines = grb("eval", checkpoint, "--metrics", "my_metrics:small", "--difficulty", "full").stdout.splitlines()
    targets = len(load_dataset("synth-tiny").test_ids("full"))
    assert lines[0].endswith(": metrics in %, my_metrics:small as it is")
    assert lines[4].split() == ["my_metrics:small", "clean", f"{targets / 1e6:.4g}"]


def test_json_stays_json_beside_notes(grb, checkpoint, tmp_path):
    GraphEdit(n=load_dataset("synth-tiny").num_nodes).save(tmp_path / "edit.npz")
    done = grb("eval", checkpoint, tmp_path / "edit.npz", "--json")
    clean, edited = json.loads(done.stdout)["results"]
    assert clean["values"] == edited["values"]


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
    done = grb("eval", checkpoint, tmp_path / "no.npz")
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


@pytest.mark.parametrize("command", ["eval", "audit", "certify", "attack"])
def test_a_model_of_own_data_asks_for_its_path(grb, checkpoint, tmp_path, command):
    path = save_model(load_model(checkpoint), tmp_path / "mine.safetensors", dataset="accounts")
    done = grb(*(("attack", "pgd", "--model", path) if command == "attack" else (command, path)))
    assert done.exit_code == 2
    said = "was trained on 'accounts', which is no dataset by name; give it by its path, as in --dataset ./accounts"
    assert refusal(done).endswith(said)


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
