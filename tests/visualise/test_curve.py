from __future__ import annotations

import math

import pytest

from grb.attack import Step
from grb.errors import DataError
from grb.visualise import curve, draw_curve, save
from grb.visualise.curve import Curve

STEPS = [Step(0.5, 1.0), Step(math.inf, 0.25), Step(0.75, 0.25), Step(0.5, 0.5)]


def test_curve_counts_from_one_and_leaves_gaps_where_the_loss_is_not_finite():
    data = curve(STEPS)
    assert data.steps == (1, 2, 3, 4)
    assert data.loss[0] == 0.5 and math.isnan(data.loss[1])
    assert data.kept == (1.0, 0.25, 0.25, 0.5)
    assert data.lowest == 2


def test_an_attack_without_steps_has_no_curve():
    with pytest.raises(DataError, match="has no curve"):
        curve([])


def test_both_panels_show_the_data_in_words_that_can_be_read():
    figure = draw_curve(curve(STEPS), title="fgsm on a graph")
    above, below = figure.axes
    assert (above.get_ylabel(), below.get_ylabel(), below.get_xlabel()) == ("loss", "clean labels kept (%)", "step")
    assert list(below.lines[0].get_ydata()) == [100, 25, 25, 50]
    assert list(below.lines[0].get_xdata()) == [1, 2, 3, 4]
    assert [text.get_text() for text in below.texts] == ["lowest 25.0 at step 2"]
    assert figure.get_suptitle() == "fgsm on a graph"


def test_a_single_step_is_drawn_as_a_point(tmp_path):
    figure = draw_curve(curve(STEPS[:1]))
    assert figure.axes[0].lines[0].get_marker() == "o"
    assert save(figure, tmp_path / "one.png").stat().st_size > 1000


def test_evenly_spaced_steps_keep_their_numbers():
    data = Curve((0.1, 0.2, 0.3), (1.0, 0.2, 0.5), total=101)
    assert data.steps == (1, 51, 101) and data.lowest == 51
