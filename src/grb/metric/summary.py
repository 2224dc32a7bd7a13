"""The leaderboard summaries of the GRB paper, and intervals for repeated runs."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from grb.errors import DataError
from grb.metric.arrays import Array, as_array

Side = Literal["attack", "defense"]


class MeanStd(NamedTuple):
    """Mean and population standard deviation: floats, or arrays of one shape."""

    mean: Any
    std: Any


class Interval(NamedTuple):
    """A mean with the two ends of its confidence interval."""

    mean: float
    low: float
    high: float


def rank_weights(n: int) -> Array:
    r"""Weights of the ranks 1..n in the weighted accuracy, [n]: :math:`w_i = (1/i^2) / \sum_{j=1}^{n} (1/j^2)`.

    >>> rank_weights(2).tolist()
    [0.8, 0.2]
    """
    if n < 1:
        raise DataError(f"rank weights need at least one rank, got n={n}")
    weights = 1.0 / np.arange(1, n + 1) ** 2
    return np.asarray(weights / weights.sum())


def average(values: Any) -> Any:
    """Average accuracy, the paper's "Avg.", over the last axis: [..., k] to [...], a float for a vector."""
    return _native(_accuracies(values).mean(axis=-1))


def three_max(values: Any) -> Any:
    """Mean accuracy of the three most robust defenses, the paper's "Avg. 3-Max" of an attack; lower is better.

    Over the last axis, [..., k] to [...], a float for a vector; of one or two values it is their mean.
    """
    return _native(np.sort(_accuracies(values), axis=-1)[..., -3:].mean(axis=-1))


def three_min(values: Any) -> Any:
    """Mean accuracy under the three most effective attacks, the paper's "Avg. 3-Min" of a defense; higher is better.

    Over the last axis, [..., k] to [...], a float for a vector; of one or two values it is their mean.
    """
    return _native(np.sort(_accuracies(values), axis=-1)[..., :3].mean(axis=-1))


def weighted(values: Any, *, side: Side) -> Any:
    r"""Weighted accuracy of one attack or of one defense: the strongest opponents weigh most.

    .. math:: s_w = \sum_{i=1}^{k} w_i s_i, \quad w_i = \frac{1/i^2}{\sum_{j=1}^{k} 1/j^2}

    with :math:`s_i` the accuracies in descending order for an attack (the most robust defense first) and in ascending
    order for a defense (the most effective attack first).

    Args:
        values: Accuracies against every opponent, [..., k]; for a defense, the clean graph counts as an attack.
        side: Whose score this is: ``"attack"`` (values over defenses) or ``"defense"`` (values over attacks).

    Returns:
        The scores, [...], a float for a vector.

    References:
        Zheng et al., *Graph Robustness Benchmark*, NeurIPS 2021, Section 4 (Evaluation Metrics).

    >>> weighted([50., 100.], side="attack"), weighted([50., 100.], side="defense")
    (90.0, 60.0)
    """
    ascending = np.sort(_accuracies(values), axis=-1)
    ordered = ascending if _side(side) == "defense" else ascending[..., ::-1]
    return _native(ordered @ rank_weights(ordered.shape[-1]))


def summarise(values: Any, *, side: Side) -> dict[str, MeanStd]:
    """The three leaderboard summaries with error bars: of every repeat first, then mean and std over the repeats.

    The order matters: sorting the means instead overrates a defense whose worst attack changes from run to run, by up
    to 2.3 points in the paper's Table 14.

    Args:
        values: Accuracies, [repeats, ..., k]: [repeats, attacks, defenses] for ``side="attack"``,
            [repeats, defenses, attacks] for ``side="defense"``.

    Returns:
        ``average``, ``three_max`` (attack) or ``three_min`` (defense), and ``weighted``, each of shape [...].
    """
    table = _accuracies(values)
    if table.ndim < 2:
        raise DataError(f"summarise needs [repeats, ..., k], got {list(table.shape)}; one repeat is values[None]")
    extreme, top = ("three_max", three_max) if _side(side) == "attack" else ("three_min", three_min)
    return {
        "average": mean_std(average(table)),
        extreme: mean_std(top(table)),
        "weighted": mean_std(weighted(table, side=side)),
    }


def mean_std(values: Any) -> MeanStd:
    """Mean and population standard deviation (over n) along the first axis, [n, ...] to [...]; one value has std 0."""
    table = _accuracies(values)
    return MeanStd(_native(table.mean(axis=0)), _native(table.std(axis=0)))


def confidence_interval(values: Any, *, level: float = 0.95) -> Interval:
    r"""Two-sided Student interval of a mean.

    .. math:: \bar x \pm t_{(1 + level)/2,\, n-1} \frac{s}{\sqrt n}

    with :math:`s` the sample standard deviation (over n - 1). One value says nothing about spread: its interval is
    (-inf, inf), never NaN.

    Args:
        values: Independent repeats, [n].
    """
    sample = _sample(values, level)
    if len(sample) == 1:
        return Interval(float(sample[0]), -np.inf, np.inf)
    from scipy.special import stdtrit  # type: ignore[import-untyped, unused-ignore]

    centre = float(sample.mean())
    half = float(stdtrit(len(sample) - 1, (1 + level) / 2) * sample.std(ddof=1) / np.sqrt(len(sample)))
    return Interval(centre, centre - half, centre + half)


