"""Attacks by name, with the settings of the paper's Table 12."""

from __future__ import annotations

from typing import Any

import pytest

from grb.attack.build import build_attack
from grb.attack.injection import FGSM, RND, SPEIT, TDGIA
from grb.errors import DataError, UnknownName


@pytest.mark.parametrize(
    ("name", "dataset", "expected"),
    [
        ("fgsm", "grb-cora", {"step_size": 0.01, "steps": 1000}),
        ("pgd", "grb-flickr", {"step_size": 0.01, "steps": 2000}),
        ("tdgia", "grb-aminer", {"lr": 0.01, "steps": 5000, "inject_mode": "tdgia", "sequential_step": 0.2}),
        ("speit", "grb-reddit", {"lr": 0.01, "steps": 2000, "preset": "grb"}),
        ("fgsm", "a dataset of my own", {"step_size": 0.01, "steps": 1000}),
    ],
)
def test_settings_of_the_paper(name: str, dataset: str, expected: dict[str, Any]) -> None:
    made = build_attack(name, dataset)
    assert {key: getattr(made, key) for key in expected} == expected


def test_general_names_reach_every_iterative_attack() -> None:
    assert build_attack("fgsm", "grb-cora", iterations=7, step=0.5) == FGSM(n_epoch=7, epsilon=0.5)
    assert build_attack("tdgia", "grb-cora", iterations=7, step=0.5) == TDGIA(n_epoch=7, lr=0.5)
    assert build_attack("fgsm", "grb-cora", n_epoch=7, epsilon=0.5) == FGSM(n_epoch=7, epsilon=0.5)
    assert build_attack("rnd", "grb-cora") == build_attack("random", "grb-cora") == RND()
    assert build_attack("grb.attack.injection.fgsm:FGSM", "grb-cora") == FGSM()
    with pytest.raises(DataError, match="attack 'rnd' has no iterations; leave that out"):
        build_attack("rnd", "grb-cora", iterations=7)


def test_the_cup_entry_keeps_its_own_step_and_iterations() -> None:
    """Table 12 is GRB's: its rate of 0.01 would leave Adadelta where it starts."""
    assert build_attack("speit", "grb-cora", preset="kddcup") == SPEIT(preset="kddcup")
    assert build_attack("speit", "grb-flickr", preset="grb") == SPEIT(lr=0.01, n_epoch=2000)
    assert build_attack("speit", "grb-cora", preset="kddcup", iterations=3) == SPEIT(preset="kddcup", n_epoch=3)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'tdgia'"):
        build_attack("tdiga", "grb-cora")
    with pytest.raises(UnknownName, match="Did you mean 'iterations'") as refused:
        build_attack("fgsm", "grb-cora", iteration=3)
    assert "n_inject_max" not in str(refused.value)
    with pytest.raises(UnknownName, match="parameter of attack 'fgsm'.*Did you mean 'step_size'"):
        build_attack("fgsm", "grb-cora", step_sizes=1)


def test_limits_belong_to_the_threat_model() -> None:
    with pytest.raises(DataError, match=r"n_inject_max is a limit.*give threat=Injection"):
        build_attack("fgsm", "grb-cora", n_inject_max=3)
