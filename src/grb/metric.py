"""Scores of predictions, the leaderboard summaries of the GRB paper, and intervals for repeated runs.

Every function is pure and takes arrays, sequences or torch tensors; floats come back, or numpy arrays where it says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from grb.errors import DataError

Array = npt.NDArray[Any]
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


def accuracy(predictions: Any, y: Any) -> float:
    r"""Share of correct predictions.

    .. math:: \frac{1}{n} \sum_{v=1}^{n} [\hat y_v = y_v]

    Args:
        predictions: Class scores, [n, c] with c >= 2 (the largest wins, the first of equals), or predicted labels, [n].
            A row of scores with a NaN predicts nothing and counts as wrong.
        y: True labels, [n] integers.

    >>> accuracy([[.9, .1], [.2, .8], [.6, .4]], [0, 1, 1])
    0.6666666666666666
    """
    predicted, valid = _predicted(predictions)
    return float(np.mean((predicted == _labels(y, "y", len(predicted))) & valid))


def changed(before: Any, after: Any) -> float:
    r"""Share of predictions that an attack changed: the objective of Equation 1, divided by the number of nodes.

    .. math:: \frac{1}{n} \left| \arg\max_l \mathcal M(\mathcal G')_l \neq \arg\max_l \mathcal M(\mathcal G)_l \right|

    No true label is involved, so a wrong prediction that becomes right counts too.

    Args:
        before: Scores [n, c] or labels [n] on the clean graph.
        after: The same nodes on the attacked graph (leave injected nodes out). A row with a NaN differs from every
            class, but not from another row with a NaN.

    Differs from the paper: a share instead of a count, so that difficulties and datasets compare.

    References:
        Zheng et al., *Graph Robustness Benchmark*, NeurIPS 2021, Eq. 1.

    >>> changed([0, 1, 2, 2], [0, 1, 1, 0])
    0.5
    """
    (first, first_valid), (second, second_valid) = _predicted(before), _predicted(after)
    if len(first) != len(second):
        raise DataError(f"before has {len(first)} predictions, but after has {len(second)}; compare the same nodes")
    return float(np.mean((first_valid != second_valid) | ((first != second) & first_valid)))


def f1(pred: Any, y: Any, average: Literal["micro", "macro"] = "micro") -> float:
    r"""F1 score of multi-class labels or of multi-label 0/1 matrices.

    .. math:: F_k = \frac{2\, tp_k}{2\, tp_k + fp_k + fn_k}

    Micro sums the counts over the classes first; macro is the mean of :math:`F_k` over the classes that occur in
    ``pred`` or ``y``, or over all columns of a matrix. A column without any true or predicted member has
    :math:`F_k = 0`. These are the values of scikit-learn with ``zero_division=0``.

    Args:
        pred: Predicted labels, [n], or 0/1 decisions, [n, c].
        y: True labels of the same shape.

    Differs from scikit-learn: [n, 1] is one label (its positive class counts), not a two-class problem.

    >>> f1([0, 1, 1], [0, 1, 2], average="macro")
    0.5555555555555555
    """
    if average not in ("micro", "macro"):
        raise DataError(f"no average {average!r} for F1; use 'micro' or 'macro'")
    hits, members = _matrix_counts(pred, y) if _array(y, "y").ndim == 2 else _label_counts(pred, y)
    if average == "micro":
        hits, members = hits.sum(keepdims=True), members.sum(keepdims=True)
    return float(np.mean(2 * hits / np.maximum(members, 1)))


def auroc(scores: Any, y: Any) -> float:
    r"""Area under the ROC curve, correct for ties, in O(n log n) per class.

    .. math:: \frac{1}{PN} \left( \sum_{v:\, y_v = 1} r_v - \frac{P(P+1)}{2} \right)

    with :math:`r_v` the mid-rank of the score (equal scores share their mean rank), :math:`P` positives and :math:`N`
    negatives; constant scores give exactly 0.5. Columns are ranked as they are: pass probabilities, because one column
    of raw logits ignores the others.

    Args:
        scores: Finite scores. Binary: [n], [n, 1], or [n, 2], where column 1 counts. Multi-class, multi-label: [n, c].
        y: Binary: [n] with two distinct labels (the larger is positive; 0 and 1 for [n, 2]). Multi-class: [n] of
            0..c-1. Multi-label: [n, c] of 0, 1 or NaN = missing, which is skipped.

    Returns:
        The area; for several classes (one against the rest) or labels the mean over those that have both positives
        and negatives.

    Equal to ``sklearn.metrics.roc_auc_score`` wherever that is defined (``multi_class="ovr"``, ``average="macro"``).

    >>> auroc([.1, .4, .4, .8], [0, 0, 1, 1])
    0.875
    """
    table = _array(scores, "scores")
    if table.ndim not in (1, 2) or table.size == 0:
        raise DataError(f"scores must be [n] or [n, c] and not empty, got shape {list(table.shape)}")
    if not np.isfinite(table).all():
        raise DataError(f"AUROC needs finite scores, got {int((~np.isfinite(table)).sum())} NaN or infinite ones")
    truth = _array(y, "y")
    problems = _label_problems if truth.ndim == 2 else _class_problems
    areas = [_area(*problem) for problem in problems(table.reshape(len(table), -1), truth)]
    defined = [area for area in areas if area is not None]
    if not defined:
        raise DataError("y has only one class, but AUROC needs at least one positive and one negative")
    return float(np.mean(defined))


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
    return _plain(_accuracies(values).mean(axis=-1))


def three_max(values: Any) -> Any:
    """Mean accuracy of the three most robust defenses, the paper's "Avg. 3-Max" of an attack; lower is better.

    Over the last axis, [..., k] to [...], a float for a vector; of one or two values it is their mean.
    """
    return _plain(np.sort(_accuracies(values), axis=-1)[..., -3:].mean(axis=-1))


def three_min(values: Any) -> Any:
    """Mean accuracy under the three most effective attacks, the paper's "Avg. 3-Min" of a defense; higher is better.

    Over the last axis, [..., k] to [...], a float for a vector; of one or two values it is their mean.
    """
    return _plain(np.sort(_accuracies(values), axis=-1)[..., :3].mean(axis=-1))


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
    return _plain(ordered @ rank_weights(ordered.shape[-1]))


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
    return MeanStd(_plain(table.mean(axis=0)), _plain(table.std(axis=0)))


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


def _array(values: Any, name: str) -> Array:
    """A numpy view or copy of an array, a sequence, or anything with torch's ``detach().cpu()``."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        if str(values.dtype) == "torch.bfloat16":  # numpy has no bfloat16; float32 holds it exactly
            values = values.float()
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise DataError(f"{name} must be a rectangular array of numbers: {error}") from None
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name} must hold numbers, got dtype {array.dtype}")
    return array


