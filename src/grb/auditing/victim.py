"""The model under audit: whatever the user has, as a model that attacks and the evaluator take."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from grb.auditing.black_box import BlackBox, Program
from grb.dataset import Dataset
from grb.errors import DataError, GRBError
from grb.evaluator.scoring import predict_checked
from grb.graph import Graph
from grb.model.adapters import Wrapped, wrap
from grb.model.base import EvaluationView, GraphModel, check_task, predict
from grb.model.wrapped import Wrapper


class _Read(nn.Module):
    """A model whose outputs are read in another way; all else is as the model says."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    @property
    def is_black_box(self) -> bool:
        """As the model."""
        return bool(getattr(self.model, "is_black_box", False))

    def prepare(self, adj: Any) -> Any:
        """As the model."""
        return self.model.prepare(adj)  # type: ignore[operator]

    def observe(self, view: EvaluationView) -> None:
        """As the model, if it takes note of what it may know."""
        if hasattr(self.model, "observe"):
            self.model.observe(view)  # type: ignore[operator]

    def forget(self) -> None:
        """As the model."""
        if hasattr(self.model, "forget"):
            self.model.forget()  # type: ignore[operator]


class _LogOf(_Read):
    """Logarithms of a model's probabilities, which are logits: losses that take logits follow them much better."""

    def forward(self, x: Any, op: Any) -> Tensor:
        """Log-probabilities, [n, classes]."""
        return self.model(x, op).clamp(min=1e-12).log()


class _OneScore(_Read):
    """Two columns from a model with one score per node, as one trained with a binary loss has: logit of the second class.

    Args:
        model: Gives [n, 1] or [n].
        probabilities: Whether its scores are probabilities instead of logits.
    """

    def __init__(self, model: nn.Module, *, probabilities: bool) -> None:
        super().__init__(model)
        self.probabilities = probabilities

    def forward(self, x: Any, op: Any) -> Tensor:
        """Zero and the logit of the second class, [n, 2]."""
        scores = self.model(x, op).flatten()
        logits = torch.logit(scores, eps=1e-6) if self.probabilities else scores
        return torch.stack([torch.zeros_like(logits), logits], dim=1)


@dataclass(frozen=True, eq=False)
class Victim:
    """A model under audit.

    Args:
        model: With ``prepare`` and ``forward``.
        name: Name in the report.
        black_box: Whether it only answers, without gradients.
        fingerprint: sha256 of its weights and of what it says of the clean graph.
        clean: Logits of every node on the clean graph, [n, classes].
        notes: What was decided about it.
    """

    model: nn.Module
    name: str
    black_box: bool
    fingerprint: str
    clean: Tensor
    notes: tuple[str, ...]


def as_victim(model: Any, dataset: Dataset, name: str | None = None) -> Victim:
    """The model of an audit from a model of grb, a module of another library, a function, or a program.

    Args:
        model: A model of grb or wrapped by :func:`grb.wrap`; any ``nn.Module``, which is wrapped; a function of (x,
            edge_index); or a :class:`~grb.auditing.black_box.Program`.
        dataset: What it is audited on.
        name: Name in the report; the model's own if not given.
    """
    notes: list[str] = []
    chosen = _as_module(model, notes)
    check_task(chosen, dataset)
    chosen = _with_two_columns(chosen, dataset, notes)
    clean = _answers(chosen, dataset, _title(model))
    # attacks know what to do with the votes of our own wrappers
    plain = not isinstance(chosen, Wrapper) and not getattr(chosen, "is_black_box", False)
    if plain and _are_probabilities(clean):
        notes.append("the model gives probabilities: their logarithms are taken as logits, which attacks follow better")
        chosen = _LogOf(chosen)
        clean = _answers(chosen, dataset, _title(model))
    title = name or getattr(model, "title", None) or _title(model)
    black_box = bool(getattr(chosen, "is_black_box", False))
    return Victim(chosen, str(title), black_box, _fingerprint(chosen, clean), clean, tuple(notes))


