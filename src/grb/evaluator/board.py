"""The board: attacks x defenses x difficulties x repeats as tables with error bars, summaries, intervals and ranks."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from grb import serial
from grb.errors import DataError, UnknownName
from grb.evaluator.claims import Claim
from grb.evaluator.estimates import Estimate as Estimate
from grb.evaluator.estimates import estimate_of as estimate_of
from grb.evaluator.estimates import ranks as ranks
from grb.evaluator.measurement import Knowledge
from grb.evaluator.run import Run as Run
from grb.evaluator.worst_case import Worst, worst_cases
from grb.metric.summary import average, three_max, three_min, weighted

CLEAN = "none"
# what the columns of attacks that ask the victim end in
QUERIES = " (queries)"
# column of the ensemble's edits of other victims: the strongest of them
POOL = "transfer pool"
# repeat of a submitted edit that counts like ours
ONCE = -1
RANKINGS = ("worst_case", "weighted")
FORMAT = 2


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
        by_defense: ``[difficulty][defense]`` to the summaries of a defense: ``average``, ``three_min``, ``weighted`` over the
            transfer attacks; ``worst_graph``, the lowest score under any single edit that a training met; ``worst_node``, the
            fraction of targets that stay correct under all of these edits; where there are white-box attacks, ``white_box``,
            the lowest score under those; where the ensemble ran, ``worst_case`` (as ``worst_graph``, for a defense whose
            trainings met every edit of the battery) and ``worst_case_predicted`` (without edits that aim at true labels).
        by_attack: ``[difficulty][attack]`` to ``average``, ``three_max``, ``weighted``.
        ranks: ``[difficulty][defense]`` to the best and the worst place that its interval allows.
        flags: What the checks found, as sentences.
        meta: Title, recipe, number of repeats and victims, whatever the reader should know.
        metric: The metric that ranks and that all summaries are of.
        objective: ``evasion`` or ``poisoning``.
        limit: The varied limit and its value, for a board of a sweep: boards of different budgets are never mixed.
        rank_by: The summary that ranks defenses: ``worst_case`` or the paper's ``weighted``.
        claims: What the authors of submissions claim, beside what was measured.
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
    rank_by: str = "weighted"
    claims: tuple[Claim, ...] = ()

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


@dataclass(frozen=True)
class Ranking:
    """How defenses are ranked.

    Args:
        by: ``worst_case`` or the paper's ``weighted``; None for the worst case where it was measured, else ``weighted``.
        promoted: Labels of submitted attacks that count in the weighted score like those of the recipe, as in the GRB paper,
            whose ranking changes with every stronger attack.
    """

    by: str | None = None
    promoted: tuple[str, ...] = ()


BY_DEFAULT = Ranking()


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
    ranking: Ranking = BY_DEFAULT,
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
        ranking: What ranks, and which submitted attacks count like ours.
    """
    listed = [_checked(row) for row in rows]
    if not listed:
        raise DataError("there is nothing to show: no score is in the store yet")
    chosen = _rank_by(listed, ranking.by)
    listed = _promoted(listed, ranking.promoted)
    groups: dict[tuple[str, str, str, bool], list[Run]] = defaultdict(list)
    for row in _pooled(listed):
        groups[row.attack, row.defense, row.difficulty, row.knowledge == "white-box"].append(row)
    shown = [difficulty for difficulty in difficulties if any(row.difficulty == difficulty for row in listed)]
    cells = tuple(_cell(group, paper or {}) for group in groups.values())
    transfer = {key: group for key, group in groups.items() if not key[3]}
    transfer = {key: group for key, group in transfer.items() if not group[0].battery}
    own = {key: group for key, group in transfer.items() if not group[0].is_submission}
    worst = worst_cases(listed)
    whole = {difficulty: _whole(own, difficulty) for difficulty in shown}
    by_defense = {difficulty: _defense_side(own, groups, difficulty, whole[difficulty], worst) for difficulty in shown}
    by_attack = {difficulty: _attack_side(transfer, difficulty, whole[difficulty]) for difficulty in shown}
    last = shown[-1]
    defenses = _ordered({row.defense for row in listed}, by_defense[last], chosen, descending=True)
    defenses.sort(key=lambda name: name in unranked)
    attacks = _ordered({key[0] for key in transfer if key[0] != CLEAN}, by_attack[last], "weighted", descending=False)
    return Board(
        dataset=dataset,
        scenario=scenario,
        difficulties=tuple(shown),
        attacks=(
            *attacks,
            *([POOL] if any(key[0] == POOL for key in groups) else []),
            *([CLEAN] if any(key[0] == CLEAN for key in own) else []),
        ),
        white_box=tuple(sorted({key[0] for key in groups if key[3]})),
        defenses=tuple(defenses),
        cells=cells,
        by_defense=by_defense,
        by_attack=by_attack,
        ranks={
            difficulty: ranks(
                {
                    name: own[chosen]
                    for name, own in by_defense[difficulty].items()
                    if chosen in own and name not in unranked
                }
            )
            for difficulty in shown
        },
        meta=dict(meta or {}),
        metric=metric,
        objective=objective,
        limit=limit,
        rank_by=chosen,
    )


