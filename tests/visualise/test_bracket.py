"""Certified and attacked accuracy over the budget."""

from __future__ import annotations

import json

import pytest

from grb.errors import DataError, IntegrityError
from grb.evaluator.board import CLEAN, Run, board_from_runs
from grb.leaderboard.page import build_page
from grb.visualise import board_brackets, bracket, draw_bracket


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


def certified_board(**changes):
    """A board of one defense with a clean accuracy of .9, one attack that leaves .7, and a certificate."""
    rows = [
        Run(CLEAN, "gcn+known", "full", 0, 0, 0.9, 0.0, "none"),
        Run("fgsm", "gcn+known", "full", 0, 0, 0.7, 0.2, "transfer"),
    ]
    about = {
        "defense": "gcn+known",
        "difficulty": "full",
        "seed": 0,
        "own_model": True,
        "refusal": "",
        "unit": "injected nodes",
        "budget": 3,
        "curve": {"0": 0.88, "1": 0.8, "3": 0.6},
    }
    listed = [{**about, **changes}]
    return board_from_runs(
        rows, dataset="d", scenario="injection", difficulties=("full",), meta={"certificates": listed}
    )


def test_a_board_gives_the_bracket_of_every_defense_with_a_certificate():
    (found,) = board_brackets([certified_board()], "full").values()
    assert found.unit == "injected nodes"
    assert (found.budgets, found.certified) == ((0, 1, 3), (0.88, 0.8, 0.6))
    assert found.attacked == pytest.approx((0.9, 0.9, 0.7))
    more = certified_board(budget=5, curve={"5": 0.5})
    (both,) = board_brackets([certified_board(), more], "full").values()
    assert both.budgets == (0, 1, 3, 5) and both.certified[-1] == 0.5


@pytest.mark.parametrize(
    "changes",
    [
        {"own_model": False},
        {"refusal": "no"},
        {"difficulty": "easy"},
        {"curve": {"one": 0.5}},
        {"curve": {"1": float("nan")}},
        {"curve": "all"},
        {"budget": -1},
        {"defense": "other"},
    ],
)
def test_what_is_of_another_model_or_no_number_is_left_out(changes):
    assert board_brackets([certified_board(**changes)], "full") == {}


def test_the_page_shows_the_bracket_in_numbers_and_as_a_drawing():
    page = build_page([certified_board()])
    assert "Certified and attacked, over the budget" in page
    assert "60.0 to 70.0" in page and "88.0 to 90.0" in page
    assert page.count("<polyline") == 2
    assert "<polyline" not in build_page([certified_board(own_model=False)])
