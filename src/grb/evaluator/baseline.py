"""What a model must beat to say anything: the class that most targets have."""

from __future__ import annotations

import torch
from torch import Tensor

from grb.dataset import Dataset
from grb.evaluator.score_checks import Flag
from grb.evaluator.scoring import Prediction

# a mean recall that is not above guessing, and an accuracy that is not above the largest class, up to this
MARGIN = 0.02
# largest class over the mean class; below this the classes are even, and a constant model scores badly enough
UNEVEN = 1.25


def majority(labels: Tensor) -> tuple[int, float]:
    """The most frequent class of some targets and its share; of equally frequent ones the first.

    >>> majority(torch.tensor([1, 0, 1, 1]))
    (1, 0.75)
    """
    counts = torch.bincount(labels[labels >= 0])
    if not int(counts.sum()):
        return 0, 0.0
    return int(counts.argmax()), float(counts.max() / counts.sum())


def check_majority(found: Prediction, dataset: Dataset, ids: Tensor, where: str = "") -> list[Flag]:
    """``majority-class`` if a model is no better than one that always gives the most frequent class.

    Its accuracy is then that class' share, whatever an attack does, so that it looks perfectly robust.

    Args:
        found: What the model says.
        dataset: With one label per item.
        ids: The targets.
        where: Which targets these are, for the sentence.
    """
    if dataset.labels.dim() != 1 or not len(ids):
        return []
    y, said = dataset.labels[ids], found.labels[ids]
    top, share = majority(y)
    present = torch.bincount(y, minlength=dataset.num_classes)
    right = torch.bincount(y[said == y], minlength=dataset.num_classes)
    seen = present > 0
    if (
        int(seen.sum()) < 2
    ):  # targets of one class: what it says of all other nodes tells whether it tells classes apart
        return check_constant(found, dataset)
    recall = float((right[seen] / present[seen]).mean())
    accuracy = float((said == y).double().mean())
    even = 1 / int(seen.sum())
    if share < UNEVEN * even or recall > even + MARGIN or accuracy < share - MARGIN:
        return []
    named = dataset.names.of_class(top)
    rare = int(torch.where(seen, present, present.max() + 1).argmin())
    numbers = {"accuracy": accuracy, "majority": share, "balanced_accuracy": recall}
    return [
        Flag(
            "majority-class",
            f"{100 * accuracy:.2f} % of the {where + ' ' if where else ''}targets are right, but always answering class "
            f"'{named}' gives {100 * share:.2f} %: the model tells nothing apart, so that no attack can lower this; train with "
            f"class_weights='balanced' and look at balanced-accuracy or recall:{rare}",
            numbers,
        )
    ]


def check_constant(found: Prediction, dataset: Dataset) -> list[Flag]:
    """``constant`` if a model gives one class to all nodes of a graph that has several.

    If its targets are of that class, it is right about all of them, whatever an attack does.

    Args:
        found: What the model says of all nodes.
        dataset: With one label per item.
    """
    known = dataset.labels[dataset.labels >= 0] if dataset.labels.dim() == 1 else dataset.labels[:0]
    said = found.labels.unique()
    if len(said) != 1 or len(known.unique()) < 2:
        return []
    named = dataset.names.of_class(int(said)) if int(said) >= 0 else "none"
    return [
        Flag(
            "constant",
            f"the model answers class '{named}' for all {len(found.labels)} nodes: it tells nothing apart, so that no attack "
            "can change it; train it longer, or with class_weights='balanced'",
            {"nodes": float(len(found.labels))},
        )
    ]
