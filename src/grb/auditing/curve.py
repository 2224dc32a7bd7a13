r"""Budget curves: what is left of a metric when an attacker may do more and more, and where it breaks.

Whoever may change b edges may also change fewer, so that the worst case within b is the lowest value of any budget up to b.
Curves are reported as this running minimum; they never rise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grb.errors import DataError
from grb.metric import Metric

Array = np.ndarray[Any, Any]
LEVEL = 0.95
RESAMPLES = 200
MONOTONE = "running minimum: an edit within a smaller budget is allowed within a larger one"


def running_minimum(values: Sequence[float]) -> list[float]:
    """The lowest value so far at every place.

    >>> running_minimum([0.9, 0.7, 0.8, 0.5])
    [0.9, 0.7, 0.7, 0.5]
    """
    return [float(value) for value in np.minimum.accumulate(np.asarray(values, dtype=float))]


def crossing(budgets: Sequence[float], values: Sequence[float], threshold: float) -> float:
    """The budget at which a falling curve goes below a threshold, between two budgets along a line; infinite if nowhere.

    Args:
        budgets: Ascending; the first is 0, the clean graph.
        values: Metric at each of them, never rising.
        threshold: What the metric should not fall below.

    >>> crossing([0, 10, 20], [0.9, 0.8, 0.4], 0.6)
    15.0
    >>> crossing([0, 10], [0.9, 0.8], 0.6)
    inf
    """
    below = [place for place, value in enumerate(values) if value < threshold]
    if not below:
        return math.inf
    place = below[0]
    if place == 0:
        return float(budgets[0])
    high, low = values[place - 1], values[place]
    share = (high - threshold) / (high - low)
    return float(budgets[place - 1] + share * (budgets[place] - budgets[place - 1]))


@dataclass(frozen=True)
class BreakingPoint:
    """Where a curve falls below a threshold.

    Args:
        threshold: What the metric should not fall below.
        budget: Smallest budget that was tried and brings it below; None if none does.
        low: Lower end of the 95 % interval over the targets, a whole number; None beyond the largest budget.
        high: Upper end, likewise.
        largest: The largest budget that was tried.
    """

    threshold: float
    budget: int | None
    low: int | None
    high: int | None
    largest: int

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {name: getattr(self, name) for name in ("threshold", "budget", "low", "high", "largest")}

    def sentence(self, metric: str, unit: str) -> str:
        """In words: ``recall:1 falls below 0.80 at 14 injected nodes (95 % interval 11 to 18)``."""
        if self.budget is None:
            most = counted(self.largest, unit)
            return f"{metric} stays at or above {self.threshold:.2f} up to {most}, the largest budget tried"
        if self.budget == 0:
            return f"{metric} is below {self.threshold:.2f} without any attack"
        ends = [str(end) if end is not None else f"more than {self.largest}" for end in (self.low, self.high)]
        return (
            f"{metric} falls below {self.threshold:.2f} at {counted(self.budget, unit)} "
            f"(95 % interval {ends[0]} to {ends[1]})"
        )


def counted(number: int, unit: str) -> str:
    """A number with its unit, ``1 injected node`` or ``3 changed edges``."""
    return f"{number} {unit.removesuffix('s') if number == 1 else unit}"


def value_of(metric: Metric, logits: Tensor, y: Tensor) -> float:
    """A metric of some targets from their logits, [t, c], and labels, [t]; a NaN is wrong."""
    said = torch.where(torch.isnan(logits).any(1), -1, logits.argmax(1))
    return float(metric(logits, said, y))


def bootstrap(
    metric: Metric,
    answers: Sequence[Tensor],
    y: Tensor,
    *,
    seed: int,
    resamples: int = RESAMPLES,
) -> Array:
    """The metric of every answer on resampled targets, [resamples, answers]; the same targets for all answers.

    A resample on which the metric is undefined, for instance without any member of a class, is drawn again.

    Args:
        metric: What counts.
        answers: Logits of the targets at every budget, each [t, c].
        y: Their labels, [t].
        seed: Random seed of the draws.
        resamples: Number of draws.
    """
    generator = np.random.default_rng(seed)
    rows: list[list[float]] = []
    for _ in range(20 * resamples):
        ids = torch.from_numpy(generator.integers(len(y), size=len(y)))
        if metric.label is not None and not bool((y[ids] == metric.label).any()):
            continue
        try:
            rows.append([value_of(metric, logits[ids], y[ids]) for logits in answers])
        except DataError:
            continue
        if len(rows) == resamples:
            break
    return np.array(rows, dtype=float).reshape(len(rows), len(answers))


def interval(values: Array, level: float = LEVEL) -> tuple[float, float]:
    """Percentile interval of resampled values."""
    if not len(values):
        return -math.inf, math.inf
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
    return float(low), float(high)


def breaking_point(
    budgets: Sequence[int], values: Sequence[float], resampled: Array, threshold: float
) -> BreakingPoint:
    """Where a curve breaks, with its interval.

    Args:
        budgets: Ascending, 0 first.
        values: Metric at each of them.
        resampled: The same on resampled targets, [resamples, budgets].
        threshold: What the metric should not fall below.
    """
    lowest = running_minimum(values)
    place = next((at for at, value in enumerate(lowest) if value < threshold), None)
    found = np.array([crossing(budgets, running_minimum(row), threshold) for row in resampled])
    low, high = interval(found) if len(found) else (math.inf, math.inf)
    if place is not None:  # crossings lie between two budgets that were tried, the point is the larger of them
        low, high = min(low, budgets[place]), max(high, budgets[place])
    return BreakingPoint(
        threshold=float(threshold),
        budget=None if place is None else int(budgets[place]),
        low=None if math.isinf(low) else math.ceil(low - 1e-9),
        high=None if math.isinf(high) else math.ceil(high - 1e-9),
        largest=int(budgets[-1]),
    )


def refine(budgets: Sequence[int], value_at: Callable[[int], float], threshold: float, *, most: int) -> list[int]:
    """Further budgets, by bisection between the last that holds and the first that breaks.

    Args:
        budgets: Ascending budgets that were tried, 0 first.
        value_at: Metric at a budget; a new one is attacked.
        threshold: What the metric should not fall below.
        most: Number of new budgets.
    """
    tried = sorted(budgets)
    added: list[int] = []
    for _ in range(most):
        lowest = running_minimum([value_at(budget) for budget in tried])
        place = next((at for at, value in enumerate(lowest) if value < threshold), None)
        if place is None or place == 0 or tried[place] - tried[place - 1] <= 1:
            break
        middle = (tried[place - 1] + tried[place]) // 2
        added.append(middle)
        tried = sorted([*tried, middle])
        value_at(middle)
    return added
