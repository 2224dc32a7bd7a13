"""Means with intervals, and the ranks that intervals allow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from grb.metric.summary import confidence_interval, crossed_interval
from grb.serial import Count


@dataclass(frozen=True)
class Estimate:
    """A mean with its spread: standard deviation over repeats (over n) and the 95 % interval; None where unknown."""

    mean: float
    std: float
    low: float | None
    high: float | None
    n: Count


def estimate_of(table: Mapping[tuple[int, int], float]) -> Estimate:
    """Mean, std and interval of values by (victim, repeat).

    Several victims that met the same repeats: trainings and edits are both drawn, so that the interval is that of two crossed
    effects (:func:`~grb.metric.summary.crossed_interval`). Several victims otherwise: Student's over the means of the victims.
    One victim: over its repeats; it says nothing about another training. One value has no interval.
    """
    numbers = np.array(list(table.values()), dtype=float)
    victims, repeats = (sorted({key[axis] for key in table}) for axis in (0, 1))
    if len(victims) > 1 and len(repeats) > 1 and len(table) == len(victims) * len(repeats):
        crossed = crossed_interval([[table[victim, repeat] for repeat in repeats] for victim in victims])
        return Estimate(float(numbers.mean()), float(numbers.std()), crossed.low, crossed.high, len(numbers))
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
