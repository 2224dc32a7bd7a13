"""What charts of a page draw: accuracy over a varied limit and over the number of queries, strength of attacks over cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grb.evaluator.board import CLEAN, Board
from grb.leaderboard.table import costs
from grb.leaderboard.text import distinct, rounded, sanitize


def budget_curves(board: Board, boards: Sequence[Board], difficulty: str) -> dict[str, Any] | None:
    """Accuracy of every defense over the limit that a board varies: the mean over attacks, run by run.

    Args:
        board: One board of a sweep; None is given back for any other.
        boards: All boards of the page; those of the same study and limit are the points of the lines.
        difficulty: Which targets.
    """
    if board.limit is None:
        return None
    from grb.visualise.budget import sweeps

    same = [each for each in boards if each.limit is not None and _study(each) == _study(board)]
    (found,) = sweeps([each for each in same if difficulty in each.difficulties], difficulty)
    names = list(found.models)
    return {
        "limit": sanitize(found.limit.replace("_", " ")),
        "at": rounded(board.limit[1]),
        "lines": [
            {
                "name": label,
                "points": [[rounded(value), rounded(own.mean, 5)] for value, own in found.models[name].items()],
            }
            for label, name in zip(distinct(names), names, strict=True)
        ],
    }


def _study(board: Board) -> tuple[str, ...]:
    assert board.limit is not None
    return str(board.meta.get("recipe")), board.dataset, board.scenario, board.limit[0]


def query_curves(board: Board, difficulty: str) -> list[dict[str, Any]]:
    """What is left of every defense after so many questions: the lowest accuracy of any attack that asked no more often.

    A line begins with the clean accuracy, for which nobody has to ask.
    """
    lines = []
    for label, defense in zip(distinct(board.defenses), board.defenses, strict=True):
        asked = sorted(
            (float(run["queries"]), value)
            for cell in board.cells
            if cell.defense == defense and cell.difficulty == difficulty
            for run, value in zip(cell.metadata, cell.values)
            if isinstance(run.get("queries"), int) and not isinstance(run["queries"], bool)
        )
        clean = board.cell(CLEAN, defense, difficulty)
        if not asked or clean is None:
            continue
        points = [[0.0, clean.score.mean]]
        for queries, value in asked:
            points.append([queries, min(value, points[-1][1])])
        lines.append({"name": label, "points": [[rounded(x), rounded(y, 5)] for x, y in points]})
    return lines


def cost_points(board: Board, difficulty: str) -> list[dict[str, Any]]:
    """Attacks by their CPU seconds and by the accuracy that they leave, the mean over defenses."""
    spent = costs(board)
    points = []
    for names, white in ((board.attacks, False), (board.white_box, True)):
        for label, name in zip(distinct(names), names, strict=True):
            cells = [board.cell(name, defense, difficulty, white_box=white) for defense in board.defenses]
            left = [cell.score.mean for cell in cells if cell is not None]
            seconds = spent.get((name, difficulty, white))
            if name != CLEAN and left and seconds:
                points.append(
                    {
                        "name": f"{label} (white-box)" if white else label,
                        "white": int(white),
                        "at": [rounded(seconds, 4), rounded(sum(left) / len(left), 5)],
                    }
                )
    return points
