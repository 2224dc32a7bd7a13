from __future__ import annotations

import pytest

import grb
from grb.defense import build_defense
from grb.errors import GRBError


@pytest.mark.parametrize(
    ("attack", "kind"),
    [("dice", "Modification"), ("fgsm", "Injection"), ({"name": "pgd", "iterations": 3}, "Injection")],
)
def test_the_attack_of_adversarial_training_can_be_named(attack, kind):
    made = build_defense("gcn+at", "synth-tiny", attack=attack, epochs=4, warm_up=1)
    assert callable(made.attack) and type(made.threat).__name__ == kind
    made.fit(grb.load_dataset("synth-tiny").defender_view(), seed=0)


@pytest.mark.parametrize(
    ("attack", "words"),
    [("dcie", "Did you mean 'dice'"), (3, "but a name of `grb ls attacks`"), ("metattack", "poisons training data")],
)
def test_an_attack_that_cannot_train_anything_is_refused_before_the_training(attack, words):
    with pytest.raises(GRBError, match=words):
        build_defense("gcn+at", "synth-tiny", attack=attack)
