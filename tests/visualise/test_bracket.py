"""Certified and attacked accuracy over the budget."""

from __future__ import annotations

import json

import pytest

from grb.errors import DataError, IntegrityError
from grb.visualise import bracket, draw_bracket


def test_each_side_speaks_at_budgets_of_the_other():
    found = bracket({1: 0.8, 5: 0.5}, {0: 0.9, 3: 0.85, 8: 0.6}, unit="injected nodes")
    assert found.budgets == (0, 1, 3, 5, 8)
    assert found.certified == (0.8, 0.8, 0.5, 0.5, 0.0)
    assert found.attacked == (0.9, 0.9, 0.85, 0.85, 0.6)
    assert found.gap == pytest.approx((0.1, 0.1, 0.35, 0.35, 0.6))
    points = json.loads(json.dumps(found.to_dict()))["points"]
    assert points[1] == {"budget": 1, "certified": 0.8, "attacked": 0.9, "gap": pytest.approx(0.1)}


def test_an_attack_below_a_certain_certificate_is_an_integrity_error():
    with pytest.raises(IntegrityError, match=r"left 70.00 % at 1 changed edges, but 80.00 % are certified"):
        bracket({2: 0.8}, {0: 0.9, 1: 0.7}, unit="changed edges")
    assert bracket({2: 0.8}, {0: 0.9, 1: 0.7}, unit="changed edges", certain=False).gap[1] == pytest.approx(-0.1)
    with pytest.raises(DataError, match="no budget 0"):
        bracket({2: 0.8}, {1: 0.7}, unit="changed edges")


def test_a_band_is_drawn_for_every_model():
    found = bracket({1: 0.8}, {0: 0.9, 1: 0.85}, unit="injected nodes")
    axes = draw_bracket({"gcn+known": found, "gcn": found}, title="both").axes[0]
    assert len(axes.lines) == 4 and len(axes.collections) == 2
    assert list(axes.lines[0].get_ydata()) == [90.0, 85.0]
    assert list(axes.lines[1].get_ydata()) == [80.0, 80.0]
    with pytest.raises(DataError, match="no brackets"):
        draw_bracket({})
