from __future__ import annotations

from dataclasses import replace

import pytest

from grb.evaluator.board import Run, board_from_runs
from grb.leaderboard.curves import budget_curves, cost_points, query_curves
from made_boards import made_board


def board_at(nodes: int, *, fgsm: float, recipe: str = "sweep"):
    rows = [
        Run("none", "gcn", "full", 0, 0, 0.8, 0.0, "none"),
        *(Run("fgsm", "gcn", "full", repeat, 0, fgsm, 0.1) for repeat in (0, 1)),
        *(Run("rnd", "gcn", "full", repeat, 0, 0.7, 0.1) for repeat in (0, 1)),
    ]
    return board_from_runs(
        rows, dataset="d", scenario="injection", difficulties=["full"], limit=("nodes", nodes), meta={"recipe": recipe}
    )


def test_a_line_goes_through_all_boards_of_a_sweep_and_no_others():
    boards = [board_at(60, fgsm=0.3), board_at(20, fgsm=0.5), board_at(40, fgsm=0.1, recipe="other"), made_board()]
    found = budget_curves(boards[0], boards, "full")
    assert found == {
        "limit": "nodes",
        "at": 60.0,
        "lines": [{"name": "gcn", "points": [[20.0, 0.6], [60.0, 0.5]]}],  # means of fgsm and rnd
    }
    assert budget_curves(made_board(), boards, "full") is None


def test_a_line_over_queries_begins_with_the_clean_graph_and_never_rises():
    asked = [(100, 0.6), (400, 0.65), (1600, 0.3)]
    rows = [Run("none", "gcn", "full", 0, 0, 0.8, 0.0, "none"), Run("none", "mlp", "full", 0, 0, 0.6, 0.0, "none")]
    rows += [
        Run("search", "gcn", "full", repeat, 0, score, 0.1, "query", metadata={"queries": queries})
        for repeat, (queries, score) in enumerate(asked)
    ]
    board = board_from_runs(rows, dataset="d", scenario="injection", difficulties=["full"])
    assert query_curves(board, "full") == [
        {"name": "gcn", "points": [[0.0, 0.8], [100.0, 0.6], [400.0, 0.6], [1600.0, 0.3]]}
    ]
    assert query_curves(made_board(), "full") == []


def test_attacks_stand_at_their_cost_and_the_mean_of_what_they_leave():
    board = made_board()
    points = {each["name"]: each for each in cost_points(board, "easy")}
    assert set(points) == {"tdgia", "fgsm", "rnd", "pgd (white-box)"} and points["pgd (white-box)"]["white"] == 1
    left = [board.cell("fgsm", defense, "easy").score.mean for defense in board.defenses]
    assert points["fgsm"]["at"] == [1.5, pytest.approx(sum(left) / 4, abs=1e-5)]
    free = [replace(cell, metadata=tuple({} for _ in cell.metadata)) for cell in board.cells]
    assert cost_points(replace(board, cells=tuple(free)), "easy") == []
