"""Scores of predictions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from grb.errors import DataError
from grb.metric.arrays import Array, as_array


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
    hits, members = _matrix_counts(pred, y) if as_array(y, "y").ndim == 2 else _label_counts(pred, y)
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
    table = as_array(scores, "scores")
    if table.ndim not in (1, 2) or table.size == 0:
        raise DataError(f"scores must be [n] or [n, c] and not empty, got shape {list(table.shape)}")
    if not np.isfinite(table).all():
        raise DataError(f"AUROC needs finite scores, got {int((~np.isfinite(table)).sum())} NaN or infinite ones")
    truth = as_array(y, "y")
    problems = _label_problems if truth.ndim == 2 else _class_problems
    areas = [_area(*problem) for problem in problems(table.reshape(len(table), -1), truth)]
    defined = [area for area in areas if area is not None]
    if not defined:
        raise DataError("y has only one class, but AUROC needs at least one positive and one negative")
    return float(np.mean(defined))


def _labels(values: Any, name: str, length: int | None = None) -> Array:
    """Checked integer labels, [n], n >= 1."""
    labels = as_array(values, name)
    if labels.ndim != 1 or labels.size == 0:
        raise DataError(f"{name} must be [n] labels with n >= 1, got shape {list(labels.shape)}")
    if labels.dtype.kind == "f" and not (np.isfinite(labels) & (labels == np.rint(labels))).all():
        raise DataError(f"{name} must hold integer labels, got fractions, NaN or infinity; scores go in as [n, c]")
    if length is not None and len(labels) != length:
        raise DataError(f"{name} has {len(labels)} labels for {length} predictions; pass one label per row")
    return labels.astype(np.int64)


def _predicted(values: Any) -> tuple[Array, Array]:
    """Predicted labels [n] and whether each row predicts anything [n]."""
    scores = as_array(values, "predictions")
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
    predicted, truth = as_array(pred, "pred"), as_array(y, "y")
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
