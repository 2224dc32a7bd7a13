"""The small chart on a board's card: what the best defenses keep, as shapes of an SVG without any script."""

from __future__ import annotations

from dataclasses import dataclass

from grb.evaluator.board import CLEAN, Board
from grb.leaderboard.table import ordered
from grb.leaderboard.text import sanitize

ROWS, ROW_HEIGHT, LEFT, WIDTH = 5, 20, 96, 320
SHORTEST = 13


@dataclass(frozen=True)
class Row:
    """One defense: its name, the height of its line, and the places of its marks."""

    name: str
    title: str
    y: float
    clean: float | None
    weighted: float | None
    worst: float | None

    @property
    def ends(self) -> tuple[float, float]:
        """Where the line between the marks begins and ends."""
        places = [place for place in (self.clean, self.weighted, self.worst) if place is not None]
        return min(places), max(places)


def mini_chart(board: Board) -> list[Row]:
    """Marks of the first defenses on the last difficulty: clean, transferred attacks, worst case or white-box attack."""
    difficulty = board.difficulties[-1]
    rows: list[Row] = []
    for name in ordered(board, difficulty):
        own = board.by_defense.get(difficulty, {}).get(name, {})
        clean = board.cell(CLEAN, name, difficulty)
        worst = own.get("worst_case", own.get("white_box"))
        values = {
            "clean": None if clean is None else clean.score.mean,
            "weighted": own["weighted"].mean if "weighted" in own else None,
            "worst": None if worst is None else worst.mean,
        }
        if all(value is None for value in values.values()):
            continue
        description = ", ".join(f"{label} {100 * value:.1f} %" for label, value in values.items() if value is not None)
        places = {label: None if value is None else _place(value) for label, value in values.items()}
        rows.append(
            Row(
                sanitize(name, SHORTEST),
                f"{sanitize(name, 60)}: {description}",
                ROW_HEIGHT * (len(rows) + 0.5),
                **places,
            )
        )
        if len(rows) == ROWS:
            break
    return rows


def ticks() -> list[tuple[str, float]]:
    """Words and places of the scale.

    >>> ticks()
    [('0', 96), ('50', 204.0), ('100 %', 312)]
    """
    return [("0", _place(0)), ("50", _place(0.5)), ("100 %", _place(1))]


def _place(share: float) -> float:
    return round(LEFT + share * (WIDTH - LEFT - 8), 1)
