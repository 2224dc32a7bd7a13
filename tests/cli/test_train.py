from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from grb import api, evaluate, load_dataset, load_model, trainer
from grb.defense.base import Training
from grb.errors import DataError
from grb.pipeline import Recipe, Spec, Store, plan_study

from .conftest import refusal

TINY = ("--dataset", "synth-tiny", "--param", "epochs=4")


def test_same_seed_gives_identical_numbers(grb_json):
    first, second = (grb_json("train", "gcn", *TINY, "--seed", 3)["runs"][0] for _ in range(2))
    for run in (first, second):
        run.pop("seconds")
    assert first == second
    assert first["seed"] == 3


def test_json_agrees_with_the_python_interface(grb_json):
    result = grb_json("train", "gcn", *TINY, "-p", "hidden_features=8,8", "-p", "lr=0.02", "-p", "dropout=0.1")
    dataset = load_dataset("synth-tiny")
    options = {"epochs": 4, "lr": 0.02, "hidden_features": [8, 8], "dropout": 0.1}
    model = api.train("gcn", dataset, seed=0, **options)
    assert result["runs"][0]["scores"] == evaluate(model, dataset)
    assert result["runs"][0]["parameters"] == sum(weight.numel() for weight in model.parameters())
    assert result["dataset"] == {"name": "synth-tiny", "synthetic": True, "fingerprint": dataset.fingerprint()}
    assert (result["threads"], result["device"], result["train_mode"]) == (1, "cpu", "inductive")


def test_threads_are_chosen_by_size_or_a_note_says_that_more_are_slower(grb, grb_json, monkeypatch):
    assert grb_json("train", "gcn", *TINY, "--threads", "auto")["threads"] == 1
    done = grb("train", "gcn", *TINY, "--threads", "2", "--json")
    assert json.loads(done.stdout)["threads"] == 2
    assert "2 threads are slower than one; --threads auto chooses" in done.stderr
    monkeypatch.setattr("grb.graph.threads.FROM_NODES", 10)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1})
    done = grb("train", "gcn", *TINY, "--threads", "auto", "--json")
    assert json.loads(done.stdout)["threads"] == 2
    assert "slower" not in done.stderr


def test_every_model_is_trained_with_every_seed(grb, grb_json):
    arguments = ("train", "gcn", "mlp", "gcn", *TINY, "--seeds", 2)
    result = grb_json(*arguments)
    assert [(run["model"], run["seed"]) for run in result["runs"]] == [("gcn", 0), ("gcn", 1), ("mlp", 0), ("mlp", 1)]
    scores = [run["scores"]["full"] for run in result["runs"][:2]]
    summary = result["summary"][0]["scores"]["full"]
    assert summary["mean"] == pytest.approx(sum(scores) / 2)
    assert summary["std"] == pytest.approx(abs(scores[0] - scores[1]) / 2)
    done = grb(*arguments)
    assert done.stdout.startswith("synth-tiny (synthetic), inductive: accuracy in %, mean ± std of 2 seeds\n")
    assert "[4/4] mlp seed 1: " in done.stderr


def test_one_seed_has_no_deviation(grb, grb_json):
    arguments = ("train", "gcn", *TINY)
    assert grb_json(*arguments)["summary"][0]["scores"]["easy"]["std"] is None
    assert "±" not in grb(*arguments).stdout


def test_one_difficulty(grb_json):
    assert list(grb_json("train", "mlp", *TINY, "--difficulty", "hard")["runs"][0]["scores"]) == ["hard"]


def test_transductive_training_differs(grb_json):
    inductive, other = (
        grb_json("train", "gcn", *TINY, "--train-mode", mode)["runs"][0] for mode in ("inductive", "transductive")
    )
    assert inductive["scores"] != other["scores"] or inductive["best_val_score"] != other["best_val_score"]


def test_running_again_in_a_store_resumes_and_shares_the_jobs_of_recipes(grb, grb_json, tmp_path, monkeypatch):
    arguments = ("train", "gcn", *TINY, "--seeds", "0-1", "--store", tmp_path / "store")
    first = grb_json(*arguments)
    monkeypatch.setattr(Training, "fit_with_history", lambda *args, **options: pytest.fail("trained again"))
    assert grb_json(*arguments) == first
    made = Recipe("mine", "synth-tiny", defenses=(Spec("gcn", {"epochs": 4}),), attacks=(Spec("rnd"),), victims=2)
    planned = {key for key, job in plan_study(made).jobs.items() if job.spec == Spec("gcn", {"epochs": 4})}
    assert planned == {record.key for record in Store(tmp_path / "store").records() if record.job.kind == "fit"}


