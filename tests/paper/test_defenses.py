"""The committed ten-seed study of the defenses on grb-cora keeps what was asked of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from grb.metric import confidence_interval
from grb.pipeline.results import paper_table

ROOT = Path(__file__).parents[2]
VANILLA = ("gcn", "graphsage", "sgcn", "tagcn", "gat", "appnp", "gin")


@pytest.fixture(scope="module")
def study(monkeypatch_module):
    import defended

    return defended, defended.read()


@pytest.fixture(scope="module")
def monkeypatch_module():
    before = list(sys.path)
    sys.path.insert(0, str(ROOT / "benchmarks"))
    yield
    sys.path[:] = before


def test_ten_trainings_of_every_defense(study):
    _, scores = study
    names = {f"{model}{suffix}" for model in VANILLA for suffix in ("", "+ln", "+at")}
    assert names | {"r-gcn", "r-gcn+at", "gatguard", "gcnguard", "gcn-svd"} <= scores.keys()
    assert all(len(trainings) == 10 for trainings in scores.values())


def test_no_defense_of_table_13_is_more_than_two_points_below_the_paper(study):
    defended, scores = study
    paper = paper_table("grb-cora")
    above = set()
    for name in defended.TABLE_13:
        ours = sum(row["none"] for row in scores[name].values()) / len(scores[name])
        printed = paper["none", name, "full"][0]
        assert ours >= printed - 2, name
        if ours > printed + 2:
            above.add(name)
    told = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8").lower()
    assert above - {"appnp+ln"} == {"gin+ln", "gin+at", "gatguard"}
    assert all(name in told for name in above)


def test_layer_norm_gains_five_points_for_at_least_five_models(study):
    defended, scores = study
    means = {model: sum(defended.gain(scores, f"{model}+ln", model)) / 10 for model in VANILLA}
    assert sum(gain >= 5 for gain in means.values()) >= 5, means


def test_adversarial_training_gains_for_at_least_five_models(study):
    defended, scores = study
    lows = {model: confidence_interval(defended.gain(scores, f"{model}+at", model)).low for model in VANILLA}
    assert sum(low > 0 for low in lows.values()) >= 5, lows
