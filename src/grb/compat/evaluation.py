"""Inference and evaluation on arrays, and the evaluator of attacks, as in the papers' era."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from grb.compat.adjacency import Norm, adj_preprocess
from grb.compat.arguments import say_once
from grb.compat.metrics import eval_acc, get_weights_arithmetic, get_weights_polynomial
from grb.compat.weights import load_weights
from grb.dataset import Dataset
from grb.errors import DataError, UnknownName
from grb.evaluator.evaluator import AttackEvaluator as OurEvaluator
from grb.graph import Graph
from grb.model.base import GraphModel, evaluating, predict


def feat_preprocess(features: Any, feat_norm: str | None = None, device: str = "cpu") -> Tensor:
    """Features as a float tensor; ``arctan`` and ``tanh`` act on every entry, without a mean or deviation.

    Args:
        features: [n, d].
        feat_norm: ``arctan``, ``tanh`` or None. The datasets' own normalisation is another one: ``Dataset(feat_norm=...)``.
        device: Where the result is.
    """
    x = torch.as_tensor(features).detach().float().to(device)
    if feat_norm is None:
        return x
    known: dict[str, Callable[[Tensor], Tensor]] = {
        "arctan": lambda x: 2 / torch.pi * torch.arctan(x),
        "tanh": torch.tanh,
    }
    if feat_norm not in known:
        raise UnknownName("feature normalisation", feat_norm, known, advice=f"Allowed: {', '.join(known)}.")
    return known[feat_norm](x)


def label_preprocess(labels: Any, device: str = "cpu") -> Tensor:
    """Labels as a tensor of whole numbers."""
    return torch.as_tensor(labels).long().to(device)


def inference(
    model: nn.Module,
    features: Any,
    adj: Any,
    feat_norm: str | None = None,
    adj_norm_func: Norm | None = None,
    device: str = "cpu",
) -> Tensor:
    """Logits of every node in evaluation mode, without gradients, [n, classes].

    Args:
        model: One of ours, or a module with ``forward(x, adj)``.
        features: [n, d].
        adj: A scipy matrix, [n, n].
        feat_norm: As in :func:`feat_preprocess`.
        adj_norm_func: The model's own if None; another one is used in its place.
        device: Where to compute.
    """
    x = feat_preprocess(features, feat_norm, device)
    model.to(device)
    own = getattr(model, "adj_norm_func", None)
    prepares = isinstance(model, GraphModel) or hasattr(model, "prepare") or hasattr(model, "adj_norm_func")
    if prepares and (adj_norm_func is None or adj_norm_func is own):
        graph, _ = Graph.build(adj, x.cpu(), mode="canonicalise")
        return predict(model, graph.to(device))
    with evaluating(model):
        logits: Tensor = model(x, adj_preprocess(adj, adj_norm_func or own, device=device))
    return logits


def evaluate(
    model: nn.Module,
    features: Any,
    adj: Any,
    labels: Any,
    feat_norm: str | None = None,
    adj_norm_func: Norm | None = None,
    eval_metric: Callable[..., Any] = eval_acc,
    mask: Any = None,
    device: str = "cpu",
) -> float:
    """Score of a model on a graph given as arrays; nodes behind the last label are injected ones and do not count.

    Args:
        model: As in :func:`inference`.
        features: [n + m, d].
        adj: [n + m, n + m].
        labels: [n].
        feat_norm: As in :func:`feat_preprocess`.
        adj_norm_func: As in :func:`inference`.
        eval_metric: Function of logits, labels and mask.
        mask: Nodes that count, booleans [n] or ids.
        device: Where to compute.
    """
    y = label_preprocess(labels)
    logits = inference(model, features, adj, feat_norm, adj_norm_func, device).cpu()[: len(y)]
    return float(eval_metric(logits, y, mask))


class AttackEvaluator(OurEvaluator):
    """:class:`grb.evaluator.AttackEvaluator` with the results' old names; made by ``build_model`` or ``device``."""

    def __init__(
        self, dataset: Dataset, build_model: Callable[..., Any] | None = None, device: str = "cpu", **ours: Any
    ) -> None:
        super().__init__(dataset, **ours)
        object.__setattr__(self, "build_model", build_model)
        object.__setattr__(self, "device", device)

    def eval_attack(
        self, model_dict: Mapping[str, Any], adj_attack: Any, features_attack: Any, verbose: bool = False
    ) -> dict[str, float]:
        """Accuracy per model with ``average``, ``3-max`` and ``weighted``.

        Args:
            model_dict: Trained models or their files by name: safetensors of ours, or state dicts of what ``build_model``
                makes.
            adj_attack: The attacked adjacency, [n + m, n + m].
            features_attack: Features of the m injected nodes, or of all n + m nodes.
            verbose: Without effect.
        """
        if verbose:
            say_once("AttackEvaluator.eval_attack: verbose has no effect, nothing is printed")
        models = {name: self._loaded(name, given) for name, given in model_dict.items()}
        found = super().eval_attack(models, adj_attack, features_attack)
        found["3-max"] = found.pop("three_max")
        return found

    def eval(self, model: nn.Module, adj: Any, features: Any, adj_norm_func: Norm | None = None) -> float:
        """Accuracy of one model on the test nodes of the dataset."""
        y, mask = self.dataset.labels, self.dataset.test_mask
        return evaluate(model, features, adj, y, adj_norm_func=adj_norm_func, mask=mask)

    @staticmethod
    def eval_metric(test_score_sorted: Any, metric_type: str = "polynomial", order: str = "a") -> float:
        """Weighted mean of ascending scores: ``polynomial``, ``arithmetic``, or anything else for equal weights."""
        values = [float(each) for each in test_score_sorted]
        weights: list[float] = [1 / len(values)] * len(values)
        if metric_type == "polynomial":
            weights = get_weights_polynomial(len(values), p=2, order=order)  # type: ignore[arg-type]
        elif metric_type == "arithmetic":
            weights = get_weights_arithmetic(len(values), w_1=0.005, order=order)  # type: ignore[arg-type]
        return float(sum(value * weight for value, weight in zip(values, weights, strict=True)))

    def _loaded(self, name: str, given: Any) -> Any:
        build: Callable[..., Any] | None = getattr(self, "build_model", None)
        if build is None or not isinstance(given, str | os.PathLike) or str(given).endswith(".safetensors"):
            return given
        made = build(model_name=name, num_features=self.dataset.num_features, num_classes=self.dataset.num_classes)
        return load_weights(made[0] if isinstance(made, tuple) else made, given)


