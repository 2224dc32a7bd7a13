from __future__ import annotations

import itertools

import numpy as np
import pytest

from grb.leaderboard import palette

# Machado, Oliveira and Fernandes 2009, severity 1, applied to linear RGB
DEFICIENCIES = {
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


@pytest.mark.parametrize("anchors", [palette.CIVIDIS, palette.DIVERGING])
def test_letters_are_readable_on_every_step(anchors):
    assert min(palette.contrast(palette.ink(colour), colour) for colour in palette.scale(anchors)) >= 4.5


@pytest.mark.parametrize("deficiency", ["none", *DEFICIENCIES])
def test_the_sequential_scale_becomes_lighter_step_by_step_for_everybody(deficiency):
    matrix = np.array(DEFICIENCIES.get(deficiency, np.eye(3)))
    seen = [matrix @ linear(colour) for colour in palette.scale(palette.CIVIDIS)]
    light = [float(np.clip(each, 0, 1) @ [0.2126, 0.7152, 0.0722]) for each in seen]
    assert all(one < other for one, other in itertools.pairwise(light))


@pytest.mark.parametrize("deficiency", ["none", *DEFICIENCIES])
def test_the_two_ends_of_the_diverging_scale_differ_for_everybody(deficiency):
    matrix = np.array(DEFICIENCIES.get(deficiency, np.eye(3)))
    steps = palette.scale(palette.DIVERGING)
    for below, above in ((0, 16), (3, 13)):
        apart = matrix @ linear(steps[below]) - matrix @ linear(steps[above])
        assert np.abs(apart).max() > 0.05


def test_the_scale_keeps_its_anchors_and_every_step_has_a_class():
    steps = palette.scale(palette.CIVIDIS)
    assert len(steps) == palette.STEPS
    assert steps[::2] == list(palette.CIVIDIS)
    rules = palette.rules()
    assert all(f".{prefix}{step}{{" in rules for prefix in "sd" for step in range(palette.STEPS))


def test_contrast_is_that_of_the_guidelines():
    # worked out in the understanding document of success criterion 1.4.3
    assert palette.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert palette.contrast("#0000ff", "#ffffff") == pytest.approx(8.59, abs=0.01)
