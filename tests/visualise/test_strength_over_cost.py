from __future__ import annotations

import pytest

from grb.errors import DataError
from grb.visualise import draw_strength_over_cost, save, strength_over_cost

TRIALS = [
    {"cpu_seconds": 0.0, "kept": 1.0},
    {"cpu_seconds": 1.0, "kept": 0.5},
    {"cpu_seconds": 2.0, "kept": None},
    {"cpu_seconds": 1.0, "kept": 0.75},
    {"cpu_seconds": 4.0, "kept": 0.25},
]


def test_the_curve_is_of_the_strongest_so_far_and_failures_cost_time():
    data = strength_over_cost(TRIALS)
    assert data.seconds == (0.0, 1.0, 3.0, 4.0, 8.0)
    assert data.kept == (1.0, 0.5, 0.5, 0.5, 0.25)


def test_every_victim_is_drawn_and_named(tmp_path):
    figure = draw_strength_over_cost({"gcn": strength_over_cost(TRIALS), "gat": strength_over_cost(TRIALS[:2])})
    (axes,) = figure.axes
    assert [line.get_label() for line in axes.lines] == ["gcn", "gat"]
    assert list(axes.lines[0].get_ydata()) == [50, 50, 50, 25]
    assert save(figure, tmp_path / "cost.png").stat().st_size > 1000


def test_without_trials_there_is_nothing_to_draw():
    with pytest.raises(DataError, match="without trials"):
        strength_over_cost([])
    with pytest.raises(DataError, match="no curves"):
        draw_strength_over_cost({})
