"""The board: attacks x defenses x difficulties x repeats as tables with error bars, summaries, intervals and ranks."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from grb.errors import DataError
from grb.metric import average, confidence_interval, three_max, three_min, weighted

CLEAN = "none"
Knowledge = Literal["none", "transfer", "white-box"]
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Row:
    """One measurement: a victim on the clean graph or under one edit, on the targets of one difficulty.

    Args:
        attack: The attack's label; ``none`` for the clean graph.
        defense: The victim's name.
        mode: Difficulty.
        repeat: Which draw of surrogate and edges; 0 for the clean graph.
        victim: Which training of the victim.
        accuracy: Share of targets that get their true label.
        changed: Share of targets whose prediction the edit changes (Eq. 1 of the GRB paper).
        knowledge: ``transfer`` (a surrogate was attacked), ``white-box`` (the victim itself) or ``none``.
        correct: Which targets get their true label, [t]; for the worst case per node.
        facts: Whatever else the record says: keys, seeds, seconds, budget.
        outside: Whether the edit was submitted: then it counts in the worst case of a defense only, so that it can lower
            a score but never raise one.
    """

    attack: str
    defense: str
    mode: str
    repeat: int
    victim: int
    accuracy: float
    changed: float
    knowledge: Knowledge = "transfer"
    correct: Array | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    outside: bool = False


@dataclass(frozen=True)
class Value:
    """A mean with its spread: standard deviation over repeats (over n) and the 95 % interval; None where unknown."""

    mean: float
    std: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class Cell:
    """One attack against one defense on one difficulty."""

    attack: str
    defense: str
    mode: str
    knowledge: Knowledge
    accuracy: Value
    changed: Value
    values: tuple[float, ...]
    facts: tuple[Mapping[str, Any], ...] = ()
    paper: tuple[float, float] | None = None


@dataclass(frozen=True)
class Board:
    """A leaderboard as values; ``grb.leaderboard`` shows it.

    Args:
        dataset: Its name.
        scenario: ``injection``, ``modification``, ...
        modes: Difficulties, easiest last as in the paper: easy, medium, hard, full.
        attacks: Labels, the strongest first (by the paper's weighted accuracy on the last mode), the clean graph last.
        white_box: Labels of attacks on the victim itself.
        defenses: Names, the most robust first.
        cells: Every measured cell.
        by_defense: ``[mode][defense]`` to the summaries of a defense: ``average``, ``three_min``, ``weighted``,
            ``worst_graph``, ``worst_node`` and, where there is one, ``white_box``.
        by_attack: ``[mode][attack]`` to ``average``, ``three_max``, ``weighted``.
        ranks: ``[mode][defense]`` to the best and the worst place that its interval allows.
        flags: What the checks found, as sentences.
        meta: Title, recipe, number of repeats and victims, whatever the reader should know.
    """

    dataset: str
    scenario: str
    modes: tuple[str, ...]
    attacks: tuple[str, ...]
    white_box: tuple[str, ...]
    defenses: tuple[str, ...]
    cells: tuple[Cell, ...]
    by_defense: Mapping[str, Mapping[str, Mapping[str, Value]]]
    by_attack: Mapping[str, Mapping[str, Mapping[str, Value]]]
    ranks: Mapping[str, Mapping[str, tuple[int, int]]]
    flags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)

    def cell(self, attack: str, defense: str, mode: str, *, white_box: bool = False) -> Cell | None:
        """One cell; None if it was not measured."""
        return self._index.get((attack, defense, mode, white_box))

    @property
    def _index(self) -> dict[tuple[str, str, str, bool], Cell]:
        found = self.__dict__.get("_cells")
        if found is None:
            found = {(cell.attack, cell.defense, cell.mode, cell.knowledge == "white-box"): cell for cell in self.cells}
            object.__setattr__(self, "_cells", found)
        return found

    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "cells"}
        return {"format": 1, **_plain(values), "cells": [_plain(asdict(cell)) for cell in self.cells]}


def build_board(
    rows: Iterable[Row],
    *,
    dataset: str,
    scenario: str,
    modes: Sequence[str],
    paper: Mapping[tuple[str, str, str], tuple[float, float]] | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Board:
    """Tables, summaries and ranks of all measurements; cells that are missing stay missing.

    Args:
        rows: All measurements.
        paper: Published accuracy and std in per cent by (attack, defense, mode).
    """
    listed = [_checked(row) for row in rows]
    if not listed:
        raise DataError("there is nothing to show: no score is in the store yet")
    groups: dict[tuple[str, str, str, bool], list[Row]] = defaultdict(list)
    for row in listed:
        groups[row.attack, row.defense, row.mode, row.knowledge == "white-box"].append(row)
    shown = [mode for mode in modes if any(row.mode == mode for row in listed)]
    cells = tuple(_cell(group, paper or {}) for group in groups.values())
    transfer = {key: group for key, group in groups.items() if not key[3]}
    own = {key: group for key, group in transfer.items() if not group[0].outside}
    whole = {mode: _whole(own, mode) for mode in shown}
    by_defense = {mode: _defense_side(own, groups, mode, whole[mode]) for mode in shown}
    by_attack = {mode: _attack_side(transfer, mode, whole[mode]) for mode in shown}
    last = shown[-1]
    defenses = _ordered({row.defense for row in listed}, by_defense[last], descending=True)
    attacks = _ordered({key[0] for key in transfer if key[0] != CLEAN}, by_attack[last], descending=False)
    return Board(
        dataset=dataset,
        scenario=scenario,
        modes=tuple(shown),
        attacks=(*attacks, *([CLEAN] if any(key[0] == CLEAN for key in own) else [])),
        white_box=tuple(sorted({key[0] for key in groups if key[3]})),
        defenses=tuple(defenses),
        cells=cells,
        by_defense=by_defense,
        by_attack=by_attack,
        ranks={
            mode: ranks({name: own["weighted"] for name, own in by_defense[mode].items() if "weighted" in own})
            for mode in shown
        },
        meta=dict(meta or {}),
    )


def with_flags(board: Board, flags: Iterable[str]) -> Board:
    """The board with what the checks found."""
    return replace(board, flags=tuple(flags))


def value_of(table: Mapping[tuple[int, int], float]) -> Value:
    """Mean, std and interval of values by (victim, repeat).

    Several victims: the interval is Student's over the means of the victims, which are what was drawn independently. One
    victim: over its repeats; it says nothing about another training. One value has no interval.
    """
    numbers = np.array(list(table.values()), dtype=float)
    victims = sorted({victim for victim, _ in table})
    if len(victims) > 1:
        sample = [np.mean([value for (own, _), value in table.items() if own == victim]) for victim in victims]
    else:
        sample = list(numbers)
    interval = confidence_interval(sample)
    low, high = (None if math.isinf(end) else float(end) for end in (interval.low, interval.high))
    return Value(float(numbers.mean()), float(numbers.std()), low, high, len(numbers))


def ranks(values: Mapping[str, Value]) -> dict[str, tuple[int, int]]:
    """The best and the worst place that each interval allows; equal ends are a rank that may be claimed.

    >>> apart = {"a": Value(0.9, 0, 0.8, 1.0, 5), "b": Value(0.5, 0, 0.4, 0.6, 5), "c": Value(0.55, 0, 0.5, 0.6, 5)}
    >>> ranks(apart)
    {'a': (1, 1), 'b': (2, 3), 'c': (2, 3)}
    """
    ends = {
        name: (-math.inf if value.low is None else value.low, math.inf if value.high is None else value.high)
        for name, value in values.items()
    }
    return {
        name: (
            1 + sum(other_low > high for other, (other_low, _) in ends.items() if other != name),
            len(ends) - sum(other_high < low for other, (_, other_high) in ends.items() if other != name),
        )
        for name, (low, high) in ends.items()
    }


def _checked(row: Row) -> Row:
    for name in ("accuracy", "changed"):
        value = getattr(row, name)
        if not (math.isfinite(value) and 0 <= value <= 1):
            raise DataError(f"{name} of {row.defense} under {row.attack} is {value}, but a share from 0 to 1 is needed")
    return row


def _cell(group: Sequence[Row], paper: Mapping[tuple[str, str, str], tuple[float, float]]) -> Cell:
    first = group[0]
    ordered = sorted(group, key=lambda row: (row.victim, row.repeat))
    white_box = first.knowledge == "white-box"
    return Cell(
        attack=first.attack,
        defense=first.defense,
        mode=first.mode,
        knowledge=first.knowledge,
        accuracy=value_of({(row.victim, row.repeat): row.accuracy for row in ordered}),
        changed=value_of({(row.victim, row.repeat): row.changed for row in ordered}),
        values=tuple(row.accuracy for row in ordered),
        facts=tuple(row.facts for row in ordered),
        paper=None if white_box else paper.get((first.attack, first.defense, first.mode)),
    )


Groups = Mapping[tuple[str, str, str, bool], Sequence[Row]]


def _whole(own: Groups, mode: str) -> set[str]:
    """Defenses that met every attack of this difficulty: a summary over fewer opponents is another number."""
    met: dict[str, set[str]] = defaultdict(set)
    for attack, defense, own_mode, _ in own:
        if own_mode == mode:
            met[defense].add(attack)
    every = set().union(*met.values())
    return {defense for defense, attacks in met.items() if attacks == every}


def _defense_side(own: Groups, groups: Groups, mode: str, whole: set[str]) -> dict[str, dict[str, Value]]:
    found: dict[str, dict[str, Value]] = {}
    for defense in sorted({key[1] for key in own if key[2] == mode}):
        columns = [group for key, group in own.items() if key[1] == defense and key[2] == mode]
        runs = _runs(columns) if defense in whole else {}
        table = {run: np.array([row.accuracy for row in rows]) for run, rows in runs.items()}
        met = _with_submitted(runs, [group for key, group in groups.items() if key[1] == defense and key[2] == mode])
        summaries = {
            "average": {run: average(values) for run, values in table.items()},
            "three_min": {run: three_min(values) for run, values in table.items()},
            "weighted": {run: weighted(values, side="defense") for run, values in table.items()},
            "worst_graph": {run: min(row.accuracy for row in rows) for run, rows in met.items()},
            "worst_node": {run: _per_node(rows) for run, rows in met.items()},
        }
        found[defense] = {
            name: value_of(values)
            for name, values in summaries.items()
            if values and all(each is not None for each in values.values())
        }
        adaptive = [group for key, group in groups.items() if key[1] == defense and key[2] == mode and key[3]]
        if adaptive:
            worst = {run: min(row.accuracy for row in rows) for run, rows in _runs(adaptive).items()}
            if worst:
                found[defense]["white_box"] = value_of(worst)
    return found


def _with_submitted(
    runs: Mapping[tuple[int, int], list[Row]], columns: Iterable[Sequence[Row]]
) -> dict[tuple[int, int], list[Row]]:
    """Every run with all submitted edits that its victim met: they have no repeats."""
    outside = [row for column in columns for row in column if row.outside]
    return {run: [*rows, *(row for row in outside if row.victim == run[0])] for run, rows in runs.items()}


def _attack_side(own: Groups, mode: str, whole: set[str]) -> dict[str, dict[str, Value]]:
    found: dict[str, dict[str, Value]] = {}
    for attack in sorted({key[0] for key in own if key[2] == mode}):
        runs = _runs([group for key, group in own.items() if key[0] == attack and key[2] == mode and key[1] in whole])
        table = {run: np.array([row.accuracy for row in rows]) for run, rows in runs.items()}
        summaries = {
            "average": {run: average(values) for run, values in table.items()},
            "three_max": {run: three_max(values) for run, values in table.items()},
            "weighted": {run: weighted(values, side="attack") for run, values in table.items()},
        }
        found[attack] = {name: value_of(values) for name, values in summaries.items() if values}
    return found


def _runs(columns: Iterable[Sequence[Row]]) -> dict[tuple[int, int], list[Row]]:
    """By (victim, repeat): one row of every column; the clean graph, which has no repeats, joins each of them.

    Runs that lack a column are left out, because a summary over fewer opponents is another number.
    """
    listed = [{(row.victim, row.repeat): row for row in column} for column in columns]
    clean = [all(row.attack == CLEAN for row in column.values()) for column in listed]
    repeated = [column for column, is_clean in zip(listed, clean, strict=True) if not is_clean]
    wanted = set.intersection(*(set(column) for column in repeated or listed)) if listed else set()
    runs: dict[tuple[int, int], list[Row]] = {}
    for victim, repeat in sorted(wanted):
        rows = [column.get((victim, 0 if is_clean else repeat)) for column, is_clean in zip(listed, clean, strict=True)]
        if all(row is not None for row in rows):
            runs[victim, repeat] = [row for row in rows if row is not None]
    return runs


def _per_node(rows: Sequence[Row]) -> float | None:
    """Share of targets that stay correct under every attack."""
    bits = [row.correct for row in rows if row.correct is not None]
    if len(bits) < len(rows) or len({len(each) for each in bits}) != 1:
        return None
    return float(np.logical_and.reduce(bits).mean()) if len(bits[0]) else None


def _ordered(names: Iterable[str], summaries: Mapping[str, Mapping[str, Value]], *, descending: bool) -> list[str]:
    def place(name: str) -> tuple[float, str]:
        value = summaries.get(name, {}).get("weighted")
        if value is None:
            return math.inf, name
        return (-value.mean if descending else value.mean), name

    return sorted(names, key=place)


def _plain(value: Any) -> Any:
    if isinstance(value, Value):
        return asdict(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value
