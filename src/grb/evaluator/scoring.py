"""One way to score: what a model says of a graph, checked, and its metrics on the targets of every difficulty."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from grb import metric
from grb.attack.base import AttackResult
from grb.dataset import DIFFICULTIES, Dataset
from grb.errors import DataError, GRBError
from grb.graph import Graph, GraphEdit
from grb.metric import Metric
from grb.metric.names import CustomMetric
from grb.model.base import EvaluationView, check_task, predict
from grb.model.ours import is_ours

Metrics = str | Iterable[str | CustomMetric | Metric]
Edit = GraphEdit | AttackResult | None


@dataclass(frozen=True)
class Prediction:
    """What a model says of a graph, checked once.

    Args:
        logits: [items, classes], on the CPU; items are nodes, or graphs where those are classified.
        labels: Predicted classes, [items], -1 where a logit is NaN; for several labels per item decisions,
            [items, classes] booleans, all False where a logit is NaN.
        invalid: Which rows have a NaN, [items]; such an item counts as wrong.
    """

    logits: Tensor
    labels: Tensor
    invalid: Tensor


@dataclass(frozen=True)
class Evaluation:
    """Metrics of a model on the targets of one or more difficulties.

    Args:
        primary: The metric that ranks: ``accuracy``, or ``micro-f1`` for several labels per item.
        values: By metric and difficulty; finite.
        correct: By difficulty, which targets are predicted correctly, [targets]; several labels: all of them.
        changed: By difficulty, the share of targets whose prediction differs from the one before; 0.0 without one.
        invalid: By difficulty, the number of targets without a valid prediction (NaN).
    """

    primary: str
    values: Mapping[str, Mapping[str, float]]
    correct: Mapping[str, Tensor]
    changed: Mapping[str, float]
    invalid: Mapping[str, int]


def score(
    model: nn.Module | None,
    dataset: Dataset,
    edit: Edit = None,
    *,
    metrics: Metrics = (),
    difficulties: Sequence[str] | None = None,
    before: Prediction | None = None,
    after: Prediction | None = None,
    graph: Graph | None = None,
) -> Evaluation:
    """Metrics of a model on a dataset, under an edit or on another graph of the same nodes.

    An item with a NaN among its logits counts as wrong in every metric. A metric that is undefined for the targets,
    such as the AUROC of a single class, is refused; no value is ever NaN or infinite.

    Args:
        model: A trained model; None if ``after`` is given.
        dataset: The dataset with true labels.
        edit: Applied to the dataset's graph first.
        metrics: Names (:mod:`grb.metric.names`) or functions of (logits, decisions, labels) on the targets, or names
            joined by commas. The primary metric is always there, and first.
        difficulties: Test sets to score; all that have targets if None.
        before: Prediction to compare with, for instance on the clean graph.
        after: Prediction to score instead of asking the model.
        graph: A changed graph instead of an edit.
    """
    primary = primary_metric(dataset)
    chosen = {primary: metric.get(primary)} | metric.get_all(dataset.names.in_metrics(metrics))
    _check_classes(chosen.values(), dataset)
    targets = {name: dataset.test_ids(name) for name in _difficulties(dataset, difficulties)}
    if after is None:
        after = predict_checked(checked_model(model), changed_graph(dataset, edit, graph), dataset)
    y = _known(dataset.labels)
    values = {
        name: {
            difficulty: _value(each, after, y, ids, f"the {difficulty} targets of '{dataset.name}'")
            for difficulty, ids in targets.items()
        }
        for name, each in chosen.items()
    }
    return Evaluation(
        primary,
        values,
        {name: _correct(after, y, ids) for name, ids in targets.items()},
        {name: _changed(before, after, ids) for name, ids in targets.items()},
        {name: int(after.invalid[ids].sum()) for name, ids in targets.items()},
    )


def primary_metric(dataset: Dataset) -> str:
    """The metric that ranks models on a dataset: ``accuracy``, or ``micro-f1`` for several labels per item."""
    return "accuracy" if dataset.labels.dim() == 1 else "micro-f1"


def check_metrics(metrics: Metrics, dataset: Dataset) -> None:
    """Refuse unknown metrics, and those of a class that the dataset does not have."""
    _check_classes(metric.get_all(dataset.names.in_metrics(metrics)).values(), dataset)


def predict_checked(model: nn.Module, graph: Graph, dataset: Dataset, view: EvaluationView | None = None) -> Prediction:
    """The model's logits and decisions for every node, or graph if it pools, computed on the model's device.

    A model that breaks the API contract is refused: one row of logits per item and one column per class of the dataset
    are needed, and third-party code must not change its input in place. Without a view, a model that asks for one is told
    that it knows the training and validation nodes.
    """
    check_task(model, dataset)
    if view is None and hasattr(model, "observe") and dataset.task == "node":
        view = EvaluationView.of(torch.cat([dataset.index_train, dataset.index_val]), graph.n)
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    lent = graph.to(device)
    third_party = is_third_party(model)
    kept = [tensor.clone() for tensor in _inputs(lent)] if third_party else []
    logits = _check_shape(model, predict(model, lent, view), graph, dataset)
    if any(not torch.equal(old, new) for old, new in zip(kept, _inputs(lent), strict=False)):
        for old, new in zip(kept, _inputs(lent), strict=True):
            new.copy_(old)  # the graph may be the dataset's own
        raise DataError("the model changes its input in place; it must copy what it wants to change")
    logits = logits.detach().cpu()
    if third_party:
        logits = logits.clone()  # a model may give the same buffer again
    return prediction_of(logits, dataset)


def prediction_of(logits: Tensor, dataset: Dataset) -> Prediction:
    """The decisions that logits on the CPU, [items, classes], mean for a dataset."""
    invalid = torch.isnan(logits).any(1)
    if dataset.labels.dim() == 1:
        return Prediction(logits, torch.where(invalid, -1, logits.argmax(1)), invalid)
    return Prediction(logits, (logits > 0) & ~invalid[:, None], invalid)


def is_third_party(model: nn.Module) -> bool:
    """Whether any module of a model is neither grb's nor torch's, so that it is not trusted to keep the API contract."""
    return not is_ours(model)


def _check_shape(model: nn.Module, logits: Any, graph: Graph, dataset: Dataset) -> Tensor:
    name = getattr(model, "name", type(getattr(model, "module", model)).__name__)
    rows, what = (graph.num_graphs, "graphs") if getattr(model, "pools", False) else (graph.n, "nodes")
    if not isinstance(logits, Tensor):
        raise DataError(
            f"the model '{name}' gives a {type(logits).__name__}, but one row of logits for each of {rows} {what} is needed"
        )
    shape = list(logits.shape)
    if logits.dim() == 2 and shape[1] != dataset.num_classes:
        raise DataError(
            f"the model '{name}' gives logits of shape {shape}, but '{dataset.name}' has {dataset.num_classes} "
            "classes, each of which needs a column"
        )
    if logits.dim() != 2 or len(logits) != rows:
        raise DataError(
            f"the model '{name}' gives logits of shape {shape}, but one row for each of {rows} {what} is needed"
        )
    return logits


def _inputs(graph: Graph) -> list[Tensor]:
    """The tensors that a model could change: the features that are stored."""
    values = graph.x if isinstance(graph.x, Tensor) else graph.x.values
    return [] if values is None else [values]


def checked_model(model: nn.Module | None) -> nn.Module:
    """The model; anything that is no module is refused."""
    if not isinstance(model, nn.Module):
        raise DataError(
            f"model is a {type(model).__name__}, but a trained model is needed; grb.load_model reads a file"
        )
    return model


def changed_graph(dataset: Dataset, edit: Edit, graph: Graph | None = None) -> Graph:
    """The dataset's graph under an edit or an attack's result, or the graph that is given instead."""
    if graph is not None:
        if edit is not None:
            raise DataError("edit and graph were both given; give the edit, or the graph that it leads to")
        return graph
    own = edit_of(edit)
    return dataset.graph if own is None else dataset.graph.apply(own)


def edit_of(edit: Edit) -> GraphEdit | None:
    """The edit itself of an attack's result; anything that is neither is refused."""
    if isinstance(edit, AttackResult):
        return edit.edit
    if edit is not None and not isinstance(edit, GraphEdit):
        raise DataError(
            f"edit is a {type(edit).__name__}, but a GraphEdit or an attack's result is needed; "
            "grb.GraphEdit.load reads a file"
        )
    return edit


