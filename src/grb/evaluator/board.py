"""The board: attacks x defenses x difficulties x repeats as tables with error bars, summaries, intervals and ranks."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from grb import serial
from grb.errors import DataError
from grb.evaluator.measurement import Array, Knowledge
from grb.metric.summary import average, confidence_interval, three_max, three_min, weighted
from grb.serial import Count

CLEAN = "none"
FORMAT = 2


@dataclass(frozen=True)
class Run:
    """One score of one victim on the targets of one difficulty: a line of a :class:`~grb.evaluator.Measurement`.

    Args:
        attack: Name of the column; ``none`` for the clean graph.
        defense: Name of the row.
        difficulty: Which targets.
        repeat: Random seed of the attack; 0 for the clean graph.
        victim: Random seed of the victim's training.
        score: The metric that ranks, as a fraction.
        changed: Fraction of targets whose prediction the edit changes (Eq. 1 of the GRB paper).
        knowledge: ``transfer`` (made without the victim), ``white-box`` (with its gradients) or ``none``.
        correct: Which targets get their true label, [t]; for the worst case per node.
        metadata: Whatever else the record says: keys, seeds, seconds, budget.
        is_submission: Whether the edit was submitted: then it counts in the worst case of a defense only, so that it can
            lower a score but never raise one.
        metrics: All metrics as fractions, by name.
    """

    attack: str
    defense: str
    difficulty: str
    repeat: int
    victim: int
    score: float
    changed: float
    knowledge: Knowledge = "transfer"
    correct: Array | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    is_submission: bool = False
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Estimate:
    """A mean with its spread: standard deviation over repeats (over n) and the 95 % interval; None where unknown."""

    mean: float
    std: float
    low: float | None
    high: float | None
    n: Count


@dataclass(frozen=True)
class Cell:
    """One attack against one defense on one difficulty; ``metrics`` are estimates of the metrics that do not rank."""

    attack: str
    defense: str
    difficulty: str
    knowledge: Knowledge
    score: Estimate
    changed: Estimate
    values: tuple[float, ...]
    metadata: tuple[Mapping[str, Any], ...] = ()
    paper: tuple[float, float] | None = None
    metrics: Mapping[str, Estimate] = field(default_factory=dict)


@dataclass(frozen=True)
class Board:
    """A leaderboard as values; ``grb.leaderboard`` shows it.

    Args:
        dataset: Name of the dataset.
        scenario: ``injection``, ``modification`` or ``corruption``.
        difficulties: easy, medium, hard, full, as far as they were measured.
        attacks: Names, the strongest first (by the paper's weighted score on the last difficulty), the clean graph last.
        white_box: Names of attacks on the victim itself.
        defenses: Names, the most robust first.
        cells: Every measured cell.
        by_defense: ``[difficulty][defense]`` to the summaries of a defense: ``average``, ``three_min``, ``weighted``,
            ``worst_graph``, ``worst_node`` and, where there is one, ``white_box``.
        by_attack: ``[difficulty][attack]`` to ``average``, ``three_max``, ``weighted``.
        ranks: ``[difficulty][defense]`` to the best and the worst place that its interval allows.
        flags: What the checks found, as sentences.
        meta: Title, recipe, number of repeats and victims, whatever the reader should know.
        metric: The metric that ranks and that all summaries are of.
        objective: ``evasion`` or ``poisoning``.
        limit: The varied limit and its value, for a board of a sweep: boards of different budgets are never mixed.
    """

    dataset: str
    scenario: str
    difficulties: tuple[str, ...]
    attacks: tuple[str, ...]
    white_box: tuple[str, ...]
    defenses: tuple[str, ...]
    cells: tuple[Cell, ...]
    by_defense: Mapping[str, Mapping[str, Mapping[str, Estimate]]]
    by_attack: Mapping[str, Mapping[str, Mapping[str, Estimate]]]
    ranks: Mapping[str, Mapping[str, tuple[int, int]]]
    flags: tuple[str, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    metric: str = "accuracy"
    objective: str = "evasion"
    limit: tuple[str, float] | None = None

    def cell(self, attack: str, defense: str, difficulty: str, *, white_box: bool = False) -> Cell | None:
        """One cell; None if it was not measured."""
        return self._index.get((attack, defense, difficulty, white_box))

    @cached_property
    def _index(self) -> dict[tuple[str, str, str, bool], Cell]:
        return {
            (cell.attack, cell.defense, cell.difficulty, cell.knowledge == "white-box"): cell for cell in self.cells
        }

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it; :meth:`from_dict` reads it back."""
        return serial.to_versioned(self, FORMAT)

    @classmethod
    def from_dict(cls, values: Any) -> Board:
        """Back from :meth:`to_dict`; anything else is refused."""
        board = serial.from_versioned(cls, values, FORMAT, "a board")
        if not board.difficulties or not board.cells:
            raise DataError("there is nothing to show: the board has no cells")
        return board


def board_from_runs(
    rows: Iterable[Run],
    *,
    dataset: str,
    scenario: str,
    difficulties: Sequence[str],
    paper: Mapping[tuple[str, str, str], tuple[float, float]] | None = None,
    meta: Mapping[str, Any] | None = None,
    metric: str = "accuracy",
    objective: str = "evasion",
    limit: tuple[str, float] | None = None,
    unranked: Collection[str] = (),
) -> Board:
    """Tables, summaries and ranks of all runs; cells that are missing stay missing.

    Args:
        rows: All runs.
        dataset: Name of the dataset.
        scenario: Kind of attack.
        difficulties: In the order of the tables.
        meta: What the reader should know besides.
        metric: The metric that ranks.
        objective: Whether victims were trained before the attack or on the attacked graph.
        limit: The varied limit and its value, for a board of a sweep.
        paper: Published accuracy and std in per cent by (attack, defense, difficulty).
        unranked: Defenses that lost their rank: they are shown last, and those behind them move up.
    """
    listed = [_checked(row) for row in rows]
    if not listed:
        raise DataError("there is nothing to show: no score is in the store yet")
    groups: dict[tuple[str, str, str, bool], list[Run]] = defaultdict(list)
    for row in listed:
        groups[row.attack, row.defense, row.difficulty, row.knowledge == "white-box"].append(row)
    shown = [difficulty for difficulty in difficulties if any(row.difficulty == difficulty for row in listed)]
    cells = tuple(_cell(group, paper or {}) for group in groups.values())
    transfer = {key: group for key, group in groups.items() if not key[3]}
    own = {key: group for key, group in transfer.items() if not group[0].is_submission}
    whole = {difficulty: _whole(own, difficulty) for difficulty in shown}
    by_defense = {difficulty: _defense_side(own, groups, difficulty, whole[difficulty]) for difficulty in shown}
    by_attack = {difficulty: _attack_side(transfer, difficulty, whole[difficulty]) for difficulty in shown}
    last = shown[-1]
    defenses = _ordered({row.defense for row in listed}, by_defense[last], descending=True)
    defenses.sort(key=lambda name: name in unranked)
    attacks = _ordered({key[0] for key in transfer if key[0] != CLEAN}, by_attack[last], descending=False)
    return Board(
        dataset=dataset,
        scenario=scenario,
        difficulties=tuple(shown),
        attacks=(*attacks, *([CLEAN] if any(key[0] == CLEAN for key in own) else [])),
        white_box=tuple(sorted({key[0] for key in groups if key[3]})),
        defenses=tuple(defenses),
        cells=cells,
        by_defense=by_defense,
        by_attack=by_attack,
        ranks={
            difficulty: ranks(
                {
                    name: own["weighted"]
                    for name, own in by_defense[difficulty].items()
                    if "weighted" in own and name not in unranked
                }
            )
            for difficulty in shown
        },
        meta=dict(meta or {}),
        metric=metric,
        objective=objective,
        limit=limit,
    )


def estimate_of(table: Mapping[tuple[int, int], float]) -> Estimate:
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
    return Estimate(float(numbers.mean()), float(numbers.std()), low, high, len(numbers))


def ranks(values: Mapping[str, Estimate]) -> dict[str, tuple[int, int]]:
    """The best and the worst place that each interval allows; equal ends are a rank that may be claimed.

    >>> apart = {"a": Estimate(0.9, 0, 0.8, 1.0, 5), "b": Estimate(0.5, 0, 0.4, 0.6, 5), "c": Estimate(0.55, 0, 0.5, 0.6, 5)}
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


def _checked(row: Run) -> Run:
    for name in ("score", "changed"):
        value = getattr(row, name)
        if not (math.isfinite(value) and 0 <= value <= 1):
            raise DataError(
                f"{name} of {row.defense} under {row.attack} is {value}, but a fraction from 0 to 1 is needed"
            )
    return row


def _cell(group: Sequence[Run], paper: Mapping[tuple[str, str, str], tuple[float, float]]) -> Cell:
    first = group[0]
    ordered = sorted(group, key=lambda row: (row.victim, row.repeat))
    white_box = first.knowledge == "white-box"
    return Cell(
        attack=first.attack,
        defense=first.defense,
        difficulty=first.difficulty,
        knowledge=first.knowledge,
        score=estimate_of({(row.victim, row.repeat): row.score for row in ordered}),
        changed=estimate_of({(row.victim, row.repeat): row.changed for row in ordered}),
        values=tuple(row.score for row in ordered),
        metadata=tuple(row.metadata for row in ordered),
        paper=None if white_box else paper.get((first.attack, first.defense, first.difficulty)),
        metrics={
            name: estimate_of({(row.victim, row.repeat): row.metrics[name] for row in ordered})
            for name in first.metrics
            if all(name in row.metrics for row in ordered)
        },
    )


Groups = Mapping[tuple[str, str, str, bool], Sequence[Run]]


def _whole(own: Groups, difficulty: str) -> set[str]:
    """Defenses that met every attack of this difficulty: a summary over fewer opponents is another number."""
    met: dict[str, set[str]] = defaultdict(set)
    for attack, defense, own_mode, _ in own:
        if own_mode == difficulty:
            met[defense].add(attack)
    every = set().union(*met.values())
    return {defense for defense, attacks in met.items() if attacks == every}


def _defense_side(own: Groups, groups: Groups, difficulty: str, whole: set[str]) -> dict[str, dict[str, Estimate]]:
    found: dict[str, dict[str, Estimate]] = {}
    for defense in sorted({key[1] for key in own if key[2] == difficulty}):
        columns = [group for key, group in own.items() if key[1] == defense and key[2] == difficulty]
        runs = _runs(columns) if defense in whole else {}
        table = {run: np.array([row.score for row in rows]) for run, rows in runs.items()}
        met = _with_submitted(
            runs, [group for key, group in groups.items() if key[1] == defense and key[2] == difficulty]
        )
        summaries = {
            "average": {run: average(values) for run, values in table.items()},
            "three_min": {run: three_min(values) for run, values in table.items()},
            "weighted": {run: weighted(values, side="defense") for run, values in table.items()},
            "worst_graph": {run: min(row.score for row in rows) for run, rows in met.items()},
            "worst_node": {run: _per_node(rows) for run, rows in met.items()},
        }
        found[defense] = {
            name: estimate_of(values)
            for name, values in summaries.items()
            if values and all(each is not None for each in values.values())
        }
        adaptive = [group for key, group in groups.items() if key[1] == defense and key[2] == difficulty and key[3]]
        if adaptive:
            worst = {run: min(row.score for row in rows) for run, rows in _runs(adaptive).items()}
            if worst:
                found[defense]["white_box"] = estimate_of(worst)
    return found


def _with_submitted(
    runs: Mapping[tuple[int, int], list[Run]], columns: Iterable[Sequence[Run]]
) -> dict[tuple[int, int], list[Run]]:
    """Every run with all submitted edits that its victim met: they have no repeats."""
    is_submission = [row for column in columns for row in column if row.is_submission]
    return {run: [*rows, *(row for row in is_submission if row.victim == run[0])] for run, rows in runs.items()}


def _attack_side(own: Groups, difficulty: str, whole: set[str]) -> dict[str, dict[str, Estimate]]:
    found: dict[str, dict[str, Estimate]] = {}
    for attack in sorted({key[0] for key in own if key[2] == difficulty}):
        runs = _runs(
            [group for key, group in own.items() if key[0] == attack and key[2] == difficulty and key[1] in whole]
        )
        table = {run: np.array([row.score for row in rows]) for run, rows in runs.items()}
        summaries = {
            "average": {run: average(values) for run, values in table.items()},
            "three_max": {run: three_max(values) for run, values in table.items()},
            "weighted": {run: weighted(values, side="attack") for run, values in table.items()},
        }
        found[attack] = {name: estimate_of(values) for name, values in summaries.items() if values}
    return found


def _runs(columns: Iterable[Sequence[Run]]) -> dict[tuple[int, int], list[Run]]:
    """By (victim, repeat): one row of every column; the clean graph, which has no repeats, joins each of them.

    Runs that lack a column are left out, because a summary over fewer opponents is another number.
    """
    listed = [{(row.victim, row.repeat): row for row in column} for column in columns]
    clean = [all(row.attack == CLEAN for row in column.values()) for column in listed]
    repeated = [column for column, is_clean in zip(listed, clean, strict=True) if not is_clean]
    wanted = set.intersection(*(set(column) for column in repeated or listed)) if listed else set()
    runs: dict[tuple[int, int], list[Run]] = {}
    for victim, repeat in sorted(wanted):
        rows = [column.get((victim, 0 if is_clean else repeat)) for column, is_clean in zip(listed, clean, strict=True)]
        if all(row is not None for row in rows):
            runs[victim, repeat] = [row for row in rows if row is not None]
    return runs


def _per_node(rows: Sequence[Run]) -> float | None:
    """Share of targets that stay correct under every attack."""
    bits = [row.correct for row in rows if row.correct is not None]
    if len(bits) < len(rows) or len({len(each) for each in bits}) != 1:
        return None
    return float(np.logical_and.reduce(bits).mean()) if len(bits[0]) else None


def _ordered(names: Iterable[str], summaries: Mapping[str, Mapping[str, Estimate]], *, descending: bool) -> list[str]:
    def place(name: str) -> tuple[float, str]:
        value = summaries.get(name, {}).get("weighted")
        if value is None:
            return math.inf, name
        return (-value.mean if descending else value.mean), name

    return sorted(names, key=place)
