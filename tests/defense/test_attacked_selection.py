"""Adversarial training by any attack by name, with the margin loss and the epoch chosen under attack."""

from __future__ import annotations

import pytest
import torch

import grb
from grb.defense import build_defense
from grb.defense.adversarial import AdversarialTraining, AttackedSelection
from grb.errors import DataError
from grb.threat import Modification

SMALL = {"epochs": 4, "warm_up": 1, "hidden_features": [8], "seed": 0}


@pytest.mark.parametrize("attack", ["pr-bcd", "lr-bcd", "dice"])
def test_modification_by_name_trains_with_five_per_cent_of_the_edges(attack: str) -> None:
    built = build_defense("gcn+at", "synth-tiny", attack=attack)
    assert isinstance(built, AdversarialTraining)
    assert built.threat == Modification(edge_ratio=0.05)
    assert getattr(built.attack, "steps", 20) == 20
    model = grb.train("gprgnn+at", grb.load_dataset("synth-tiny"), attack={"name": attack}, **SMALL)
    assert model.title == "gprgnn+at"


def test_steps_that_are_given_stay() -> None:
    built = build_defense("gcn+at", "synth-tiny", attack={"name": "pr-bcd", "iterations": 3})
    assert built.attack.steps == 3  # type: ignore[attr-defined]


def test_plain_adversarial_training_is_described_as_before() -> None:
    assert type(build_defense("gcn+at", "synth-tiny")) is AdversarialTraining
    assert type(build_defense("gcn+at", "synth-tiny", select="attacked")) is AttackedSelection


def test_attacked_validation_is_lower_and_chooses_its_own_best_epoch() -> None:
    dataset = grb.load_dataset("synth-tiny")
    options = {"epochs": 12, "warm_up": 4, "hidden_features": [8], "seed": 0, "start": "full-range"}
    _, clean = grb.train_with_history("gcn+at", dataset, **options)
    _, attacked = grb.train_with_history("gcn+at", dataset, select="attacked", **options)
    assert attacked.best_score < clean.best_score
    late = [epoch for epoch in attacked.history if epoch.number >= 4]
    assert attacked.best_score == max(epoch.val_score for epoch in late)
    # the warm-up validates the clean graph in both
    assert [e.val_score for e in attacked.history[:4]] == [e.val_score for e in clean.history[:4]]


def test_the_margin_loss_is_bounded_and_trains_other_weights() -> None:
    dataset = grb.load_dataset("synth-tiny")
    own, fit = grb.train_with_history("gcn+at", dataset, loss="tanh-margin", **SMALL)
    assert all(-1 <= epoch.loss <= 1 for epoch in fit.history)
    plain = grb.train("gcn+at", dataset, **SMALL)
    assert not torch.equal(next(own.parameters()), next(plain.parameters()))


@pytest.mark.parametrize("changes", [{"loss": "hinge"}, {"select": "both"}])
def test_unknown_choices_are_refused(changes: dict[str, str]) -> None:
    with pytest.raises(DataError, match="is needed"):
        build_defense("gcn+at", "synth-tiny", **changes)
    with pytest.raises(DataError, match="add '\\+at'"):
        build_defense("gcn", "synth-tiny", **changes)
