"""Who measured the rows of a board, and what their authors claim beside what was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from grb.evaluator.board import Board, Cell
from grb.evaluator.claims import WHITE_BOX, Claim
from grb.leaderboard.text import sanitize

UNSIGNED = "unsigned"


@dataclass(frozen=True)
class Vouching:
    """What a board says about the trust in its rows on one difficulty; every mapping is by name of the row.

    Args:
        defenses: Who measured the scores of every defense.
        attacks: Who measured the scores of every attack.
        claims: Claims of every submission, attack or defense.
    """

    defenses: dict[str, str]
    attacks: dict[str, str]
    claims: dict[str, list[Claim]]

    @classmethod
    def of(cls, board: Board, difficulty: str) -> Vouching:
        """Everything that a board says about one difficulty."""
        defenses: dict[str, list[Cell]] = {}
        attacks: dict[str, list[Cell]] = {}
        for cell in board.cells:
            if cell.difficulty == difficulty:
                defenses.setdefault(cell.defense, []).append(cell)
                attacks.setdefault(cell.attack, []).append(cell)
        claims: dict[str, list[Claim]] = {}
        for claim in board.claims:
            if claim.difficulty == difficulty:
                claims.setdefault(claim.entry, []).append(claim)
        return cls(
            {name: measured_by(own) for name, own in defenses.items()},
            {name: measured_by(own) for name, own in attacks.items()},
            claims,
        )

    def compared(self, entry: str) -> tuple[float, float | None] | None:
        """The mean of what an entry claims and of what was measured in the same cells; None without a claim.

        Claims whose cell was not measured count only if there are no others.
        """
        own = self.claims.get(entry)
        if not own:
            return None
        both = [(claim.claimed, claim.found) for claim in own if claim.found is not None]
        if not both:
            return sum(claim.claimed for claim in own) / len(own), None
        return sum(claimed for claimed, _ in both) / len(both), sum(found for _, found in both) / len(both)

    def differs(self, entry: str) -> bool:
        """Whether a claim of an entry lies outside the interval of what was measured."""
        return any(claim.differs for claim in self.claims.get(entry, ()))

    def texts(self, entry: str) -> tuple[str, str]:
        """What an entry claims, marked if it differs, and what was measured in the same cells, both in per cent."""
        values = self.compared(entry)
        if values is None:
            return "-", "-"
        claimed, found = values
        mark = " (differs)" if self.differs(entry) else ""
        return f"{100 * claimed:.1f}{mark}", "-" if found is None else f"{100 * found:.1f}"


def measured_by(cells: Iterable[Cell]) -> str:
    """Who vouches for all scores of some cells, with the numbers of scores if there are several.

    A signer's name is there only if a key that the reader trusts made the signature (``grb leaderboard --key``).
    """
    counts = Counter(
        str(run.get("measured_by", UNSIGNED))
        for cell in cells
        for run in (cell.metadata or ({},))  # scores from Python need no metadata
    )
    if len(counts) <= 1:
        return sanitize(next(iter(counts), UNSIGNED))
    return ", ".join(f"{sanitize(name)} ({count})" for name, count in counts.most_common())


def claims_by_cell(board: Board) -> dict[tuple[str, str, str, bool], Claim]:
    """What is claimed for cells, by (attack, defense, difficulty, white box)."""
    found: dict[tuple[str, str, str, bool], Claim] = {}
    for claim in board.claims:
        white_box = claim.kind == "defense" and claim.against.endswith(WHITE_BOX)
        other = claim.against.removesuffix(WHITE_BOX) if white_box else claim.against
        attack, defense = (claim.entry, other) if claim.kind == "attack" else (other, claim.entry)
        found[attack, defense, claim.difficulty, white_box] = claim
    return found


def place_of(cell: Cell) -> tuple[str, str, str, bool]:
    """Attack, defense, difficulty and whether it is white-box: what tells cells of a board apart."""
    return cell.attack, cell.defense, cell.difficulty, cell.knowledge == "white-box"
