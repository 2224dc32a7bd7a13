"""The worst that a defense met: over all attacks, knowledge and repeats, and over a battery that every entry met."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from grb.evaluator.run import Run


@dataclass(frozen=True)
class Worst:
    """The worst cases of one defense on one difficulty.

    Args:
        summaries: ``worst_graph``, ``worst_node``, ``worst_case``, ``worst_case_predicted`` and beside them ``clean``, each by
            (training, 0); without what was not measured.
        missing: Number of edits of the battery that some training did not meet.
    """

    summaries: Mapping[str, Mapping[tuple[int, int], float]]
    missing: int = 0


def worst_cases(rows: Sequence[Run]) -> dict[tuple[str, str], Worst]:
    """The worst cases by (defense, difficulty).

    The battery of a difficulty and a number of training is every edit that the ensemble made on any victim of that number, and
    every submitted edit. A defense has a worst case if all its trainings met all of it, and the ensemble attacked each of them
    with every kind of labels that it used at all: then all entries faced the same effort.
    """
    battery: dict[tuple[str, int], set[object]] = defaultdict(set)
    aims: dict[str, set[str]] = defaultdict(set)
    met: dict[tuple[str, str], dict[int, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        met[row.defense, row.difficulty][row.victim].append(row)
        if row.battery or row.is_submission:
            battery[row.difficulty, row.victim].add(row.metadata.get("attack"))
        if row.battery:
            aims[row.difficulty].add(row.labels)
    return {key: _worst(found, battery, aims[key[1]], key[1]) for key, found in met.items()}


def _worst(
    trainings: Mapping[int, Sequence[Run]],
    battery: Mapping[tuple[str, int], set[object]],
    aims: set[str],
    difficulty: str,
) -> Worst:
    summaries: dict[str, dict[tuple[int, int], float]] = {}
    missing = 0
    for victim, rows in trainings.items():
        own = summaries.setdefault("worst_graph", {})
        own[victim, 0] = min(row.score for row in rows)
        safe = per_node(rows)
        if safe is not None:
            summaries.setdefault("worst_node", {})[victim, 0] = safe
        needed = battery.get((difficulty, victim), set())
        left = needed - {row.metadata.get("attack") for row in rows}
        attacked = {row.labels for row in rows if row.battery and row.knowledge == "white-box"}
        missing += len(left) + len(aims - attacked)
        if aims:
            summaries.setdefault("worst_case", {})[victim, 0] = own[victim, 0]
            clean = [row.score for row in rows if row.knowledge == "none" and not row.metadata.get("attack")]
            if clean:
                summaries.setdefault("clean", {})[victim, 0] = clean[0]
            predicted = [row.score for row in rows if row.labels == "predicted"]
            summaries.setdefault("worst_case_predicted", {})[victim, 0] = min(predicted)
    if missing:
        summaries = {name: values for name, values in summaries.items() if not name.startswith("worst_case")}
    if len(summaries.get("worst_node", {})) < len(trainings):
        summaries.pop("worst_node", None)
    return Worst(summaries, missing)


def per_node(rows: Sequence[Run]) -> float | None:
    """Fraction of targets that stay correct in every run; None if some run does not say which targets those are."""
    bits = [row.correct for row in rows if row.correct is not None]
    if len(bits) < len(rows) or len({len(each) for each in bits}) != 1:
        return None
    return float(np.logical_and.reduce(bits).mean()) if len(bits[0]) else None
