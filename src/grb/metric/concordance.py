"""Concordance: how often two values are predicted in their true order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from grb.errors import DataError

Integers = NDArray[np.int64]


def concordance(scores: Any, values: Any) -> float:
    r"""Fraction of the pairs with different values whose scores have the same order; equal scores count one half.

    .. math:: C = \frac{\sum_{v_i > v_j} [s_i > s_j] + \tfrac12 [s_i = s_j]}{\sum_{v_i > v_j} 1}

    .5 for guessing and 1 for the right order; with two values it is the AUROC. So ratios of concordances of a regression
    compare with ratios of AUROCs, which those of :math:`R^2`, negative for bad models, do not.
    It takes :math:`O(n \log^2 n)`.

    Args:
        scores: Predictions, [n].
        values: True values, [n].

    References:
        Harrell et al., *Evaluating the Yield of Medical Tests*, JAMA 1982.

    >>> concordance([0.1, 0.4, 0.2], [1.0, 2.0, 3.0])
    0.6666666666666666
    """
    s, v = (np.asarray(each, dtype=np.float64) for each in (scores, values))
    if s.shape != v.shape or s.ndim != 1:
        raise DataError(f"scores {list(s.shape)} and values {list(v.shape)} are not two vectors of one length")
    if not (np.isfinite(s).all() and np.isfinite(v).all()):
        raise DataError("a score or a value is NaN or infinite, so that there is no order")
    ranks, levels = (np.unique(each, return_inverse=True)[1] for each in (s, v))
    n, counts = len(v), np.bincount(levels) if len(v) else np.zeros(0)
    pairs = (float(n) ** 2 - float(np.square(counts, dtype=np.float64).sum())) / 2
    if pairs == 0:
        raise DataError("all values are the same, so that no pair has an order")
    return (_ordered(levels, ranks) + _tied(levels, ranks) / 2) / pairs


def _ordered(levels: Integers, ranks: Integers) -> float:
    """Pairs with a smaller score and a smaller value: merge sort, all blocks of one width at a time."""
    # equal scores must not count: within one score, larger values come first
    current = levels[np.lexsort((-levels, ranks))]
    n, most = len(levels), int(levels.max()) + 1
    order, total, width = np.arange(n), 0.0, 1
    while width < n:
        block, left = order // (2 * width), (order // width) % 2 == 0
        keys = block * most + current
        # how many of the sorted left half of its block lie below every element of the right half
        below = np.searchsorted(keys[left], keys[~left]) - np.searchsorted(block[left], block[~left])
        total += float(below.sum())
        current = current[np.argsort(keys, kind="stable")]
        width *= 2
    return total


def _tied(levels: Integers, ranks: Integers) -> float:
    """Pairs with equal scores and different values."""
    both = np.unique(ranks * (int(levels.max()) + 1) + levels, return_counts=True)[1]
    same = np.bincount(ranks)
    return float(np.square(same, dtype=np.float64).sum() - np.square(both, dtype=np.float64).sum()) / 2
