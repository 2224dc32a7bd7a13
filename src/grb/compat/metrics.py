"""Metrics in the papers' spelling: logits, labels and a mask in, a number out."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from grb import metric
from grb.errors import DataError

Order = Literal["a", "d"]


def eval_acc(pred: Tensor, labels: Tensor, mask: Any = None) -> Tensor:
    """Accuracy of the most probable classes, as a tensor without dimensions.

    Args:
        pred: Logits, [n, classes].
        labels: Classes, [n].
        mask: Nodes that count, booleans [n] or ids; all if not given.
    """
    return torch.tensor(metric.accuracy(*_chosen(pred, labels, mask)), dtype=torch.float64)


def eval_rocauc(pred: Tensor, labels: Tensor, mask: Any = None) -> float:
    """Mean area under the ROC curve over labels that have both values; ties share their rank.

    Args:
        pred: Scores, [n, labels].
        labels: A 0/1 matrix, [n, labels].
        mask: Nodes that count; all if not given.
    """
    return metric.auroc(*_chosen(pred, labels, mask))


def eval_f1multilabel(pred: Tensor, labels: Tensor, mask: Any = None) -> float:
    """Micro-F1 of several labels per node, where a score above one half is a yes.

    Args:
        pred: Probabilities, [n, labels].
        labels: A 0/1 matrix, [n, labels].
        mask: Nodes that count; all if not given.
    """
    scores, truth = _chosen(pred, labels, mask)
    return metric.f1(scores > 0.5, truth)


def get_weights_polynomial(n: int, p: float = 2, order: Order = "a") -> list[float]:
    r"""Weights proportional to :math:`1 / i^p` that sum to one, ascending (``a``) or descending (``d``)."""
    weights = 1.0 / np.arange(1, _count(n) + 1) ** p
    weights = weights / weights.sum()
    return [float(each) for each in (weights[::-1] if _order(order) == "a" else weights)]


def get_weights_arithmetic(n: int, w_1: float, order: Order = "a") -> list[float]:
    """Weights in equal steps from ``w_1`` that sum to one, ascending (``a``) or descending (``d``)."""
    step = 2 / (n - 1) * (1 / n - w_1) if _count(n) > 1 else 0.0
    weights = [w_1 + i * step for i in range(n)] if n > 1 else [1.0]
    return weights if _order(order) == "a" else weights[::-1]


def _chosen(pred: Tensor, labels: Tensor, mask: Any) -> tuple[Tensor, Tensor]:
    pred, labels = pred.detach().cpu(), labels.detach().cpu()
    if mask is None:
        return pred, labels
    rows = torch.as_tensor(np.asarray(mask.cpu() if isinstance(mask, Tensor) else mask))
    return pred[rows], labels[rows]


def _count(n: int) -> int:
    if n < 1:
        raise DataError(f"n is {n}, but at least one weight is needed")
    return n


def _order(order: str) -> str:
    if order not in ("a", "d"):
        raise DataError(f"order is {order!r}, but 'a' (ascending) or 'd' (descending) is needed")
    return order
