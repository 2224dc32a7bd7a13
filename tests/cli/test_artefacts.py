"""Published names on the command line, wherever a file of a model or an edit is taken."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from grb import artefacts
from grb.pipeline import published

from .conftest import refusal

pytestmark = pytest.mark.skipif(
    published.where(artefacts.bundles()["synth-tiny"]) is None, reason="synth-tiny.zip is not in this checkout"
)
MODEL, EDIT = "synth-tiny/gcn+ln", "synth-tiny/auto(victim=gcn+ln, labels=true)"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file of this directory has such a name, and the cache is empty."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRB_HOME", str(tmp_path / "home"))


def test_what_is_published_is_listed_with_clean_and_worst_accuracy(grb, grb_json):
    shown = grb("ls", "artefacts").stdout
    assert "synth-tiny: Worst case of injections on synth-tiny" in shown
    bundle = artefacts.bundles()["synth-tiny"]
    (found,) = [each for each in grb_json("ls", "artefacts")["artefact"] if each["name"] == "synth-tiny"]
    assert found["sha256"] == bundle.sha256 and found["where"].endswith("synth-tiny.zip")
    assert [each["name"] for each in found["models"]] == [each.name for each in bundle.models]
    model = next(each for each in found["models"] if each["name"] == "gcn+ln" and each["seed"] == 0)
    assert 0 <= model["worst_case"]["full"] < model["clean"]["full"] <= 1
    line = next(line for line in shown.splitlines() if line.startswith("synth-tiny/gcn+ln+at "))
    own = [each for each in bundle.models if each.name == "gcn+ln+at"]
    for number in ("clean", "worst_case"):
        assert f"{100 * sum(getattr(each, number)['full'] for each in own) / len(own):.2f}" in line
    assert grb("ls", "artefact", "--markdown").stdout.startswith("| bundle | study |")


def test_nothing_published_is_said(grb, grb_json, tmp_path, monkeypatch):
    monkeypatch.setattr(artefacts, "folder", lambda: tmp_path / "nowhere")
    assert grb("ls", "artefacts").stderr == "nothing is published with this version\n"
    assert grb_json("ls", "artefacts") == {"artefact": []}


def test_eval_takes_published_models_and_edits(grb_json):
    found = grb_json("eval", MODEL, EDIT, "synth-tiny/fgsm")
    bundle = artefacts.bundles()["synth-tiny"]
    own = next(each for each in bundle.models if each.name == "gcn+ln" and each.seed == 0)
    clean, attacked, _ = (each["values"]["accuracy"]["full"] for each in found["results"])
    assert clean == pytest.approx(own.clean["full"], abs=0.02)
    assert attacked < clean and found["model"] == "gcn+ln"
    assert [Path(each["graph"]).name for each in found["results"][1:]] == [
        "auto-gcn+ln-training0-true-full-seed0.npz",
        "fgsm-gcn-training1000-full-seed0.npz",
    ]


def test_attack_takes_published_models(grb_json):
    found = grb_json("attack", "rnd", "fgsm", "--model", MODEL, "--param", "iterations=2")
    assert {run["attack"] for run in found["runs"]} == {"rnd", "fgsm"}
    victims = ["--victim", f"{MODEL}+at", "--victim", "synth-tiny/mlp"]
    found = grb_json("attack", "fgsm", "--model", MODEL, *victims, "--param", "iterations=2")
    assert found["knowledge"] == "transfer"
    assert [each["victim"] for each in found["runs"][0]["victims"]] == ["gcn+ln+at-seed0", "mlp-seed0"]


@pytest.mark.parametrize(
    "line",
    [
        ["detect", "synth-tiny/fgsm", "--dataset", "synth-tiny", "--detector", "degree"],
        ["replay", "synth-tiny/rnd", "--dataset", "synth-tiny", "--repeats", "1", "--epochs", "1"],
        ["certify", MODEL, "--certificate", "bi-smoothing", "--param", "samples=20"],
        ["tune", "fgsm", "--model", MODEL, "--dataset", "synth-tiny", "--epochs", "1", "--trials", "1"],
        ["store", "verify", "synth-tiny"],
        ["audit", MODEL, "--effort", "quick", "--scenario", "injection", "--budget", "injection=1"]
        + ["--no-corruptions", "--surrogates", "none"],
    ],
    ids=lambda line: line[0],
)
def test_every_verb_that_takes_a_file_takes_a_published_name(grb_json, line):
    if line[0] == "tune":
        pytest.importorskip("optuna")
    assert grb_json(*line)


def test_a_file_of_this_directory_comes_first(grb, grb_json, tmp_path):
    made = tmp_path / MODEL
    made.parent.mkdir()
    shutil.copy(published.resolved("synth-tiny/mlp", "model"), made)
    assert grb_json("eval", MODEL)["model"] == "mlp"
    made.write_bytes(b"\x80\x04pickle")
    assert "is not a safetensors file" in refusal(grb("eval", MODEL))
    shutil.rmtree(made.parent)
    assert grb_json("eval", MODEL)["model"] == "gcn+ln"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["eval", "synth-tiny/gnc+ln"], "no published model 'synth-tiny/gnc+ln'. Did you mean 'synth-tiny/gcn+ln'?"),
        (["eval", "synth-tny/gcn"], "no published bundle 'synth-tny'. Did you mean 'synth-tiny'?"),
        (["eval", "gcn"], "no model file gcn; `grb train MODEL -o FILE` writes one"),
        (["eval", MODEL, "synth-tiny/auto"], "'synth-tiny/auto' has 5 edits; choose one by victim"),
        (["eval", MODEL, "synth-tiny/auto("], "has brackets that do not close"),
        (["attack", "fgsm", "--model", "synth-tiny/gcn+ln(seed=9)"], "has no training of seed 9; it has seeds 0, 1"),
        (["certify", "synth-tiny/nothing"], "no published model 'synth-tiny/nothing'"),
        (["detect", "synth-tiny/none", "--dataset", "synth-tiny"], "no published attack 'synth-tiny/none'"),
        (["store", "verify", "synth-tny"], "no store synth-tny"),
    ],
    ids=" ".join,
)
def test_other_names_are_refused_in_one_sentence(grb, line, words):
    done = grb(*line)
    assert done.exit_code == 2
    assert words in refusal(done)


def test_a_bundle_of_other_bytes_ends_with_the_code_of_integrity(grb, tmp_path, monkeypatch):
    bundle = artefacts.bundles()["synth-tiny"]
    wrong = tmp_path / "data" / "artefacts" / bundle.file
    wrong.parent.mkdir(parents=True)
    wrong.write_bytes(bytes(bundle.bytes))
    monkeypatch.setattr(published, "places", lambda bundle: [wrong, tmp_path / "cache" / bundle.file])
    for line in (["eval", MODEL], ["store", "verify", "synth-tiny"]):
        done = grb(*line)
        assert done.exit_code == 3
        assert f"{wrong} has sha256" in refusal(done)
    wrong.unlink()
    done = grb("eval", MODEL)
    assert done.exit_code == 2 and "is not on this machine" in refusal(done)
