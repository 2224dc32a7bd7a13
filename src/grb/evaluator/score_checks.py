"""Do the scores of one model fit together? Checks that need numbers alone, no model and no dataset."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from grb.errors import DataError

# difference of two accuracies that is never worth a warning
SAME_SCORE = 0.002

# flags of a measurement that take a defense its rank, see grb.evaluator.blind
UNRANKED = ("exact-features", "keeps-state", "new-process", "node-order", "stages-differ")

Scores = float | Sequence[float]


@dataclass(frozen=True)
class Flag:
    """One warning.

    Args:
        name: Name of the check, such as ``zero-gradient``.
        message: What was measured, what is allowed, what to do.
        numbers: What was measured.
    """

    name: str
    message: str
    numbers: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}: {self.message}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)


def check_scores(
    *,
    clean: Scores | None = None,
    random: Scores | None = None,
    transfer: Mapping[str, Scores] | None = None,
    white_box: Mapping[str, Scores] | None = None,
    by_steps: Mapping[str, Mapping[int, Scores]] | None = None,
    huge_budget: Scores | None = None,
    without_edges: float | None = None,
    num_targets: int | None = None,
    where: str = "",
    metric: str = "accuracy",
) -> list[Flag]:
    """Do the accuracies of one model under several attacks fit together?

    A difference counts if it exceeds 0.002 and two standard errors; these come from the repeats or, where there is one
    value only, from the number of targets.

    Args:
        clean: Accuracy (or one per repeat) on the clean graph, as a fraction; so are all others.
        random: Under random injection or modification within the same budget.
        transfer: Under attacks on a surrogate, by name.
        white_box: Under attacks on the model itself, by name.
        by_steps: For an attack, accuracies by its number of steps.
        huge_budget: Under an attack that may change nearly everything.
        without_edges: Accuracy of a model that sees no edges, or share of the largest class: what a huge budget leaves.
        num_targets: Nodes behind every accuracy; with it single values have noise too.
        where: Model and difficulty, for the sentences.
        metric: What the scores are, for the sentences.

    Returns:
        ``weaker-than-random``, ``weaker-than-nothing``, ``transfer-beats-white-box``, ``more-steps-weaker``,
        ``survives-any-budget``; nothing if nothing is suspicious.

    >>> [flag.name for flag in check_scores(clean=0.8, random=0.7, transfer={"fgsm": 0.4}, white_box={"fgsm": 0.6})]
    ['transfer-beats-white-box']
    """
    place = at(where)
    read = _Reader(num_targets)
    own = {f"{name} by transfer": read(value, name) for name, value in (transfer or {}).items()}
    whites = {f"{name} white-box": read(value, name) for name, value in (white_box or {}).items()}
    found: list[Flag] = []
    for base, name, given in (("random", "random changes", random), ("nothing", "no attack", clean)):
        if given is not None:
            found += _weaker(place, metric, own | whites, base, name, read(given, base))
    if own and whites:
        found += _transfer_wins(place, metric, own, whites)
    for name, table in (by_steps or {}).items():
        found += _more_steps(place, metric, name, {steps: read(value, name) for steps, value in sorted(table.items())})
    if huge_budget is not None and without_edges is not None:
        found += _survives(place, read(huge_budget, "huge_budget"), read(without_edges, "without_edges"))
    return found


@dataclass(frozen=True)
class _Measured:
    mean: float
    error: float  # standard error of the mean; 0 if unknown


@dataclass(frozen=True)
class _Reader:
    num_targets: int | None

    def __call__(self, scores: Scores, what: str) -> _Measured:
        values = np.atleast_1d(np.asarray(scores, dtype=float))
        if values.ndim != 1 or not len(values) or not ((values >= 0) & (values <= 1)).all():
            raise DataError(f"accuracy of {what} is {scores}, but fractions from 0 to 1 are needed, one or several")
        mean = float(values.mean())
        if len(values) > 1:
            return _Measured(mean, float(values.std(ddof=1) / math.sqrt(len(values))))
        return _Measured(mean, math.sqrt(mean * (1 - mean) / self.num_targets) if self.num_targets else 0.0)


def _noise(a: _Measured, b: _Measured) -> float:
    """Differences up to this say nothing."""
    return max(SAME_SCORE, 2 * math.hypot(a.error, b.error))


def at(where: str) -> str:
    """The position in front of a sentence; nothing if it is not known."""
    return f"{where}: " if where else ""


def _weaker(
    place: str, metric: str, attacks: Mapping[str, _Measured], base: str, comparison: str, limit: _Measured
) -> list[Flag]:
    return [
        Flag(
            f"weaker-than-{base}",
            f"{place}{name} leaves {metric} {score.mean:.3f}, {comparison} {limit.mean:.3f}; an attack should not be "
            f"weaker by more than noise ({_noise(score, limit):.3f}): give it more steps, another start or step, or "
            "another surrogate",
            {"accuracy": score.mean, base: limit.mean, "noise": _noise(score, limit)},
        )
        for name, score in attacks.items()
        if score.mean - limit.mean > _noise(score, limit)
    ]


def _transfer_wins(
    place: str, metric: str, own: Mapping[str, _Measured], whites: Mapping[str, _Measured]
) -> list[Flag]:
    """The strongest of either kind, because one good white-box attack is enough."""
    best, best_white = (min(attacks, key=lambda name: attacks[name].mean) for attacks in (own, whites))
    score, white = own[best], whites[best_white]
    noise = _noise(score, white)
    if white.mean - score.mean <= noise:
        return []
    return [
        Flag(
            "transfer-beats-white-box",
            f"{place}{best} leaves {metric} {score.mean:.3f}, but {best_white}, the strongest with the model's own "
            f"gradients, {white.mean:.3f}, which should not be higher by more than noise ({noise:.3f}); the model's "
            "gradients mislead: check them with check_model, and report the lower number",
            {"transfer": score.mean, "white_box": white.mean, "noise": noise},
        )
    ]


def _more_steps(place: str, metric: str, name: str, table: Mapping[int, _Measured]) -> list[Flag]:
    """The first length that does worse than a shorter one."""
    counts = list(table)
    for later, steps in enumerate(counts[1:], start=1):
        fewer = min(counts[:later], key=lambda count: table[count].mean)
        noise = _noise(table[steps], table[fewer])
        if table[steps].mean - table[fewer].mean > noise:
            return [
                Flag(
                    "more-steps-weaker",
                    f"{place}{name} leaves {metric} {table[steps].mean:.3f} after {steps} steps, but "
                    f"{table[fewer].mean:.3f} after {fewer}; more steps should not be weaker by more than noise "
                    f"({noise:.3f}): use a smaller step and keep the best iterate",
                    {"steps": steps, "fewer": fewer, "accuracy": table[steps].mean, "before": table[fewer].mean},
                )
            ]
    return []


def _survives(place: str, score: _Measured, floor: _Measured) -> list[Flag]:
    noise = _noise(score, floor)
    if score.mean - floor.mean <= noise:
        return []
    return [
        Flag(
            "survives-any-budget",
            f"{place}accuracy is {score.mean:.3f} under a huge budget, but a model without edges has "
            f"{floor.mean:.3f}, and an attacker who may change nearly everything should not leave more than noise "
            f"({noise:.3f}) above it; the attack does not reach the model: check its gradients with check_model",
            {"accuracy": score.mean, "floor": floor.mean, "noise": noise},
        )
    ]
