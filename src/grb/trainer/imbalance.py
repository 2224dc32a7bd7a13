"""Training where classes differ in size: weights in the loss, and the metric that chooses the best epoch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from grb.errors import DataError

BALANCED = "balanced"
ClassWeights = str | Sequence[float] | Mapping[Any, float]


def class_weights(given: ClassWeights, labels: Tensor, classes: int) -> Tensor:
    r"""Weight of every class in the loss, [classes].

    ``balanced`` is :math:`n / (c\, n_k)` as in scikit-learn, of the classes that occur; otherwise one number per class, as a
    sequence, or as a mapping in which classes that are not named have weight one.

    Args:
        given: ``balanced``, or the weights.
        labels: Classes of the training nodes, [n]; -1 is hidden.
        classes: Number of classes.

    >>> class_weights("balanced", torch.tensor([0, 0, 0, 1]), 2).tolist()
    [0.6666666865348816, 2.0]
    """
    if labels.dim() != 1:
        raise DataError("class_weights are for one label per node, but these nodes have several; leave them out")
    if isinstance(given, str):
        if given != BALANCED:
            raise DataError(f"class_weights is '{given}', but 'balanced' or one number per class is needed")
        counts = torch.bincount(labels[labels >= 0], minlength=classes).double()
        present = counts > 0
        weights = torch.where(present, counts.sum() / (present.sum() * counts.clamp(min=1)), 0.0)
        return weights.to(torch.get_default_dtype())
    if isinstance(given, Mapping):
        whole = [1.0] * classes
        for key, value in given.items():
            if not str(key).isdigit() or int(key) >= classes:
                raise DataError(f"class_weights names class '{key}', but there are the classes 0 to {classes - 1}")
            whole[int(key)] = value
        given = whole
    numbers = [float(value) for value in given]
    if len(numbers) != classes:
        raise DataError(f"class_weights has {len(numbers)} numbers, but there are {classes} classes")
    if not all(math.isfinite(value) and value >= 0 for value in numbers) or not any(numbers):
        raise DataError(f"class_weights is {numbers}, but finite numbers of at least 0, not all of them 0, are needed")
    return torch.tensor(numbers)


def weighted_loss(weights: Tensor) -> Callable[[Tensor, Tensor], Tensor]:
    """Cross-entropy in which classes weigh differently."""
    return lambda logits, y: functional.cross_entropy(logits, y, weight=weights.to(logits.device))


def selection(metric: Any) -> Callable[[Tensor, Tensor], float]:
    """The score of a validation epoch by the name of a metric, or by a function of (logits, decisions, labels)."""
    from grb.metric import get

    chosen = get(metric)
    sign = 1.0 if chosen.higher_is_better else -1.0

    def value(logits: Tensor, y: Tensor) -> float:
        decisions = logits.argmax(1) if y.dim() == 1 else logits > 0
        try:
            return sign * float(chosen(logits, decisions, y))
        except DataError as error:
            raise DataError(
                f"metric '{chosen.name}' cannot choose an epoch on these validation nodes: {error}; choose another metric"
            ) from None

    return value
