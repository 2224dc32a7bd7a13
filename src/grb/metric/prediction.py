"""Metrics of decisions: predicted classes, or 0/1 decisions for several labels per item."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from grb.errors import DataError
from grb.metric.arrays import Array, as_array, as_labels

Average = Literal["micro", "macro"]


def accuracy(predictions: Any, y: Any) -> float:
    r"""Share of correct predictions.

    .. math:: \frac{1}{n} \sum_{v=1}^{n} [\hat y_v = y_v]

    Args:
        predictions: Class scores, [n, c] with c >= 2 (the largest wins, the first of equals), or predicted labels, [n].
            A row of scores with a NaN predicts nothing and counts as wrong. Multi-label: 0/1 decisions, [n, c].
        y: True labels, [n] integers. Multi-label: [n, c] of 0, 1 or NaN = missing; a row is correct if all its known
            labels are (subset accuracy).

    >>> accuracy([[.9, .1], [.2, .8], [.6, .4]], [0, 1, 1])
    0.6666666666666666
    """
    if as_array(y, "y").ndim == as_array(predictions, "predictions").ndim == 2:
        decided, truth, known = _decisions(predictions, y)
        return float(np.mean(((decided == truth) | ~known).all(axis=1)))
    predicted, valid = _predicted(predictions)
    return float(np.mean((predicted == as_labels(y, "y", len(predicted))) & valid))


def balanced_accuracy(pred: Any, y: Any) -> float:
    r"""Mean recall over the classes that occur in ``y``, so that frequent classes do not dominate.

    .. math:: \frac{1}{|C|} \sum_{k \in C} \frac{tp_k}{tp_k + fn_k}

    Equal to ``sklearn.metrics.balanced_accuracy_score``; for several labels per item the mean of that score over the
    labels, each of which is a two-class problem.

    Args:
        pred: Predicted labels, [n], or 0/1 decisions, [n, c].
        y: True labels, [n], or [n, c] of 0, 1 or NaN = missing.

    >>> balanced_accuracy([0, 0, 0, 1], [0, 0, 0, 0]), balanced_accuracy([0, 0, 0, 0], [0, 0, 0, 1])
    (0.75, 0.5)
    """
    if as_array(y, "y").ndim == 2:
        decided, truth, known = _decisions(pred, y)
        columns = zip(decided.T, truth.T, known.T, strict=True)
        scores = [balanced_accuracy(own[rows], true[rows]) for own, true, rows in columns if rows.any()]
        return float(np.mean(scores))
    counts = _counts(pred, y)
    occurs = counts.true > 0
    return float(np.mean(counts.hits[occurs] / counts.true[occurs]))


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


def f1(pred: Any, y: Any, average: Average = "micro", *, label: int | None = None) -> float:
    r"""F1 score of multi-class labels or of multi-label 0/1 matrices.

    .. math:: F_k = \frac{2\, tp_k}{2\, tp_k + fp_k + fn_k}

    Micro sums the counts over the classes first; macro is the mean of :math:`F_k` over the classes that occur in
    ``pred`` or ``y``, or over all columns of a matrix. A class without any true or predicted member has
    :math:`F_k = 0`. These are the values of scikit-learn with ``zero_division=0``.

    Args:
        pred: Predicted labels, [n], where -1 predicts nothing, or 0/1 decisions, [n, c].
        y: True labels, [n], or [n, c] of 0, 1 or NaN = missing, which is skipped.
        average: How classes are combined.
        label: The score of this class alone instead of an average.

    Differs from scikit-learn: [n, 1] is one label (its positive class counts), not a two-class problem.

    >>> f1([0, 1, 1], [0, 1, 2], average="macro"), f1([0, 1, 1], [0, 1, 2], label=0)
    (0.5555555555555555, 1.0)
    """
    counts = _counted("F1", pred, y, average, label)
    return _ratio(2 * counts.hits, counts.predicted + counts.true)


def precision(pred: Any, y: Any, average: Average = "micro", *, label: int | None = None) -> float:
    r"""Share of the members predicted for a class that belong to it, :math:`tp_k / (tp_k + fp_k)`.

    Arguments, averages and the values where nothing is predicted (0) are those of :func:`f1`.

    >>> precision([0, 1, 1], [0, 1, 2], label=1)
    0.5
    """
    counts = _counted("precision", pred, y, average, label)
    return _ratio(counts.hits, counts.predicted)


def recall(pred: Any, y: Any, average: Average = "micro", *, label: int | None = None) -> float:
    r"""Share of the members of a class that are found, :math:`tp_k / (tp_k + fn_k)`.

    Arguments, averages and the value of a class without members (0) are those of :func:`f1`.

    >>> recall([0, 1, 1], [0, 1, 2], label=2)
    0.0
    """
    counts = _counted("recall", pred, y, average, label)
    return _ratio(counts.hits, counts.true)


class _Counts(NamedTuple):
    """Per class or label, [k] each: which class, true positives, predicted members, true members."""

    classes: Array
    hits: Array
    predicted: Array
    true: Array


def _counted(what: str, pred: Any, y: Any, average: Average, label: int | None) -> _Counts:
    """The counts of a score: of one class, summed over all, or of every class that a mean is over."""
    if average not in ("micro", "macro"):
        raise DataError(f"no average {average!r} for {what}; use 'micro' or 'macro'")
    counts = _counts(pred, y)
    if label is not None:
        return _Counts(*(values[counts.classes == label] for values in counts))
    if average == "micro":
        return _Counts(*(values.sum(keepdims=True) for values in counts))
    # -1 is what a row without a prediction has; only true labels make it a class
    return _Counts(*(values[(counts.classes != -1) | (counts.true > 0)] for values in counts))


def _counts(pred: Any, y: Any) -> _Counts:
    if as_array(y, "y").ndim == 2:
        decided, truth, known = _decisions(pred, y)
        hits = (decided & truth & known).sum(axis=0)
        return _Counts(np.arange(len(hits)), hits, (decided & known).sum(axis=0), (truth & known).sum(axis=0))
    truth = as_labels(y, "y")
    predicted = as_labels(pred, "pred", len(truth))
    classes, ids = np.unique(np.concatenate([predicted, truth]), return_inverse=True)
    members = (ids[: len(truth)][predicted == truth], ids[: len(truth)], ids[len(truth) :])
    return _Counts(classes, *(np.bincount(each, minlength=len(classes)) for each in members))


def _ratio(part: Array, whole: Array) -> float:
    """Mean over classes of part / whole, where 0 / 0 counts as 0."""
    return float(np.mean(part / np.maximum(whole, 1))) if len(part) else 0.0


def _predicted(values: Any) -> tuple[Array, Array]:
    """Predicted labels [n] and whether each row predicts anything [n]."""
    scores = as_array(values, "predictions")
    if scores.ndim != 2:
        labels = as_labels(scores, "predictions")
        return labels, np.ones(len(labels), dtype=bool)
    if len(scores) == 0 or scores.shape[1] < 2:
        raise DataError(
            f"scores must be [n, c], n >= 1 and c >= 2, got {list(scores.shape)}; threshold a single column"
        )
    return scores.argmax(axis=1), np.logical_not(np.isnan(scores).any(axis=1))


def _decisions(pred: Any, y: Any) -> tuple[Array, Array, Array]:
    """Multi-label decisions, truth, and which labels are known, [n, c] booleans each."""
    decided, truth = as_array(pred, "pred"), as_array(y, "y")
    if decided.shape != truth.shape or truth.size == 0:
        raise DataError(
            f"pred is {list(decided.shape)} and y {list(truth.shape)}, but both must be one [n, c], not empty"
        )
    known = ~np.isnan(truth)
    if not (np.isin(decided, (0, 1)).all() and np.isin(truth[known], (0, 1)).all()):
        raise DataError("multi-label pred and y must hold only 0 and 1; threshold the scores first")
    if not known.any():
        raise DataError("all labels in y are missing (NaN), but at least one known label is needed")
    return decided == 1, truth == 1, known
