"""Metrics of scores: how well the members of a class rank above all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from grb.errors import DataError
from grb.metric.arrays import Array, as_array, as_labels

Curve = Callable[[Array, Array], float | None]


def auroc(scores: Any, y: Any, *, label: int | None = None) -> float:
    r"""Area under the ROC curve, correct for ties, in O(n log n) per class.

    .. math:: \frac{1}{PN} \left( \sum_{v:\, y_v = 1} r_v - \frac{P(P+1)}{2} \right)

    with :math:`r_v` the mid-rank of the score (equal scores share their mean rank), :math:`P` positives and :math:`N`
    negatives; constant scores give exactly 0.5. Columns are ranked as they are: pass probabilities or
    :func:`log_odds`, because one column of raw logits ignores the others.

    Args:
        scores: Finite scores. Binary: [n], [n, 1], or [n, 2], where column 1 counts. Multi-class, multi-label: [n, c].
        y: Binary: [n] with two distinct labels (the larger is positive; 0 and 1 for [n, 2]). Multi-class: [n] of
            0..c-1. Multi-label: [n, c] of 0, 1 or NaN = missing, which is skipped.
        label: The area of this class against the rest, or of this label, instead of the mean.

    Returns:
        The area; for several classes (one against the rest) or labels the mean over those that have both positives
        and negatives.

    Equal to ``sklearn.metrics.roc_auc_score`` wherever that is defined (``multi_class="ovr"``, ``average="macro"``).

    >>> auroc([.1, .4, .4, .8], [0, 0, 1, 1])
    0.875
    """
    found = _mean("AUROC", _roc_area, scores, y, label)
    if found is None:
        raise DataError("y has only one class, but AUROC needs at least one positive and one negative")
    return found


def roc_curve(scores: Any, y: Any) -> tuple[Array, Array]:
    """False and true positive rates of "the score is at least t", for t from above all scores down to the smallest.

    Args:
        scores: Finite scores, [n].
        y: Labels, [n]: 1 for positives, 0 for negatives; both are needed.

    Returns:
        Two ascending arrays from 0 to 1, [t + 1] for t distinct scores; the area under them is :func:`auroc`.

    >>> [rates.tolist() for rates in roc_curve([.1, .4, .4, .8], [0, 0, 1, 1])]
    [[0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0]]
    """
    values = as_array(scores, "scores").astype(float).reshape(-1)
    positive = as_labels(y, "y", len(values)) == 1
    if not np.isfinite(values).all():
        raise DataError("scores hold NaN or infinite values")
    if positive.all() or not positive.any():
        raise DataError("y has only one class, but a ROC curve needs at least one positive and one negative")
    _, group, sizes = np.unique(-values, return_inverse=True, return_counts=True)
    hits = np.bincount(group[positive], minlength=len(sizes))
    rates = [np.concatenate([[0.0], np.cumsum(each) / each.sum()]) for each in (sizes - hits, hits)]
    return rates[0], rates[1]


def average_precision(scores: Any, y: Any, *, label: int | None = None) -> float:
    r"""Area under the precision-recall curve as a sum over its steps, correct for ties, in O(n log n) per class.

    .. math:: \sum_t (R_t - R_{t-1})\, P_t

    with precision :math:`P_t` and recall :math:`R_t` of the items whose score is at least the t-th largest distinct one.

    Args:
        scores: As in :func:`auroc`.
        y: As in :func:`auroc`.
        label: As in :func:`auroc`.

    Returns:
        The area; for several classes (one against the rest) or labels the mean over those that have positives.

    Equal to ``sklearn.metrics.average_precision_score`` where every class has positives; scikit-learn counts a class
    without any as 0.

    >>> round(average_precision([.1, .4, .35, .8], [0, 0, 1, 1]), 4)
    0.8333
    """
    found = _mean("average precision", _precision_area, scores, y, label)
    if found is None:
        raise DataError("y has no positive item, but average precision needs at least one")
    return found


def log_odds(logits: Any) -> Array:
    r"""Log odds of every class against the rest, [n, c] float64; rises with the probability, but does not saturate at 1.

    .. math:: \log \frac{p_k}{1 - p_k} = z_k - \log \sum_{j \ne k} e^{z_j}

    Args:
        logits: [n, c], c >= 2, without NaN; infinite ones are taken as very large.

    >>> log_odds([[0., 0.], [100., 0.]]).tolist()
    [[0.0, 0.0], [100.0, -100.0]]
    """
    table = np.clip(as_array(logits, "logits").astype(np.float64), -1e30, 1e30)
    rows, first = np.arange(len(table)), table.argmax(axis=1)
    top = table[rows, first]
    powers = np.exp(table - top[:, None])
    # the sum over the others holds the largest term, so nothing cancels; the largest class itself is done apart
    total = powers.sum(axis=1, keepdims=True)
    powers[rows, first] = 0.0
    odds = table - top[:, None] - np.log(total - powers)
    rest = table.copy()
    rest[rows, first] = -np.inf
    second = rest.max(axis=1)
    odds[rows, first] = top - second - np.log(np.exp(rest - second[:, None]).sum(axis=1))
    return odds


def _mean(what: str, curve: Curve, scores: Any, y: Any, label: int | None) -> float | None:
    """Mean of a curve's area over the classes or labels where it is defined; None if that is nowhere."""
    table = as_array(scores, "scores")
    if table.ndim not in (1, 2) or table.size == 0:
        raise DataError(f"scores must be [n] or [n, c] and not empty, got shape {list(table.shape)}")
    if not np.isfinite(table).all():
        raise DataError(f"{what} needs finite scores, got {int((~np.isfinite(table)).sum())} NaN or infinite ones")
    table, truth = table.reshape(len(table), -1), as_array(y, "y")
    if label is not None and not 0 <= label < table.shape[1]:
        raise DataError(f"label={label} has no column, for scores have the columns 0..{table.shape[1] - 1}")
    problems = _label_problems if truth.ndim == 2 else _class_problems
    areas = [curve(*problem) for problem in problems(table, truth, label)]
    defined = [area for area in areas if area is not None]
    return float(np.mean(defined)) if defined else None


