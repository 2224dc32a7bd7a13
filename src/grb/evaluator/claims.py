"""Claims: what the authors of a submission say that it scores, beside what was measured here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from grb.evaluator.score_checks import SAME_SCORE
from grb.serial import Fraction

if TYPE_CHECKING:
    from grb.evaluator.board import Board, Cell

# fewest runs whose own interval is used: that of two is wider than most lies
MIN_RUNS = 3
# normal quantile of a 95 % interval
QUANTILE = 1.96
# behind the name of an attack on the victim itself
WHITE_BOX = " (white-box)"


@dataclass(frozen=True)
class Claim:
    """One claimed score of a submission, and the score of the same cell as it was measured here.

    Args:
        entry: The submission, as the board names it.
        kind: Whether it is an ``attack`` or a ``defense``.
        against: The defense that a submitted attack met, or the attack that a submitted defense met.
        difficulty: Which targets.
        claimed: The claimed value of the metric that ranks.
        found: What was measured here; None if this cell was not measured.
        low: Lower end of the 95 % interval of ``found``.
        high: Upper end of that interval.
    """

    entry: str
    kind: Literal["attack", "defense"]
    against: str
    difficulty: str
    claimed: Fraction
    found: Fraction | None = None
    low: float | None = None
    high: float | None = None

    @property
    def differs(self) -> bool:
        """Whether the claim lies outside the interval of what was measured."""
        if self.low is None or self.high is None:
            return False
        return not self.low <= self.claimed <= self.high

    def message(self) -> str:
        """A claim that differs, as a flag of a board."""
        assert self.found is not None and self.low is not None and self.high is not None
        return (
            f"{self.entry} claims {100 * self.claimed:.1f} % for {self.against[:60]} ({self.difficulty}), but "
            f"{100 * self.found:.1f} % was measured (95 % interval {100 * self.low:.1f} to {100 * self.high:.1f} %)"
        )


def compare_claims(
    board: Board, cards: Mapping[str, Mapping[str, Any]], targets: Mapping[str, int]
) -> tuple[Claim, ...]:
    """Compare what the cards of submissions claim with the cells of a board.

    Args:
        board: The board that the submissions are on.
        cards: What their authors say, by the names of the board; ``reported`` holds the claims: for each opponent a score,
            which is of the card's ``mode``, or scores by difficulty.
        targets: Number of targets by difficulty.
    """
    shown = {*board.attacks, *board.defenses}
    return tuple(
        _compared(board, label, card, against, difficulty, claimed, targets)
        for label, card in cards.items()
        if label in shown
        for against, difficulty, claimed in _claims(card)
    )


def _claims(card: Mapping[str, Any]) -> Iterator[tuple[str, str, float]]:
    reported = card.get("reported")
    for against, value in reported.items() if isinstance(reported, Mapping) else ():
        given = value if isinstance(value, Mapping) else {str(card.get("mode", "full")): value}
        for difficulty, number in given.items():
            if isinstance(number, int | float) and 0 <= number <= 1:  # a store may come from anywhere
                yield str(against), str(difficulty), float(number)


def _compared(
    board: Board,
    label: str,
    card: Mapping[str, Any],
    against: str,
    difficulty: str,
    claimed: float,
    targets: Mapping[str, int],
) -> Claim:
    kind: Literal["attack", "defense"] = "attack" if card.get("kind") == "attack" else "defense"
    white_box = kind == "defense" and against.casefold().endswith(WHITE_BOX)
    names = board.defenses if kind == "attack" else board.white_box if white_box else board.attacks
    wanted = against.casefold().removesuffix(WHITE_BOX) if white_box else against.casefold()
    other = next((name for name in names if name.casefold() == wanted), against)
    attack, defense = (label, other) if kind == "attack" else (other, label)
    cell = board.cell(attack, defense, difficulty, white_box=white_box)
    shown = f"{other}{WHITE_BOX}" if white_box else other
    if cell is None:
        return Claim(label, kind, shown, difficulty, claimed)
    return Claim(label, kind, shown, difficulty, claimed, cell.score.mean, *interval(cell, targets.get(difficulty, 0)))


def interval(cell: Cell, targets: int) -> tuple[float, float]:
    """The 95 % interval of a cell's score: Student's over its runs, or with fewer than three Wilson's over its targets.

    It is at least as wide as a difference of two accuracies that is never worth a warning.

    References:
        Wilson, *Probable Inference, the Law of Succession, and Statistical Inference*, JASA 1927.
    """
    score = cell.score
    if score.n >= MIN_RUNS and score.low is not None and score.high is not None:
        low, high = score.low, score.high
    elif targets:
        spread, mean = QUANTILE**2 / targets, score.mean
        centre = (mean + spread / 2) / (1 + spread)
        half = QUANTILE * math.sqrt(mean * (1 - mean) / targets + spread / (4 * targets)) / (1 + spread)
        low, high = centre - half, centre + half
    else:
        low = high = score.mean
    return max(0.0, min(low, score.mean - SAME_SCORE)), min(1.0, max(high, score.mean + SAME_SCORE))
