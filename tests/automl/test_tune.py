"""Searches: reproducible, resumable, better than chance would have it, and blind to the test nodes."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import grb
from grb.automl import AutoTrainer, TuningResult, default_space, recipe_of, space_of, tune
from grb.automl.space import settings_of
from grb.dataset import Dataset
from grb.errors import DataError, GRBError
from grb.model.torch import GCN
from grb.pipeline.plan import plan_study
from grb.pipeline.recipe import parse_recipe
from grb.visualise import draw_search, search

pytest.importorskip("optuna", reason="needs optuna: pip install optuna")
SMALL = {
    "width": {"choice": [4, 8]},
    "dropout": {"low": 0.0, "high": 0.9},
    "lr": {"low": 1e-4, "high": 0.1, "log": True},
}


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return grb.load_dataset("synth-tiny")


def values(found: TuningResult) -> list[tuple[Any, ...]]:
    return [(dict(each.values), each.score, each.state) for each in found.trials]


def test_the_same_seed_finds_the_same_and_the_best_is_the_best(dataset: Dataset) -> None:
    options: dict[str, Any] = {"space": space_of(SMALL), "trials": 6, "epochs": 8}
    first, again = tune("gcn", dataset, **options), tune("gcn", dataset, **options)
    assert values(first) == values(again) and len(first.trials) == 6
    scores = [each.score for each in first.trials if each.score is not None]
    assert first.best.score == max(scores) and first.so_far[-1] == max(scores)
    assert values(first) != values(tune("gcn", dataset, **options, seed=1))
    model = grb.train("gcn", dataset, **first.settings)
    assert first.settings["epochs"] == 8
    assert model.params["hidden_features"] == first.settings["hidden_features"]


def test_a_search_in_two_pieces_is_one_search(dataset: Dataset, tmp_path: Path) -> None:
    options: dict[str, Any] = {"space": space_of(SMALL), "epochs": 5}
    whole = tune("gcn", dataset, **options, trials=6)
    storage = f"sqlite:///{tmp_path / 'tune.db'}"
    tune("gcn", dataset, **options, trials=2, storage=storage)
    told: list[int] = []
    rest = tune("gcn", dataset, **options, trials=6, storage=storage, on_trial=lambda tried: told.append(tried.number))
    assert values(rest) == values(whole) and told == [2, 3, 4, 5]


SCRIPT = """
import sys
import grb
from grb.automl import space_of, tune
from automl.test_tune import SMALL
def tell(tried):
    print(tried.number, flush=True)