def _class_problems(table: Array, truth: Array, label: int | None) -> Iterator[tuple[Array, Array]]:
    """Scores and positives, [n] each, of a binary task or of every class against the rest."""
    labels, columns = as_labels(truth, "y", len(table)), table.shape[1]
    if columns == 1:
        found = len(np.unique(labels))
        if found > 2:
            raise DataError(f"one column of scores ranks two classes, but y has {found}; pass scores as [n, c]")
        yield table[:, 0], labels == labels.max()
        return
    if labels.min() < 0 or labels.max() >= columns:
        raise DataError(f"y has labels {labels.min()}..{labels.max()}, but scores have the columns 0..{columns - 1}")
    all_columns = range(columns) if columns > 2 else (1,)
    for column in all_columns if label is None else (label,):
        yield table[:, column], labels == column


def _label_problems(table: Array, truth: Array, label: int | None) -> Iterator[tuple[Array, Array]]:
    """Scores and positives of every label, over the rows where the label is known."""
    if truth.shape != table.shape:
        raise DataError(f"scores are {list(table.shape)} and y {list(truth.shape)}, but multi-label needs one [n, c]")
    known = ~np.isnan(truth)
    if not np.isin(truth[known], (0, 1)).all():
        raise DataError("multi-label y must hold 0, 1 or NaN (missing)")
    for column in range(table.shape[1]) if label is None else (label,):
        rows = known[:, column]
        yield table[rows, column], truth[rows, column] == 1


def _roc_area(scores: Array, positive: Array) -> float | None:
    """Mann-Whitney area of one column, [n] and [n]; None without both classes."""
    positives = int(positive.sum())
    negatives = len(positive) - positives
    if positives == 0 or negatives == 0:
        return None
    _, group, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    midranks = np.cumsum(sizes) - (sizes - 1) / 2
    return float((midranks[group[positive]].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def _precision_area(scores: Array, positive: Array) -> float | None:
    """Average precision of one column, [n] and [n]; None without positives."""
    if not positive.any():
        return None
    _, group, sizes = np.unique(-scores, return_inverse=True, return_counts=True)
    hits = np.bincount(group[positive], minlength=len(sizes))
    precisions = np.cumsum(hits) / np.cumsum(sizes)
    return float((hits * precisions).sum() / hits.sum())
