r"""Sparse randomised smoothing: regions of constant likelihood ratio, and what a vote is worth after an edit.

A smoothed classifier says :math:`g(x) = \arg\max_c P(f(\phi(x)) = c)`, where :math:`\phi` flips a zero with probability
:math:`p_+` and a one with :math:`p_-`, independently. For two inputs that differ in ``add`` zeros and ``drop`` ones the space
falls into regions in which the ratio of both probabilities is constant (Neyman and Pearson): the worst classifier fills them
in order of the ratio. All masses are exact rational numbers.

References:
    Bojchevski et al., *Efficient Robustness Certificates for Discrete Data*, ICML 2020.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb, factorial

import numpy as np

from grb.certificate.confidence import Bools, Floats, Ints
from grb.certificate.result import UNLIMITED
from grb.errors import DataError

# floating point sums of masses are right to this; a certificate must not depend on less
ROUNDING = 1e-12
Mass = tuple[Fraction, Fraction]


@dataclass(frozen=True, eq=False)
class Regions:
    """Masses of all regions under both inputs, by descending ratio.

    Args:
        here: Mass under the input, [regions].
        there: Mass under the edited input, [regions].

    >>> regions = sparse_regions(add=0, drop=1, p_add=0.01, p_drop=0.6)
    >>> float(regions.lowest(np.array([0.9]))[0]) > 0.5
    True
    """

    here: tuple[Fraction, ...]
    there: tuple[Fraction, ...]

    @classmethod
    def of(cls, masses: list[Mass]) -> Regions:
        """Regions from pairs of masses in any order; those of one ratio are merged, empty ones dropped."""
        merged: dict[tuple[int, Fraction], list[Fraction]] = {}
        for here, there in masses:
            if not (here or there):
                continue
            # an infinite ratio comes first
            ratio = (1, Fraction(0)) if not there else (0, here / there)
            total = merged.setdefault(ratio, [Fraction(0), Fraction(0)])
            total[0] += here
            total[1] += there
        ordered = [merged[ratio] for ratio in sorted(merged, reverse=True)]
        return cls(tuple(mass[0] for mass in ordered), tuple(mass[1] for mass in ordered))

    def __mul__(self, other: Regions) -> Regions:
        """Regions of two independent parts of the input, such as features and edges."""
        return Regions.of(
            [
                (a * c, b * d)
                for a, b in zip(self.here, self.there, strict=True)
                for c, d in zip(other.here, other.there, strict=True)
            ]
        )

    def scaled(self, factor: Fraction) -> Regions:
        """All masses multiplied by a number: what is left of them where something else must happen first."""
        return Regions(tuple(factor * mass for mass in self.here), tuple(factor * mass for mass in self.there))

    def lowest(self, p: Floats) -> Floats:
        """Smallest probability under the edited input of a set that has probability ``p`` here, [n]."""
        pairs = [(a, b) for a, b in zip(self.here, self.there, strict=True) if a]
        return _filled(pairs, p, start=Fraction(0))

    def highest(self, p: Floats) -> Floats:
        """Largest probability under the edited input of a set that has probability ``p`` here, [n]."""
        pairs = list(zip(self.here, self.there, strict=True))[::-1]
        free = sum((b for a, b in pairs if not a), Fraction(0))
        return _filled([pair for pair in pairs if pair[0]], p, start=free)


def _filled(pairs: list[Mass], p: Floats, start: Fraction) -> Floats:
    """What a set of mass ``p`` weighs on the other side if regions are taken in order, the last one in part."""
    here, there = [Fraction(0)], [start]
    for a, b in pairs:
        here.append(here[-1] + a)
        there.append(there[-1] + b)
    clipped = np.clip(p, 0.0, float(here[-1]))
    return np.interp(clipped, [float(value) for value in here], [float(value) for value in there])


@lru_cache(maxsize=4096)
def sparse_regions(*, add: int, drop: int, p_add: float, p_drop: float) -> Regions:
    """Regions of an edit that sets ``add`` zeros and deletes ``drop`` ones.

    Args:
        add: Zeros that are set, by the edit.
        drop: Ones that are deleted, by the edit.
        p_add: Probability that smoothing sets a zero, :math:`p_+`.
        p_drop: Probability that smoothing deletes a one, :math:`p_-`.

    Every pair (changed bits among the zeros, among the ones) is a region; those of equal ratio are merged. That covers
    :math:`p_+ = 0` and :math:`p_- = 0`, where ratios are zero or infinite, without a special case.
    """
    plus, minus = _probability(p_add, "p_add"), _probability(p_drop, "p_drop")
    if add < 0 or drop < 0:
        raise DataError(f"add is {add} and drop is {drop}, but neither may be negative")
    zeros = list(zip(_binomial(add, plus), _binomial(add, 1 - minus), strict=True))
    ones = list(zip(_binomial(drop, minus), _binomial(drop, 1 - plus), strict=True))
    return Regions.of([(a * c, b * d) for a, b in zeros for c, d in ones])


@lru_cache(maxsize=512)
def discrete_regions(*, changed: int, categories: int, p: float) -> Regions:
    r"""Regions of an edit of ``changed`` entries that take one of several categories, each kept with probability ``1 - p``.

    An entry stays (:math:`1 - p`), takes the edited value (:math:`p / (k - 1)`) or another one; under the edited input the
    first two are exchanged.
    """
    flip = _probability(p, "p")
    if categories < 2 or changed < 0:
        raise DataError(f"categories is {categories} and changed is {changed}, but at least 2 and 0 are needed")
    stay, hit = 1 - flip, flip / (categories - 1)
    other = 1 - stay - hit
    masses: list[Mass] = []
    for kept in range(changed + 1):
        for moved in range(changed - kept + 1):
            rest = changed - kept - moved
            ways = Fraction(factorial(changed), factorial(kept) * factorial(moved) * factorial(rest)) * other**rest
            masses.append((ways * stay**kept * hit**moved, ways * hit**kept * stay**moved))
    return Regions.of(masses)


def certified_binary(regions: Regions, low: Floats) -> Bools:
    """Whether a class of probability at least ``low`` keeps more than half of the mass, [n]."""
    return regions.lowest(low) > 0.5 + ROUNDING


def certified(regions: Regions, low: Floats, high: Floats) -> Bools:
    """Whether a class of probability at least ``low`` stays ahead of any class of at most ``high``, [n].

    The second class cannot have more than what the first leaves over, so the binary criterion is enough too.
    """
    ahead = regions.lowest(low) > regions.highest(high) + ROUNDING
    return ahead | certified_binary(regions, low)


def smallest_probability(regions: Regions) -> float:
    """Smallest probability of the leading class that is certified with two classes; 1.0 if none is.

    >>> round(smallest_probability(sparse_regions(add=0, drop=1, p_add=0.01, p_drop=0.6)), 4)
    0.697
    """
    here, there, half = Fraction(0), Fraction(0), Fraction(1, 2)
    for a, b in zip(regions.here, regions.there, strict=True):
        if a and there + b > half:
            return float(here + a * (half - there) / b)
        here, there = here + a, there + b
    return 1.0


def largest_edit(keeps: Callable[[int], bool], most: int = 10_000) -> int:
    """Largest number of changes that is certified, given what is certified at every number; certificates only shrink."""
    count = 0
    while count < most and keeps(count + 1):
        count += 1
    return count


def certified_edits(
    low: Floats, high: Floats, *, p_add: float, p_drop: float, most: int, allow: frozenset[str]
) -> Ints:
    """Largest number of edge changes, of any allowed kinds in any mixture, that every node survives, [n]; at most ``most``.

    Args:
        low: Lower bound of the leading class, [n].
        high: Upper bound of every other class, [n].
        p_add: As in :func:`sparse_regions`.
        p_drop: As in :func:`sparse_regions`.
        most: Where to stop; any number is survived where what is drawn does not depend on edges.
        allow: ``add``, ``drop`` or both.
    """
    found = np.zeros(len(low), dtype=np.int64)
    alive = np.asarray(low > high)
    found[~alive] = -1
    if _probability(p_add, "p_add") + _probability(p_drop, "p_drop") == 1:
        found[alive] = UNLIMITED  # what is drawn does not depend on the edges that were there
        return found
    for budget in range(1, most + 1):
        mixtures = [(add, budget - add) for add in range(budget + 1)]
        for add, drop in mixtures:
            if (add and "add" not in allow) or (drop and "drop" not in allow):
                continue
            rows = np.flatnonzero(alive)
            if not len(rows):
                return found
            regions = sparse_regions(add=add, drop=drop, p_add=p_add, p_drop=p_drop)
            alive[rows] = certified(regions, low[rows], high[rows])
        found[alive] = budget
    return found


def _probability(value: float, name: str) -> Fraction:
    if not 0 <= value <= 1:
        raise DataError(f"{name} is {value}, but a probability is between 0 and 1")
    return Fraction(str(value))


def _binomial(count: int, p: Fraction) -> list[Fraction]:
    return [comb(count, k) * p**k * (1 - p) ** (count - k) for k in range(count + 1)]