def _difficulties(dataset: Dataset, wanted: Sequence[str] | None) -> list[str]:
    """Difficulties to score; at least one, each with targets."""
    found: list[str] = [name for name in DIFFICULTIES if len(dataset.split.test.get(name, ()))]
    if wanted is not None:
        found = [wanted] if isinstance(wanted, str) else list(wanted)
    what = "graphs" if dataset.task == "graph" else "nodes"
    if not found or not all(len(dataset.test_ids(name)) for name in found):
        named = f" of difficulty {', '.join(found)}" if found else ""
        raise DataError(f"dataset '{dataset.name}' has no test {what}{named} to evaluate on")
    return found


def _check_classes(chosen: Iterable[Metric], dataset: Dataset) -> None:
    for each in chosen:
        if each.label is not None and each.label >= dataset.num_classes:
            raise DataError(
                f"metric '{each.name}' names class {each.label}, but '{dataset.name}' has the classes "
                f"0 to {dataset.num_classes - 1}"
            )


def _known(labels: Tensor) -> Tensor:
    """Labels in which a missing one of several is NaN, however it was marked."""
    return labels if labels.dim() == 1 else torch.where(labels < 0, torch.nan, labels.to(torch.float32))


def _value(each: Metric, found: Prediction, y: Tensor, ids: Tensor, where: str) -> float:
    try:
        # a copy for every metric: a custom one may change what it gets
        value = float(each(found.logits[ids], found.labels[ids], y[ids]))
    except GRBError as error:
        raise DataError(f"metric '{each.name}' is undefined for {where}: {error}") from None
    except Exception as error:
        if not each.is_custom:
            raise
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise DataError(f"the custom metric '{each.name}' fails for {where} ({reason})") from error
    if not math.isfinite(value):
        raise DataError(f"metric '{each.name}' is {value} for {where}, but a finite number is needed")
    return value


def _correct(found: Prediction, y: Tensor, ids: Tensor) -> Tensor:
    truth, labels = y[ids], found.labels[ids]
    right = labels == truth if truth.dim() == 1 else ((labels == (truth == 1)) | torch.isnan(truth)).all(1)
    return right & ~found.invalid[ids]


def _changed(before: Prediction | None, after: Prediction, ids: Tensor) -> float:
    if before is None:
        return 0.0
    differs = before.labels[ids] != after.labels[ids]
    if differs.dim() == 2:
        differs = differs.any(1) | (before.invalid[ids] != after.invalid[ids])
    return float(differs.double().mean())
