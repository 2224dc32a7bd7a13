from __future__ import annotations

from typing import Any

import pytest

from grb.errors import DataError
from grb.evaluator.score_checks import Flag, check_scores


def names(flags: list[Flag]) -> list[str]:
    return [flag.name for flag in flags]


def test_scores_that_fit_together_raise_nothing() -> None:
    flags = check_scores(
        clean=[0.84, 0.85, 0.84],
        random=[0.82, 0.83, 0.82],
        transfer={"fgsm": [0.64, 0.66, 0.65], "rnd": [0.82, 0.83, 0.82]},
        white_box={"fgsm": [0.36, 0.35, 0.37]},
        by_steps={"fgsm": {10: 0.7, 100: 0.36, 1000: 0.361}},
        huge_budget=0.5,
        without_edges=0.64,
    )
    assert flags == []


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ({"transfer": {"fgsm": 0.3}, "white_box": {"fgsm": 0.5}}, ["transfer-beats-white-box"]),
        ({"transfer": {"fgsm": 0.3, "tdgia": 0.6}, "white_box": {"fgsm": 0.5, "pgd": 0.29}}, []),
        ({"transfer": {"fgsm": 0.499}, "white_box": {"fgsm": 0.5}}, []),
        ({"random": 0.7, "transfer": {"fgsm": 0.6, "tdgia": 0.71}}, ["weaker-than-random"]),
        ({"random": 0.7, "white_box": {"pgd": 0.75}, "clean": 0.74}, ["weaker-than-random", "weaker-than-nothing"]),
        ({"clean": 0.7, "transfer": {"fgsm": 0.701}}, []),
        ({"by_steps": {"pgd": {1000: 0.5, 10: 0.6, 100: 0.4}}}, ["more-steps-weaker"]),
        ({"by_steps": {"pgd": {10: 0.6, 100: 0.4, 1000: 0.4}, "fgsm": {10: 0.3}}}, []),
        ({"huge_budget": 0.8, "without_edges": 0.64}, ["survives-any-budget"]),
        ({"huge_budget": 0.8}, []),
        ({}, []),
    ],
)
def test_scores_that_do_not_fit_together(scores: dict[str, Any], expected: list[str]) -> None:
    assert names(check_scores(**scores)) == expected


def test_differences_within_noise_are_no_warning() -> None:
    white = [0.50, 0.60, 0.55, 0.45]
    # two standard errors of the difference are 2 * hypot(0.0323, 0.0323) = 0.0913
    assert check_scores(transfer={"a": [value - 0.09 for value in white]}, white_box={"a": white}) == []
    assert check_scores(transfer={"a": [value - 0.093 for value in white]}, white_box={"a": white}) != []
    # one value: 2 * sqrt(2 * 0.25 / 100) = 0.141 for 100 targets near one half
    assert check_scores(transfer={"a": 0.45}, white_box={"a": 0.55}, num_targets=100) == []
    assert check_scores(transfer={"a": 0.45}, white_box={"a": 0.55}, num_targets=1000) != []
    assert check_scores(transfer={"a": 0.45}, white_box={"a": 0.55}) != []


def test_sentences_name_the_place_and_the_attacks() -> None:
    (flag,) = check_scores(transfer={"fgsm": 0.3}, white_box={"pgd": 0.5}, where="r-gcn on full")
    assert flag.message == (
        "r-gcn on full: fgsm by transfer leaves accuracy 0.300, but pgd white-box, the strongest with the model's own "
        "gradients, 0.500, which should not be higher by more than noise (0.002); the model's gradients mislead: "
        "check them with check_model, and report the lower number"
    )
    assert flag.numbers == {"transfer": 0.3, "white_box": 0.5, "noise": 0.002}


@pytest.mark.parametrize("wrong", [84.4, -0.1, float("nan"), [], [0.5, 2.0], [[0.5]]])
def test_accuracies_that_are_no_fractions_are_refused(wrong: Any) -> None:
    with pytest.raises(DataError, match="accuracy of fgsm is .*, but fractions from 0 to 1 are needed"):
        check_scores(transfer={"fgsm": wrong})


def test_sentences_name_the_metric_of_the_scores():
    (flag,) = check_scores(clean=0.2, transfer={"gcn": 0.6}, metric="recall:1")
    assert "gcn by transfer leaves recall:1 0.600, no attack 0.200" in flag.message
