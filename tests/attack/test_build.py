"""Attacks by name, with the settings of the paper's Table 12."""

from __future__ import annotations

from typing import Any

import pytest

from grb.attack.build import build_attack, default_threat_model, preset_name
from grb.attack.injection import FGSM, RND, SPEIT, TDGIA
from grb.dataset import load_dataset
from grb.errors import DataError, UnknownName
from grb.threat import Injection, Modification


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


def test_limits_are_known_by_the_preset_that_they_are() -> None:
    dataset = load_dataset("synth-tiny")
    for threat, mode, name in (
        (Injection.preset("synth-tiny", "easy"), "easy", "paper"),
        (Injection.preset(dataset, "easy"), "easy", "data"),
        (Injection.preset(dataset, "full"), "easy", "custom"),
        (Injection(1, 1, (0, 1)), "full", "custom"),
        (default_threat_model("modification", dataset, "full"), "full", "default"),
        (Modification(edges=1), "full", "custom"),
    ):
        assert preset_name(threat.to_dict(), dataset, mode) == name


def test_limits_of_graphs_have_one_preset() -> None:
    graphs = load_dataset("synth-graphs")
    assert preset_name(default_threat_model("injection", graphs, "full").to_dict(), graphs, "full") == "default"
    assert preset_name(Injection(9, 9, (0, 1)).to_dict(), graphs, "full") == "custom"
