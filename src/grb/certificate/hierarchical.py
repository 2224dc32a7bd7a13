r"""Hierarchical smoothing: only the rows of randomly selected nodes are smoothed, and the selection is visible.

Each row is selected with probability :math:`p`. An adversary of ``rows`` nodes is met by smoothing only if all of them are
selected, with probability :math:`p^r`; otherwise nothing is promised, which costs :math:`1 - p^r` at both bounds.

References:
    Scholten et al., *Hierarchical Randomized Smoothing*, NeurIPS 2023.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from grb.certificate.confidence import Bools, Floats
from grb.certificate.regions import ROUNDING, sparse_regions
from grb.errors import DataError


def largest_rows(p: float) -> int:
    """Largest number of rows for which anything can be certified: :math:`p^r > 1/2`.

    >>> largest_rows(0.81)
    3
    """
    chance, rows = _selection(p), 0
    if chance == 1:
        return 2**31 - 1
    while chance ** (rows + 1) > Fraction(1, 2):
        rows += 1
    return rows


def hierarchical_certified(
    low: Floats, high: Floats, *, p: float, rows: int, add: int, drop: int, p_add: float, p_drop: float
) -> Bools:
    """Whether nodes keep their class under ``add`` set and ``drop`` deleted bits in all, in at most ``rows`` rows, [n].

    Args:
        low: Lower bound of the leading class, [n].
        high: Upper bound of every other class, [n].
        p: Probability that a row is selected; 1 is plain sparse smoothing.
        rows: Rows that the adversary controls.
        add: Bits that are set.
        drop: Bits that are deleted.
        p_add: Probability that smoothing sets a bit of a selected row.
        p_drop: Probability that smoothing deletes a bit of a selected row.
    """
    chance = _selection(p) ** rows
    lost = float(1 - chance)
    regions = sparse_regions(add=add, drop=drop, p_add=p_add, p_drop=p_drop).scaled(chance)
    lowest = np.where(low > lost, regions.lowest(low - lost), 0.0)
    highest = regions.highest(high) + lost
    return (lowest > highest + ROUNDING) | (lowest > 0.5 + ROUNDING)


def gaussian_certified(
    low: Floats, high: Floats, *, sigma: float, distance: float, p: float = 1.0, rows: int = 0
) -> Bools:
    r"""Whether nodes keep their class under a change of length ``distance`` of real features with Gaussian smoothing, [n].

    .. math:: \Phi(\Phi^{-1}(\underline p) - \epsilon / \sigma) > \Phi(\Phi^{-1}(\overline p) + \epsilon / \sigma)

    and with selected rows the masses of :func:`hierarchical_certified`.

    Args:
        low: Lower bound of the leading class, [n].
        high: Upper bound of every other class, [n].
        sigma: Standard deviation of the noise.
        distance: Euclidean length of the change, over all rows together.
        p: Probability that a row is selected; 1 smooths everything.
        rows: Rows that the adversary controls.

    References:
        Cohen et al., *Certified Adversarial Robustness via Randomized Smoothing*, ICML 2019.
    """
    from scipy.stats import norm

    if not sigma > 0 or not 0 <= distance < math.inf:
        raise DataError(
            f"sigma is {sigma} and distance is {distance}, but sigma > 0 and a finite distance >= 0 are needed"
        )
    chance = float(_selection(p) ** rows)
    lost, step = 1 - chance, distance / sigma
    inside = np.clip((low - lost) / chance, 0.0, 1.0)
    lowest = chance * norm.cdf(norm.ppf(inside) - step)
    highest = chance * norm.cdf(norm.ppf(np.clip(high / chance, 0.0, 1.0)) + step) + lost
    return (lowest > highest + ROUNDING) | (lowest > 0.5 + ROUNDING)


def _selection(p: float) -> Fraction:
    if not 0 < p <= 1:
        raise DataError(f"p is {p}, but the probability of a selection is above 0 and at most 1")
    return Fraction(str(p))
