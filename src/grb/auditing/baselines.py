"""What the numbers of an audit are compared with: the largest class, and a model without edges."""

from __future__ import annotations

from typing import Any

import torch

from grb.auditing.curve import value_of
from grb.dataset import Dataset
from grb.defense import build_defense
from grb.errors import GRBError
from grb.evaluator.baseline import majority
from grb.metric import Metric
from grb.model.base import predict

EPOCHS, PATIENCE = 200, 30


def majority_scores(dataset: Dataset, metrics: dict[str, Metric]) -> dict[str, float | None]:
    """Metrics of always answering the most frequent class of the training nodes."""
    top, _ = majority(dataset.labels[dataset.index_train])
    y = dataset.labels[dataset.index_test]
    logits = torch.zeros(len(y), dataset.num_classes)
    logits[:, top] = 1.0
    return {name: _value(metric, logits, y) for name, metric in metrics.items()}


def mlp_scores(
    dataset: Dataset, metrics: dict[str, Metric], *, seed: int, balanced: bool
) -> tuple[dict[str, float | None], str]:
    """Metrics of a small network that sees no edges, and why there are none if it cannot be trained."""
    changes: dict[str, Any] = {"epochs": EPOCHS, "patience": PATIENCE}
    if balanced:
        changes["class_weights"] = "balanced"
    try:
        defense = build_defense("mlp", dataset.name, **changes)
        model = defense.fit(dataset.defender_view(), seed=seed)
        logits = predict(model, dataset.graph)[dataset.index_test]
    except GRBError as error:
        return dict.fromkeys(metrics), str(error)
    y = dataset.labels[dataset.index_test]
    return {name: _value(metric, logits, y) for name, metric in metrics.items()}, ""


def _value(metric: Metric, logits: torch.Tensor, y: torch.Tensor) -> float | None:
    try:
        return value_of(metric, logits, y)
    except GRBError:
        return None
