"""Graph classification on the command line: train, attack and eval with one fold, and what is refused."""

from __future__ import annotations

import pytest

from grb import evaluate, load_dataset, load_model, run_attack, save_model, train

from .conftest import refusal

SPLIT = 3


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """GIN on fold 3 and GCN on fold 4 of synth-graphs."""
    place = tmp_path_factory.mktemp("models")
    found = {}
    for name, split in (("gin", SPLIT), ("gcn", SPLIT + 1)):
        dataset = load_dataset("synth-graphs").with_split(split)
        meta = {"dataset": dataset.name, "fingerprint": dataset.fingerprint(), "split": split}
        found[name] = save_model(train(name, dataset, epochs=4), place / f"{name}.safetensors", **meta)
    return found


def test_train_saves_the_split_and_eval_finds_it(grb_json, tmp_path):
    file = tmp_path / "gin.safetensors"
    result = grb_json("train", "gin", "-d", "synth-graphs", "--split", SPLIT, "--param", "epochs=4", "-o", file)
    (run,) = result["runs"]
    assert result["split"] == SPLIT and run["model"] == "gin-pool"
    expected = evaluate(
        train("gin", load_dataset("synth-graphs").with_split(SPLIT), epochs=4),
        load_dataset("synth-graphs").with_split(SPLIT),
    )
    assert run["scores"] == dict(expected)
    assert grb_json("eval", file)["results"][0]["values"] == {"accuracy": dict(expected)}


@pytest.mark.parametrize("attack", ["fga", "rnd"])
def test_attack_and_eval_agree_with_the_python_interface(grb_json, models, tmp_path, attack):
    edit = tmp_path / "edit.npz"
    result = grb_json("attack", attack, "--model", models["gin"], "--seed", 2, "-o", edit)
    dataset, model = load_dataset("synth-graphs").with_split(SPLIT), load_model(models["gin"])
    expected = run_attack(attack, model, dataset, seed=2)
    (run,) = result["runs"]
    attacked = evaluate(model, dataset, expected)["full"]
    assert run["budget"] == expected.budget and run["budget"]["graphs"] == dataset.num_test
    assert run["victims"][0]["attacked"] == attacked
    _, edited = grb_json("eval", models["gin"], edit)["results"]
    assert edited["values"] == {"accuracy": {"full": attacked}}


def test_a_surrogate_of_graphs_is_trained_for_a_transfer(grb_json, models):
    result = grb_json("attack", "fga", "--surrogate", "gcn", "--victim", models["gin"], "--limit", "edge_ratio=0.2")
    assert result["attacked"]["model"] == "gcn-pool" and result["knowledge"] == "transfer"
    assert result["runs"][0]["threat"]["edge_ratio"] == 0.2


REFUSED = {
    ("eval", "gin", "--dataset", "synth-tiny"): "classifies graphs, but 'synth-tiny' has nodes",
    ("attack", "fga", "--model", "gin", "--figures", "figures"): "--figures draws attacked nodes",
    ("attack", "fga", "--model", "gin", "--victim", "gcn"): "trained on the splits 3, 4 of 'synth-graphs'",
    ("attack", "fga", "--model", "gin", "--difficulty", "easy"): "no easy test set",
    ("train", "gin+at", "-d", "synth-graphs"): "leave '+at' out",
    ("train", "gin-pool", "-d", "synth-tiny"): "leave '-pool' out",
    ("train", "gin", "-d", "synth-tiny", "--split", 1): "has one split only",
    ("train", "gin", "-d", "synth-graphs", "--split", -1): "must be 0 or more",
    ("train", "gin", "-d", "synth-graphs", "--train-mode", "transductive"): "leave it out",
}


@pytest.mark.parametrize("words", REFUSED, ids=lambda words: "-".join(map(str, words)))
def test_bad_combinations_get_one_sentence(grb, models, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    done = grb(*(models.get(word, word) if word in ("gin", "gcn") and words[0] != "train" else word for word in words))
    assert done.exit_code == 2
    assert REFUSED[words] in refusal(done)
    assert not list(tmp_path.iterdir())


def test_figures_of_nodes_are_left_out_with_a_reason(grb_json, tmp_path):
    from grb.pipeline import Recipe, Spec, Store, plan_study
    from grb.pipeline.worker import Worker

    given = {"attacks": (Spec("rnd-edges"),), "modes": ("full",), "repeats": 1, "training": {"epochs": 1}}
    worker = Worker(Store(tmp_path / "store"))
    for job in plan_study(Recipe("few", "synth-graphs", "modification", **given)).jobs.values():
        worker.do(job)
    done = grb_json("figures", tmp_path / "store", "-o", tmp_path / "figures")
    reasons = {each["figure"]: each["reason"] for each in done["skipped"]}
    for name in ("degrees", "degree-accuracy", "unnoticeability"):
        assert "has graphs to classify" in reasons[name]
    assert done["files"]