def crossed_interval(table: Any, *, level: float = 0.95) -> Interval:
    r"""Two-sided interval of the mean of a table whose rows and columns are both drawn at random.

    Trainings that meet the same edits share the luck of those edits. With the mean squares :math:`M_r` of rows, :math:`M_c` of
    columns and :math:`M_e` of what is left, the variance of the mean of R x C values is :math:`(M_r + M_c - M_e) / RC`, with
    Satterthwaite's degrees of freedom; it is not taken to be below :math:`M_r / RC`, that of independent rows.

    Args:
        table: Values of independent rows (trainings) under independent columns (edits), [R, C], both at least 2.

    References:
        Satterthwaite, *An Approximate Distribution of Estimates of Variance Components*, Biometrics Bulletin 1946.
    """
    values = np.asarray(table, dtype=float)
    if values.ndim != 2 or min(values.shape) < 2:
        raise DataError(f"a table of at least 2 x 2 values is needed, got shape {list(values.shape)}")
    _sample(values.ravel(), level)
    from scipy.special import stdtrit  # type: ignore[import-untyped, unused-ignore]

    rows, columns = values.shape
    centre = float(values.mean())
    own, shared = values.mean(1), values.mean(0)
    rest = values - own[:, None] - shared[None, :] + centre
    squares = np.array(
        [
            columns * np.square(own - centre).sum() / (rows - 1),
            rows * np.square(shared - centre).sum() / (columns - 1),
            np.square(rest).sum() / ((rows - 1) * (columns - 1)),
        ]
    )
    freedoms = np.array([rows - 1, columns - 1, (rows - 1) * (columns - 1)])
    total = float(squares[0] + squares[1] - squares[2])
    if total <= squares[0]:
        total, freedom = float(squares[0]), float(rows - 1)
    else:
        freedom = max(1.0, total**2 / float((np.square(squares) / freedoms).sum()))
    half = float(stdtrit(freedom, (1 + level) / 2) * np.sqrt(total / values.size))
    return Interval(centre, centre - half, centre + half)


def bootstrap_interval(
    values: Any, generator: np.random.Generator, *, level: float = 0.95, resamples: int = 10_000
) -> Interval:
    """Percentile bootstrap interval of a mean; no assumption of normality, but too narrow below some ten values.

    One value resamples only to itself; its interval is (-inf, inf) as in :func:`confidence_interval`.

    Args:
        values: Independent repeats, [n].
        generator: The only source of randomness; equal states give equal intervals.

    References:
        Efron, Tibshirani, *An Introduction to the Bootstrap*, 1993, Chapter 13.
    """
    sample = _sample(values, level)
    if resamples < 1:
        raise DataError(f"a bootstrap needs at least one resample, got resamples={resamples}")
    if len(sample) == 1:
        return Interval(float(sample[0]), -np.inf, np.inf)
    block = max(1, 2**20 // len(sample))  # bounds the memory to 8 MB of indices
    sizes = [min(block, resamples - start) for start in range(0, resamples, block)]
    means = [sample[generator.integers(len(sample), size=(size, len(sample)))].mean(axis=1) for size in sizes]
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(sample.mean()), float(low), float(high))


def paired_difference(a: Any, b: Any, *, level: float = 0.95) -> Interval:
    """Mean of a - b with the Student interval of the pairwise differences; for runs that share seeds or splits.

    Args:
        a: One value per seed, [n].
        b: Values of the same seeds in the same order, [n].

    >>> paired_difference([3., 4., 5.], [1., 2., 3.])
    Interval(mean=2.0, low=2.0, high=2.0)
    """
    first, second = _sample(a, level), _sample(b, level)
    if len(first) != len(second):
        raise DataError(f"a has {len(first)} values, but b has {len(second)}; pairs need one b for every a")
    return confidence_interval(first - second, level=level)


def _accuracies(values: Any) -> Array:
    """Checked finite values, at least one along every axis; a missing cell must not sort to one end unseen."""
    table = as_array(values, "values").astype(float)
    if table.ndim == 0 or table.size == 0:
        raise DataError(f"a summary needs at least one value, got shape {list(table.shape)}")
    if not np.isfinite(table).all():
        raise DataError(f"values hold {int((~np.isfinite(table)).sum())} NaN or infinite cells; leave missing ones out")
    return table


def _sample(values: Any, level: float) -> Array:
    """Checked vector of repeats for an interval of the given level."""
    if not 0 < level < 1:
        raise DataError(f"level must lie strictly between 0 and 1, got {level}")
    sample = _accuracies(values)
    if sample.ndim != 1:
        raise DataError(f"an interval needs a vector [n], got shape {list(sample.shape)}")
    return sample


def _side(side: Side) -> Side:
    if side not in ("attack", "defense"):
        raise DataError(f"no side {side!r}; use 'attack' (a score over defenses) or 'defense' (a score over attacks)")
    return side


def _native(values: Any) -> Any:
    """A Python float instead of a numpy scalar, so that records stay plain JSON."""
    return float(values) if np.ndim(values) == 0 else values