def answers(model: nn.Module, graph: Graph, dataset: Dataset) -> Tensor:
    """Logits of every node of a graph of a dataset, clean or changed; the model is told what it knows, as in every score."""
    view = None
    if hasattr(model, "observe") and dataset.task == "node":
        view = EvaluationView.of(torch.cat([dataset.index_train, dataset.index_val]), graph.n)
    return predict(model, graph, view).detach().cpu()


def _with_two_columns(model: nn.Module, dataset: Dataset, notes: list[str]) -> nn.Module:
    """The model, or where it gives one score per node for two classes, that with a column for each class."""
    if dataset.num_classes != 2 or isinstance(model, GraphModel):
        return model
    try:
        rows = predict(model, dataset.graph).detach()
    except Exception:  # it is asked once more, and then its error is told
        return model
    if not rows.is_floating_point() or rows.numel() != dataset.num_nodes or not len(rows):
        return model
    inside = bool(((rows >= 0) & (rows <= 1)).all())
    kind = "probability" if inside else "logit"
    notes.append(
        f"the model gives one score per node: it was read as the {kind} of class '{dataset.names.of_class(1)}'"
    )
    return _OneScore(model, probabilities=inside)


def _answers(model: nn.Module, dataset: Dataset, title: str) -> Tensor:
    """Logits of every node on the clean graph; whatever the model's own code raises is a sentence."""
    try:
        clean = predict_checked(model, dataset.graph, dataset).logits
    except GRBError:
        raise
    except Exception as error:  # code of others may raise anything
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise DataError(
            f"the model '{title}' fails on '{dataset.name}' ({reason}); it must answer for {dataset.num_nodes} nodes with "
            f"{dataset.num_features} features and their edges"
        ) from error
    missing = int(torch.isnan(clean[dataset.index_test]).any(1).sum())
    if missing == len(dataset.index_test):
        raise DataError(
            f"the model '{title}' gives NaN for all {missing} targets of '{dataset.name}'; look at its weights, and at "
            "features it was not made for"
        )
    return clean


def _as_module(model: Any, notes: list[str]) -> nn.Module:
    if isinstance(model, nn.Module):
        if hasattr(model, "prepare"):
            return model
        wrapped = wrap(model)
        notes.append(f"{type(model).__name__} was wrapped as a model of style '{wrapped.style}'")
        if not wrapped.has_edge_gradients:
            notes.append("it takes no edge weights: attacks on edges search by its answers instead of gradients")
        return wrapped.eval()
    if isinstance(model, str | os.PathLike):
        raise DataError(
            f"model is the text '{str(model)[:60]}', but a trained model is needed; grb.load_model reads a file, grb.train "
            "trains one"
        )
    if isinstance(model, Mapping):
        raise DataError(
            f"model is a {type(model).__name__}, as state_dict() gives it: weights without their module; make the module, give "
            "it the weights by module.load_state_dict(...), and audit that"
        )
    if isinstance(model, type):
        raise DataError(
            f"{model.__name__} is a class, but a trained model is needed; make one with {model.__name__}(...)"
        )
    if callable(model):
        notes.append("the model only answers: it was attacked by queries, and met the corruptions")
        return BlackBox(model)
    raise DataError(
        f"model is a {type(model).__name__}, but a trained module, or a function of (x, edge_index), is needed"
    )


def _title(model: Any) -> str:
    if isinstance(model, Program):
        return model.command[0]
    inner = model.module if isinstance(model, Wrapped) else model
    return str(getattr(inner, "__name__", type(inner).__name__))


def _are_probabilities(rows: Tensor) -> bool:
    if not len(rows) or not torch.isfinite(rows).all() or bool((rows < 0).any()):
        return False
    return bool(torch.allclose(rows.sum(1), torch.ones(len(rows)), atol=1e-4))


def _fingerprint(model: nn.Module, clean: Tensor) -> str:
    digest = hashlib.sha256(f"{type(model).__module__}:{type(model).__qualname__}".encode())
    for name, value in model.state_dict().items():
        digest.update(name.encode() + value.detach().cpu().contiguous().to(torch.float64).numpy().tobytes())
    digest.update(clean.to(torch.float32).contiguous().numpy().tobytes())
    return digest.hexdigest()
