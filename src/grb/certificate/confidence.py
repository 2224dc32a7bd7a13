"""From votes to probabilities: exact binomial bounds, and which class a sampled model predicts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grb.errors import DataError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


def lower_bound(successes: Ints, samples: int, alpha: float) -> Floats:
    r"""One-sided Clopper-Pearson bound: the true probability is below it with probability at most ``alpha``.

    .. math:: \underline p = \mathrm{Beta}^{-1}(\alpha;\, k,\, n - k + 1), \qquad \underline p = 0 \text{ for } k = 0

    Args:
        successes: Number of successes :math:`k`, any shape.
        samples: Number of draws :math:`n`.
        alpha: Error probability.

    References:
        Clopper and Pearson, *The Use of Confidence or Fiducial Limits*, Biometrika 1934.

    >>> round(float(lower_bound(np.array(990), 1000, 0.01)), 5)
    0.97996
    """
    from scipy.stats import beta

    counts = _checked(successes, samples, alpha)
    return np.where(counts > 0, beta.ppf(alpha, np.maximum(counts, 1), samples - counts + 1), 0.0)


def upper_bound(successes: Ints, samples: int, alpha: float) -> Floats:
    """One-sided Clopper-Pearson bound from above; see :func:`lower_bound`."""
    from scipy.stats import beta

    counts = _checked(successes, samples, alpha)
    below = counts < samples
    return np.where(below, beta.isf(alpha, counts + 1, np.maximum(samples - counts, 1)), 1.0)


@dataclass(frozen=True, eq=False)
class VoteBounds:
    """What votes say of a smoothed classifier, all at once with probability ``1 - alpha`` per node.

    Args:
        label: Predicted class, [n].
        low: Lower bound of its probability, [n].
        high: Upper bound of the most probable other class, [n].
    """

    label: Ints
    low: Floats
    high: Floats

    @property
    def abstains(self) -> Bools:
        """Where the two bounds overlap, so that the votes do not tell which class leads, [n]."""
        return self.low <= self.high


def bounds_of(votes: Ints, alpha: float, *, choose: Ints | None = None) -> VoteBounds:
    r"""Bounds that hold together: the label's lower one and the upper ones of all other classes, each at :math:`\alpha / C`.

    Args:
        votes: Number of draws with each class, [n, C]; every row has the same sum.
        alpha: Error probability of one node.
        choose: Independent votes that choose the class, [n, C]; the votes themselves if None. Then any class may be chosen by
            the draws that bound it, and lower and upper bounds of all classes must hold at once, each at
            :math:`\alpha / 2 C`.

    The upper bound is the largest over all other classes. The reference code takes that of the class that was second in the
    pre-votes, which another class may exceed.
    """
    counts = np.asarray(votes, dtype=np.int64)
    if counts.ndim != 2 or counts.shape[1] < 2:
        raise DataError(f"votes have shape {list(counts.shape)}, but [nodes, classes] with two classes are needed")
    sums = counts.sum(1)
    samples = int(sums[0]) if len(sums) else 1
    if (sums != samples).any():
        raise DataError(f"rows of votes have from {sums.min()} to {sums.max()} draws, but all need the same number")
    label = np.asarray(counts if choose is None else choose).argmax(1)
    rows, classes = np.arange(len(counts)), counts.shape[1]
    share = alpha / (classes if choose is not None else 2 * classes)
    low = lower_bound(counts[rows, label], samples, share)
    highs = upper_bound(counts, samples, share)
    highs[rows, label] = -np.inf
    # probabilities sum to one, which is never looser
    return VoteBounds(label, low, np.minimum(highs.max(1), 1 - low) if len(counts) else low)


def _checked(successes: Ints, samples: int, alpha: float) -> Ints:
    counts = np.asarray(successes)
    if not 0 < alpha < 1:
        raise DataError(f"alpha is {alpha}, but must be above 0 and below 1")
    if samples < 1 or (counts.size and (counts.min() < 0 or counts.max() > samples)):
        raise DataError(f"successes must be from 0 to {samples} draws, and there must be a draw")
    return counts.astype(np.int64)