tune("gcn", grb.load_dataset("synth-tiny"), space=space_of(SMALL), epochs=5, trials=6, storage=sys.argv[1], on_trial=tell)
"""


def test_a_search_that_was_killed_is_resumed(dataset: Dataset, tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'tune.db'}"
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    with subprocess.Popen([sys.executable, "-c", SCRIPT, storage], stdout=subprocess.PIPE, env=environment) as running:
        assert running.stdout is not None
        running.stdout.readline()
        time.sleep(0.02)
        running.send_signal(signal.SIGKILL)
    options: dict[str, Any] = {"space": space_of(SMALL), "epochs": 5, "trials": 6}
    assert values(tune("gcn", dataset, **options, storage=storage)) == values(tune("gcn", dataset, **options))


def test_bad_trainings_are_given_up(dataset: Dataset) -> None:
    space = space_of({"lr": {"choice": [1e-6, 0.05]}})
    found = tune("gcn", dataset, space=space, trials=16, epochs=60, sampler="random")
    given_up = [each for each in found.trials if each.state == "pruned"]
    assert given_up and all(each.values["lr"] == 1e-6 and each.score is None for each in given_up)
    assert found.best.values["lr"] == 0.05 and math.isclose(found.so_far[-1], found.best.score or 0)


def test_an_attack_is_tuned_to_be_strong(dataset: Dataset) -> None:
    model = grb.train("gcn", dataset, epochs=40)
    space = space_of({"step": {"choice": [1e-6, 0.1]}})
    found = tune("pgd", dataset, kind="attacks", space=space, trials=4, epochs=10, model=model, sampler="random")
    by_step = {each.values["step"]: each.score for each in found.trials}
    assert found.best.values["step"] == 0.1 and by_step[0.1] < by_step[1e-6]  # type: ignore[operator]
    with pytest.raises(DataError, match="give model="):
        tune("pgd", dataset, kind="attacks", trials=1)


@pytest.mark.parametrize("against", ["fgsm", "dice"])
def test_models_may_be_judged_by_what_an_attack_leaves_of_the_validation_nodes(dataset: Dataset, against: str) -> None:
    options: dict[str, Any] = {"space": space_of(SMALL), "trials": 3, "epochs": 15}
    clean, attacked = tune("gcn", dataset, **options), tune("gcn", dataset, against=against, **options)
    assert attacked.to_dict()["against"] == against and "against" not in clean.to_dict()
    assert clean.trials[0].values == attacked.trials[0].values  # the same search, judged otherwise
    assert sum(each.score or 0 for each in attacked.trials) < sum(each.score or 0 for each in clean.trials)
    assert values(attacked) == values(tune("gcn", dataset, against=against, **options))
    # a graph-free model loses nothing
    flat = {"space": space_of({"lr": {"choice": [0.01]}}), "trials": 1, "epochs": 15}
    assert tune("mlp", dataset, against=against, **flat).best.score == pytest.approx(
        tune("mlp", dataset, **flat).best.score
    )


def test_tuning_against_an_attack_sees_no_test_node(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    whole = Dataset.attacker_view
    monkeypatch.setattr(Dataset, "attacker_view", lambda self, mode=None: (seen.append(1), whole(self, mode))[1])
    tune("gcn", dataset, space=space_of(SMALL), trials=1, epochs=2, against="fgsm")
    assert not seen


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"against": "metattack"}, "poisons training data"),
        ({"against": "fgsm", "kind": "attacks", "model": GCN(24, 4)}, "attacks are tuned here"),
        ({"against": "no-such"}, "no attack 'no-such'"),
    ],
)
def test_attacks_that_cannot_judge_a_model_are_refused(dataset: Dataset, options: Any, sentence: str) -> None:
    with pytest.raises(GRBError, match=sentence):
        tune("gcn", dataset, space=space_of(SMALL), trials=1, **options)


def test_what_was_found_is_a_recipe(dataset: Dataset) -> None:
    found = [tune(name, dataset, space=space_of(SMALL), trials=2, epochs=3) for name in ("gcn", "gat+ln")]
    recipe = parse_recipe(recipe_of(found), name="tuned")
    assert [spec.name for spec in recipe.defenses] == ["gcn", "gat+ln"]
    study = plan_study(recipe.changed(repeats=1))
    assert any(job.spec.params.get("lr") == found[0].settings["lr"] for job in study.jobs.values())


def test_every_space_that_comes_with_grb_builds_its_method(dataset: Dataset) -> None:
    class Middle:
        def suggest_categorical(self, name: str, choices: Any) -> Any:
            return choices[0]

        def suggest_int(self, name: str, low: int, high: int, *, log: bool = False) -> int:
            return low

        def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
            return (low + high) / 2

    from grb.attack.build import build_attack
    from grb.defense import build_defense

    for name in (
        "gcn",
        "gat",
        "gatguard",
        "gcnguard",
        "appnp",
        "sgcn",
        "sgc",
        "tagcn",
        "gin",
        "graphsage",
        "r-gcn",
        "mlp",
        "gcn+ln",
    ):
        drawn = {key: each.suggest(Middle(), key) for key, each in default_space("models", name).items()}
        model = build_defense(name, "synth-tiny", epochs=1, **settings_of(drawn)).fit(dataset.defender_view(), seed=0)
        assert sum(parameter.numel() for parameter in model.parameters())
    for name in ("fgsm", "pgd", "speit", "tdgia"):
        drawn = {key: each.suggest(Middle(), key) for key, each in default_space("attacks", name).items()}
        assert build_attack(name, "synth-tiny", **drawn)
    with pytest.raises(DataError, match="no space for attack 'rnd'"):
        default_space("attacks", "rnd")


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"lr": 0.1}, "is needed"),
        ({"lr": {"choice": []}}, "a list of values"),
        ({"lr": {"low": 1}}, "a low and a high end"),
        ({"lr": {"low": 1, "high": 1}}, "a lower and a higher end"),
        ({"lr": {"low": math.nan, "high": 1}}, "a lower and a higher end"),
        ({"lr": {"low": 0, "high": 1, "log": True}}, "must begin above 0"),
        ({"lr": {"lo": 0, "high": 1}}, "no key in the space of lr 'lo'"),
        ({"k": {"low": 2, "high": 8, "step": 2}}, "only 1, for whole numbers"),
        ({"lr": {"low": 1, "high": 2, "log": "no"}}, "true or false"),
        ({"lr": {"choice": [1], "low": 1}}, "give one of them"),
    ],
)
def test_a_space_that_makes_no_sense_is_refused(given: Any, word: str) -> None:
    with pytest.raises(GRBError, match=word):
        space_of(given)


def test_auto_trainer_as_in_the_benchmark(dataset: Dataset) -> None:
    def params_search(trial: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        width = trial.suggest_categorical("width", [4, 16])
        return {"hidden_features": [width]}, {"lr": trial.suggest_float("lr", 1e-3, 0.1, log=True), "n_epoch": 20}

    auto = AutoTrainer(GCN, dataset, params_search, n_trials=4)
    model = auto.run()
    assert model is auto.best_model and 0.3 < auto.best_score <= 1
    assert auto.best_params[0]["hidden_features"][0] in (4, 16)
    from grb.utils import trainer

    assert trainer.AutoTrainer is AutoTrainer


def test_the_figure_shows_every_trial(dataset: Dataset) -> None:
    found = tune("gcn", dataset, space=space_of(SMALL), trials=3, epochs=3)
    data = search(found)
    assert data.scores == tuple(each.score for each in found.trials) and set(data.values) == set(SMALL)
    figure = draw_search(data)
    assert len(figure.axes) == 1 + len(SMALL)


def test_other_settings_are_another_search(dataset: Dataset, tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'tune.db'}"
    options: dict[str, Any] = {"trials": 2, "storage": storage}
    short = tune("gcn", dataset, space=space_of(SMALL), epochs=2, **options)
    longer = tune("gcn", dataset, space=space_of(SMALL), epochs=12, **options)
    assert values(short) != values(longer)
    tune("gcn", dataset, space=space_of({"width": {"choice": [3]}}), epochs=2, **options)


def test_why_trials_fail_is_told(dataset: Dataset) -> None:
    for space, word in (({"foo": {"low": 1, "high": 2}}, "foo"), ({"lr": {"choice": ["abc"]}}, "lr is abc")):
        with pytest.raises(DataError, match=f"no trial of 'gcn' was finished: .*{word}"):
            assert tune("gcn", dataset, space=space_of(space), trials=1, epochs=2).best
    with pytest.raises(DataError, match="cannot be opened"):
        tune("gcn", dataset, space=space_of(SMALL), trials=1, storage="nonsense")


def with_random_test_features(dataset: Dataset) -> Dataset:
    """The same dataset, but whoever looks at its test nodes sees noise."""
    x = dataset.features.clone()
    test = dataset.split.test["full"]
    x[test] = torch.randn(len(test), x.shape[1], generator=torch.Generator().manual_seed(1))
    parts = {"train": dataset.index_train, "val": dataset.index_val, "test": test}
    return Dataset.from_arrays(dataset.adj, x, dataset.labels, split=parts)


def test_an_auto_trainer_does_not_see_test_nodes(dataset: Dataset) -> None:
    def params_search(trial: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"hidden_features": [8]}, {"lr": 0.02, "n_epoch": 15}

    scores = []
    for data in (dataset, with_random_test_features(dataset)):
        auto = AutoTrainer(GCN, data, params_search, n_trials=1)
        auto.run()
        scores.append(auto.best_score)
    assert scores[0] == scores[1]


def test_an_auto_trainer_takes_arguments_of_the_trainer_too(dataset: Dataset) -> None:
    def params_search(trial: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"hidden_features": [8]}, {"n_epoch": 40, "early_stop": True, "early_stop_patience": 1, "seed": 3}

    auto = AutoTrainer(GCN, dataset, params_search, n_trials=2)
    auto.run()
    assert auto.best_fit is not None and auto.best_fit.epochs < 40
