from __future__ import annotations

import pytest

from grb import load_dataset
from grb.cli.options import chosen_difficulties, chosen_seeds, settings_of
from grb.errors import DataError, UnknownName


@pytest.mark.parametrize(
    ("seed", "seeds", "expected"),
    [
        (None, None, (0,)),
        (7, None, (7,)),
        (None, "3", (0, 1, 2)),
        (None, "2-4", (2, 3, 4)),
        (None, "0,3,0", (0, 3)),
    ],
)
def test_seeds_are_one_a_number_a_range_or_a_list(seed, seeds, expected):
    assert chosen_seeds(seed, seeds) == expected


@pytest.mark.parametrize("seeds", ["0", "", "-1", "5-2", "1,", "a", "0-99999999999", str(10**7), "1.5", f"0,{2**63}"])
def test_other_seeds_are_refused(seeds):
    with pytest.raises(DataError, match="a number of seeds"):
        chosen_seeds(None, seeds)


def test_settings_are_values_as_a_recipe_has_them():
    given = ["lr=0.01", "epochs=3", "hidden-features=8", "bias=false", "loss=tanh-margin", "range=-1,1.5"]
    assert settings_of(given, "--param") == {
        "lr": 0.01,
        "epochs": 3,
        "hidden_features": [8],
        "bias": False,
        "loss": "tanh-margin",
        "range": [-1, 1.5],
    }


@pytest.mark.parametrize("given", ["lr", "=3", "lr=", "1x=3", "lr=inf", "lr=1,,2"])
def test_other_settings_are_refused(given):
    with pytest.raises(DataError, match="--limit"):
        settings_of([given], "--limit")


def test_difficulties_are_those_of_the_dataset():
    dataset = load_dataset("synth-tiny")
    everything = ["easy", "medium", "hard", "full"]
    assert chosen_difficulties(None, dataset) == chosen_difficulties("all", dataset) == everything
    assert chosen_difficulties("full, easy,full", dataset) == ["full", "easy"]
    with pytest.raises(UnknownName, match="Did you mean 'easy'"):
        chosen_difficulties("eazy", dataset)