def _promoted(rows: list[Run], names: Collection[str]) -> list[Run]:
    """The rows with some submitted attacks among those of the recipe; they go on having no repeats."""
    known = {row.attack for row in rows if row.is_submission}
    for name in names:
        if name not in known:
            raise UnknownName(
                "submitted attack", name, known, advice=f"Submitted: {', '.join(sorted(known)) or 'none'}."
            )
    return [replace(row, is_submission=False, repeat=ONCE) if row.attack in names else row for row in rows]


def _rank_by(rows: Sequence[Run], wanted: str | None) -> str:
    measured = any(row.battery for row in rows)
    if wanted is None:
        return "worst_case" if measured else "weighted"
    if wanted not in RANKINGS:
        raise DataError(f"boards are ranked by {' or '.join(RANKINGS)}, got '{wanted[:40]}'")
    if wanted == "worst_case" and not measured:
        raise DataError(
            "no worst case was measured here; add 'worst_case: standard' to the recipe, or rank by weighted"
        )
    return wanted


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


def _pooled(rows: Sequence[Run]) -> list[Run]:
    """The rows of the tables: of all edits that the ensemble made on other victims, the strongest one on each training.

    Attacks that ask the victim have columns of their own: the same attack may also have been made on a surrogate.
    """
    ordinary = [
        replace(row, attack=row.attack + QUERIES) if row.knowledge == "query" else row
        for row in rows
        if not row.battery
    ]
    pool: dict[tuple[str, str, int], Run] = {}
    for row in rows:
        if row.battery and row.knowledge == "white-box":
            ordinary.append(replace(row, attack=row.attack + (" (true labels)" if row.labels == "true" else "")))
        elif row.battery:
            known = pool.setdefault((row.defense, row.difficulty, row.victim), row)
            if row.score < known.score:
                pool[row.defense, row.difficulty, row.victim] = row
    return [*ordinary, *(replace(row, attack=POOL, repeat=0) for row in pool.values())]


def _defense_side(
    own: Groups, groups: Groups, difficulty: str, whole: set[str], worst: Mapping[tuple[str, str], Worst]
) -> dict[str, dict[str, Estimate]]:
    found: dict[str, dict[str, Estimate]] = {}
    for defense in sorted({key[1] for key in own if key[2] == difficulty}):
        columns = [group for key, group in own.items() if key[1] == defense and key[2] == difficulty]
        runs = _runs(columns) if defense in whole else {}
        summaries = {
            **_summaries(runs, "defense"),
            **(worst[defense, difficulty].summaries if defense in whole else {}),
        }
        found[defense] = {name: estimate_of(values) for name, values in summaries.items() if values}
        adaptive = [
            group
            for key, group in groups.items()
            if key[1] == defense and key[2] == difficulty and key[3] and group[0].labels == "predicted"
        ]
        if adaptive:
            lowest = {run: min(row.score for row in rows) for run, rows in _runs(adaptive).items()}
            if lowest:
                found[defense]["white_box"] = estimate_of(lowest)
    return found


def _attack_side(own: Groups, difficulty: str, whole: set[str]) -> dict[str, dict[str, Estimate]]:
    found: dict[str, dict[str, Estimate]] = {}
    for attack in sorted({key[0] for key in own if key[2] == difficulty}):
        runs = _runs(
            [group for key, group in own.items() if key[0] == attack and key[2] == difficulty and key[1] in whole]
        )
        found[attack] = {name: estimate_of(values) for name, values in _summaries(runs, "attack").items() if values}
    return found


def _summaries(
    runs: Mapping[tuple[int, int], Sequence[Run]], side: Literal["attack", "defense"]
) -> dict[str, dict[tuple[int, int], float]]:
    """The paper's three summaries of one side, by run."""
    name, extreme = ("three_min", three_min) if side == "defense" else ("three_max", three_max)
    table = {run: np.array([row.score for row in rows]) for run, rows in runs.items()}
    return {
        "average": {run: average(values) for run, values in table.items()},
        name: {run: extreme(values) for run, values in table.items()},
        "weighted": {run: weighted(values, side=side) for run, values in table.items()},
    }


def _runs(columns: Iterable[Sequence[Run]]) -> dict[tuple[int, int], list[Run]]:
    """By (victim, repeat): one row of every column; the clean graph and promoted submissions, without repeats, join each.

    Runs that lack a column are left out, because a summary over fewer opponents is another number.
    """
    listed = [{(row.victim, row.repeat): row for row in column} for column in columns]
    once = [{row.repeat for row in column.values() if row.attack == CLEAN or row.repeat == ONCE} for column in listed]
    repeated = [column for column, repeats in zip(listed, once, strict=True) if not repeats]
    wanted = set.intersection(*(set(column) for column in repeated or listed)) if listed else set()
    runs: dict[tuple[int, int], list[Run]] = {}
    for victim, repeat in sorted(wanted):
        rows = [column.get((victim, min(own, default=repeat))) for column, own in zip(listed, once, strict=True)]
        if all(row is not None for row in rows):
            runs[victim, repeat] = [row for row in rows if row is not None]
    return runs


def _ordered(
    names: Iterable[str], summaries: Mapping[str, Mapping[str, Estimate]], by: str, *, descending: bool
) -> list[str]:
    def place(name: str) -> tuple[float, str]:
        value = summaries.get(name, {}).get(by)
        if value is None:
            return math.inf, name
        return (-value.mean if descending else value.mean), name

    return sorted(names, key=place)