def _labels(values: Any, name: str, length: int | None = None) -> Array:
    """Checked integer labels, [n], n >= 1."""
    labels = _array(values, name)
    if labels.ndim != 1 or labels.size == 0:
        raise DataError(f"{name} must be [n] labels with n >= 1, got shape {list(labels.shape)}")
    if labels.dtype.kind == "f" and not (np.isfinite(labels) & (labels == np.rint(labels))).all():
        raise DataError(f"{name} must hold integer labels, got fractions, NaN or infinity; scores go in as [n, c]")
    if length is not None and len(labels) != length:
        raise DataError(f"{name} has {len(labels)} labels for {length} predictions; pass one label per row")
    return labels.astype(np.int64)


def _predicted(values: Any) -> tuple[Array, Array]:
    """Predicted labels [n] and whether each row predicts anything [n]."""
    scores = _array(values, "predictions")
    if scores.ndim != 2:
        labels = _labels(scores, "predictions")
        return labels, np.ones(len(labels), dtype=bool)
    if len(scores) == 0 or scores.shape[1] < 2:
        raise DataError(
            f"scores must be [n, c], n >= 1 and c >= 2, got {list(scores.shape)}; threshold a single column"
        )
    return scores.argmax(axis=1), np.logical_not(np.isnan(scores).any(axis=1))


def _label_counts(pred: Any, y: Any) -> tuple[Array, Array]:
    """True positives, and predicted plus true members, of every class that occurs, [k] each."""
    truth = _labels(y, "y")
    predicted = _labels(pred, "pred", len(truth))
    classes, ids = np.unique(np.concatenate([predicted, truth]), return_inverse=True)
    hits = np.bincount(ids[: len(truth)][predicted == truth], minlength=len(classes))
    return hits, np.bincount(ids, minlength=len(classes))


def _matrix_counts(pred: Any, y: Any) -> tuple[Array, Array]:
    """True positives, and predicted plus true members, of every column, [c] each."""
    predicted, truth = _array(pred, "pred"), _array(y, "y")
    if predicted.shape != truth.shape or truth.size == 0:
        raise DataError(
            f"pred is {list(predicted.shape)} and y {list(truth.shape)}, but both must be one [n, c], not empty"
        )
    if not (np.isin(predicted, (0, 1)).all() and np.isin(truth, (0, 1)).all()):
        raise DataError("multi-label pred and y must hold only 0 and 1; threshold the scores first")
    hits = ((predicted == 1) & (truth == 1)).sum(axis=0)
    return hits, (predicted == 1).sum(axis=0) + (truth == 1).sum(axis=0)


def _class_problems(table: Array, truth: Array) -> Iterator[tuple[Array, Array]]:
    """Scores and positives, [n] each, of a binary task or of every class against the rest."""
    labels, columns = _labels(truth, "y", len(table)), table.shape[1]
    if columns == 1:
        found = len(np.unique(labels))
        if found > 2:
            raise DataError(f"one column of scores ranks two classes, but y has {found}; pass scores as [n, c]")
        yield table[:, 0], labels == labels.max()
        return
    if labels.min() < 0 or labels.max() >= columns:
        raise DataError(f"y has labels {labels.min()}..{labels.max()}, but scores have the columns 0..{columns - 1}")
    for column in range(columns) if columns > 2 else (1,):
        yield table[:, column], labels == column


def _label_problems(table: Array, truth: Array) -> Iterator[tuple[Array, Array]]:
    """Scores and positives of every label, over the rows where the label is known."""
    if truth.shape != table.shape:
        raise DataError(f"scores are {list(table.shape)} and y {list(truth.shape)}, but multi-label needs one [n, c]")
    known = ~np.isnan(truth)
    if not np.isin(truth[known], (0, 1)).all():
        raise DataError("multi-label y must hold 0, 1 or NaN (missing)")
    for column in range(table.shape[1]):
        rows = known[:, column]
        yield table[rows, column], truth[rows, column] == 1


def _area(scores: Array, positive: Array) -> float | None:
    """Mann-Whitney area of one column, [n] and [n]; None without both classes."""
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if positives == 0 or negatives == 0:
        return None
    _, group, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    midranks = np.cumsum(sizes) - (sizes - 1) / 2
    return float((midranks[group[positive]].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def _accuracies(values: Any) -> Array:
    """Checked finite values, at least one along every axis; a missing cell must not sort to one end unseen."""
    table = _array(values, "values").astype(float)
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


def _plain(values: Any) -> Any:
    """A Python float instead of a numpy scalar, so that records stay plain JSON."""
    return float(values) if np.ndim(values) == 0 else values