def get_num_params(model: nn.Module) -> int:
    """Number of trainable parameters."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def fix_seed(seed: int = 0) -> None:
    """Seed Python's, numpy's and torch's global generators.

    They draw the weights of models that get no generator. Attacks and trainings have seeds of their own: ``seed=``.
    """
    import random

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)


def get_index_induc(index_a: Any, index_b: Any) -> tuple[list[int], list[int]]:
    """Places of two disjoint sets of ids among all of them in ascending order.

    >>> get_index_induc([1, 7], [3, 9])
    ([0, 2], [1, 3])
    """
    first, second = (np.asarray(each) for each in (index_a, index_b))
    both = np.sort(np.concatenate([first, second]))
    if len(np.unique(both)) != len(both):
        raise DataError("index_a and index_b have an id in common, but must be disjoint")
    return np.searchsorted(both, np.sort(first)).tolist(), np.searchsorted(both, np.sort(second)).tolist()


def check_symmetry(adj: Any) -> bool:
    """Whether a sparse matrix equals its transpose, in the time of its entries."""
    rows = adj.tocsr()
    return bool((rows != rows.T).nnz == 0)


def check_feat_range(features: Any, feat_lim_min: float, feat_lim_max: float) -> bool:
    """Whether all features are finite and inside the range."""
    x = torch.as_tensor(features)
    return bool(torch.isfinite(x).all() and (x >= feat_lim_min).all() and (x <= feat_lim_max).all())