def test_without_a_store_nothing_is_left_behind(grb_json, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("GRB_HOME", str(tmp_path / "home"))
    grb_json("train", "mlp", *TINY)
    assert list(tmp_path.iterdir()) == []


def test_one_run_is_saved_to_a_file(grb_json, tmp_path):
    file = tmp_path / "new" / "gcn.safetensors"
    result = grb_json("train", "gcn+ln", *TINY, "-o", file)
    assert result["runs"][0]["saved"] == str(file)
    assert evaluate(load_model(file), load_dataset("synth-tiny")) == result["runs"][0]["scores"]


def test_several_runs_are_saved_to_a_directory(grb_json, tmp_path):
    grb_json("train", "gcn", "mlp", *TINY, "--seeds", 2, "-o", tmp_path / "models")
    assert sorted(file.name for file in (tmp_path / "models").iterdir()) == [
        f"{model}-synth-tiny-seed{seed}.safetensors" for model in ("gcn", "mlp") for seed in (0, 1)
    ]


@pytest.mark.parametrize(
    "model, sentence",
    [
        ("gcn-jacard", "no model 'gcn-jacard'."),
        ("gcn+at+at-full", "model 'gcn+at+at-full' asks for two kinds of adversarial training"),
        ("mlp-cosine", "an mlp uses no edges, so cutting some changes nothing"),
        ("grand+ln", "model 'grand+ln' does not take 'layer_norm'"),
    ],
)
def test_defenses_that_fit_nothing_are_refused(grb, model, sentence):
    done = grb("train", model, "--dataset", "synth-tiny")
    assert done.exit_code == 2
    assert refusal(done).startswith(sentence)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["-p", "lr=nan"], "--param is 'lr=nan', but only finite numbers are possible"),
        (["-p", "lr=0"], "lr is 0, but"),
        (["-p", "epochs=-3"], "epochs is -3, but"),
        (["-p", "patience=0"], "patience is 0, but"),
        (["-p", "epochs"], "--param is 'epochs', but NAME=VALUE is needed, for instance --param lr=0.01"),
        (["-p", "epochs=2", "-p", "epochs=3"], "--param gives epochs twice"),
        (["-p", "epoch=2"], "model 'gcn' does not take 'epoch'; did you mean 'epochs'? It takes "),
        (["--threads", "0"], "--threads is 0, but at least 1 is needed"),
        (["--threads", "many"], "--threads is 'many', but a number or auto is needed"),
        (["--seeds", "0"], "--seeds is '0', but a number of seeds (5), a range (0-4) or a list (0,3) is needed"),
        (["--seeds", "4-0"], "--seeds is '4-0', but"),
        (["--seeds", "a"], "--seeds is 'a', but"),
        (["--seed", str(2**63)], "--seed is 9223372036854775808, but"),
        (["--seed", "1", "--seeds", "2"], "--seed and --seeds were both given"),
        (["-p", "dropout=2"], "dropout is 2, but must be at least 0 and below 1"),
        (["--train-mode", "both"], "--train-mode is 'both', but inductive or transductive"),
        (["--difficulty", "eazy"], "no difficulty 'eazy'. Did you mean 'easy'?"),
        (["--device", "abacus"], "device 'abacus' cannot be used here"),
        (["-p", "epochs=many"], "epochs is many, but a whole number of at least 1 is needed"),
        (["-p", "hidden_features=64,,64"], "--param is 'hidden_features=64,,64', but a value is missing"),
        (["-p", "hidden_features=0"], "hidden sizes are [0], but"),
    ],
)
def test_bad_values_are_refused_in_one_sentence(grb, arguments, sentence):
    done = grb("train", "gcn", "--dataset", "synth-tiny", *arguments)
    assert done.exit_code == 2
    assert refusal(done).startswith(sentence)


def test_unknown_names_are_refused_before_any_training(grb):
    done = grb("train", "gcn", "mlpp", "--dataset", "synth-tiny")
    assert done.exit_code == 2
    assert refusal(done) == "no model 'mlpp'. Did you mean 'mlp'? `grb ls models` shows all names."
    done = grb("train", "gcn", "--dataset", "synth-tinny")
    assert done.exit_code == 2
    assert refusal(done) == "no dataset 'synth-tinny'. Did you mean 'synth-tiny'? `grb ls datasets` shows all names."


def test_one_file_for_several_runs_is_refused(grb, tmp_path):
    done = grb("train", "gcn", *TINY, "--seeds", 2, "-o", tmp_path / "gcn.safetensors")
    assert done.exit_code == 2
    assert refusal(done).startswith("--output is one file, but there are 2 runs")
    assert list(tmp_path.iterdir()) == []


def test_unwritable_place_is_refused_before_training_and_left_as_it_was(grb, tmp_path):
    (tmp_path / "file").write_text("mine")
    done = grb("train", "gcn", *TINY, "-o", tmp_path / "file" / "deep" / "gcn.safetensors")
    assert done.exit_code == 2
    assert refusal(done).endswith(f"{tmp_path / 'file'} is not a directory; choose another location")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a directory that refuses files")
def test_a_place_that_only_looks_writable_is_refused_before_training(grb):
    done = grb("train", "gcn", *TINY, "-o", "/proc/self/gcn.safetensors")
    assert done.exit_code == 2 and "cannot write /proc/self/gcn.safetensors" in refusal(done)


def test_a_split_is_told_in_words(grb):
    done = grb("train", "gcn", "--dataset", "synth-graphs", "--split", 10, "-p", "epochs=1")
    assert "split 10: fold 0 of 0 to 9, drawn anew from seed 124" in done.stderr


def test_failed_write_still_shows_the_scores(grb, monkeypatch, tmp_path):
    def full_disk(*args, **options):
        raise DataError("cannot write it: No space left on device; choose another location")

    monkeypatch.setattr("grb.cli.train.write_atomic", full_disk)
    done = grb("train", "gcn", *TINY, "-o", tmp_path / "gcn.safetensors", "--json")
    assert done.exit_code == 1
    (run,) = json.loads(done.stdout)["runs"]
    assert run["scores"] and run["saved"] is None and "No space left" in run["error"]
    assert list(tmp_path.iterdir()) == []


def test_failed_training_is_reported_and_the_others_go_on(grb, monkeypatch):
    real = Training.fit_with_history

    def diverging_at_seed_0(self, view, *, seed):
        if seed == 0:
            raise trainer.loop.TrainingError("the training loss became nan in epoch 1; try a smaller learning rate")
        return real(self, view, seed=seed)

    monkeypatch.setattr(Training, "fit_with_history", diverging_at_seed_0)
    done = grb("train", "gcn", *TINY, "--seeds", 2)
    assert done.exit_code == 1
    assert "gcn seed 0: FAILED: the training loss became nan" in done.stderr
    assert "gcn seed 1: easy" in done.stderr
    assert "1 of 2" in done.stdout
