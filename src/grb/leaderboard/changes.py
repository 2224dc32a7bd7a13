"""How ranks changed since a site was built last: sentences, which stay in the site, for its index and its feeds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grb import serial
from grb.errors import DataError
from grb.evaluator.board import Board
from grb.leaderboard.export import read_json
from grb.leaderboard.table import ordered
from grb.leaderboard.text import MESSAGE_LENGTH, sanitize

FILE = "changes.json"
FORMAT = 1
MAX_BYTES = 64 * 2**20
# older ones are forgotten
MOST = 500

Ranks = Mapping[str, tuple[int, int]]


@dataclass(frozen=True)
class Change:
    """One thing that happened to a board.

    Args:
        date: The day, as YYYY-MM-DD.
        file: Page of the board.
        board: Title of the board.
        text: What happened, as a sentence.
    """

    date: str
    file: str
    board: str
    text: str


@dataclass(frozen=True)
class History:
    """What a site remembers: ranks by page and defense, the best mean first, and the changes so far, the newest first."""

    ranks: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()

    def to_json(self) -> str:
        """The content of its file; the same history is the same text."""
        return json.dumps(serial.to_versioned(self, FORMAT), indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> History:
        """The history in a file; empty if there is none, refused if it is damaged."""
        if not path.exists():
            return cls()
        try:
            return serial.from_versioned(cls, read_json(path, MAX_BYTES, ""), FORMAT, "a history of ranks")
        except DataError as error:
            raise DataError(f"{path}: {error}; remove it to begin a new history") from None

    def after(self, boards: Sequence[Board], files: Sequence[str], today: str) -> History:
        """The history with what is different in some boards now; the same boards change nothing.

        Args:
            boards: The boards, each on its last difficulty.
            files: Their pages.
            today: The day of a change on a board that does not say when it was measured.
        """
        found: list[Change] = []
        ranks = dict(self.ranks)
        for board, file in zip(boards, files, strict=True):
            difficulty = board.difficulties[-1]
            places = board.ranks.get(difficulty, {})
            own = {sanitize(name): places[name] for name in ordered(board, difficulty) if name in places}
            title = sanitize(board.meta.get("title") or f"{board.scenario} on {board.dataset}", 120)
            date = str(board.meta.get("date") or today)[:10]
            sentences = differences(ranks[file], own) if file in ranks else [_begun(own)]
            found += [Change(date, file, title, sanitize(text, MESSAGE_LENGTH)) for text in sentences]
            ranks[file] = own
        return History(ranks, (*found, *self.changes)[:MOST])


def differences(before: Ranks, after: Ranks) -> list[str]:
    """What happened between two rankings, as sentences: who leads, who joined, who moved, who left.

    >>> differences({"a": (1, 1), "b": (2, 2)}, {"b": (1, 1), "a": (2, 2)})
    ['b leads instead of a.', 'b moves from place 2 to place 1.', 'a moves from place 1 to place 2.']
    """
    told = []
    old, new = _leader(before), _leader(after)
    if old and new and old != new:
        told.append(f"{new} leads instead of {old}.")
    told += [f"{name} joins at {_place(places)}." for name, places in after.items() if name not in before]
    told += [
        f"{name} moves from {_place(before[name])} to {_place(places)}."
        for name, places in after.items()
        if name in before and places != before[name]
    ]
    return told + [f"{name} is not ranked any more." for name in before if name not in after]


def _begun(ranks: Ranks) -> str:
    leader = _leader(ranks)
    count = f"{len(ranks)} {'defense is' if len(ranks) == 1 else 'defenses are'} ranked"
    return f"New board: {count}{f', {leader} leads' if leader else ''}."


def _leader(ranks: Ranks) -> str:
    """The first, as rankings list the best mean first; empty if nobody is ranked."""
    return next(iter(ranks), "")


def _place(places: tuple[int, int]) -> str:
    best, worst = places
    return f"place {best}" if best == worst else f"place {best} to {worst}"
