"""What is certified and what attacks left, over the budget, as the page shows it: a table and a small drawing per board."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grb.evaluator.board import Board
from grb.evaluator.bracket import Bracket, board_brackets
from grb.leaderboard.text import sanitize

WIDTH, HEIGHT, LEFT, BOTTOM = 320, 150, 34, 22


@dataclass(frozen=True)
class Row:
    """One defense: its name, "certified to attacked" at every budget, and the corners of its two lines and their band."""

    defense: str
    cells: tuple[str, ...]
    attacked: str
    certified: str
    band: str


@dataclass(frozen=True)
class BracketTable:
    """The brackets of one board and difficulty.

    Args:
        title: Of the board and its targets.
        unit: What is counted.
        budgets: Columns.
        rows: Defenses.
        ticks: Place of every budget in the drawing.
    """

    title: str
    unit: str
    budgets: tuple[int, ...]
    rows: tuple[Row, ...]
    ticks: tuple[float, ...]


def bracket_tables(boards: Sequence[Board]) -> list[BracketTable]:
    """One table for every board, difficulty and unit that has certificates of defenses themselves."""
    found = []
    for board in boards:
        for difficulty in board.difficulties:
            brackets = board_brackets([board], difficulty)
            for unit in dict.fromkeys(each.unit for each in brackets.values()):
                own = {name: each for name, each in brackets.items() if each.unit == unit}
                title = f"{board.meta.get('title') or board.dataset}, {difficulty}"
                found.append(_table(sanitize(title, 160), sanitize(unit), own))
    return found


def _table(title: str, unit: str, brackets: dict[str, Bracket]) -> BracketTable:
    budgets = tuple(sorted({at for each in brackets.values() for at in each.budgets}))
    rows = tuple(_row(name, each, budgets) for name, each in brackets.items())
    return BracketTable(title, unit, budgets, rows, tuple(_x(number, len(budgets)) for number in range(len(budgets))))


def _row(name: str, data: Bracket, budgets: Sequence[int]) -> Row:
    points = dict(zip(data.budgets, zip(data.certified, data.attacked, strict=True), strict=True))
    cells = tuple(f"{100 * points[at][0]:.1f} to {100 * points[at][1]:.1f}" if at in points else "-" for at in budgets)
    places = {at: _x(number, len(budgets)) for number, at in enumerate(budgets)}
    low, high = ([f"{places[at]},{_y(pair[side])}" for at, pair in points.items()] for side in (0, 1))
    return Row(sanitize(name), cells, " ".join(high), " ".join(low), " ".join([*high, *reversed(low)]))


def _x(number: int, count: int) -> float:
    return round(LEFT + (WIDTH - LEFT - 10) * number / max(count - 1, 1), 1)


def _y(value: float) -> float:
    return round(8 + (HEIGHT - BOTTOM - 8) * (1 - value), 1)
