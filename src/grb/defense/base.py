"""Defenses: whatever ends in a trained model, from nothing but what a defender may see."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import nn

from grb.dataset.view import View
from grb.errors import DataError
from grb.model.base import GraphModel
from grb.model.build import Settings, build
from grb.model.known import Known
from grb.names import POOL, ModelName
from grb.trainer import Epoch, Fit, fit
from grb.trainer.graphs import fit_graphs
from grb.trainer.imbalance import class_weights, selection, weighted_loss
from grb.trainer.sampling import NeighbourSampling


class Defense(Protocol):
    """Anything that turns a defender's view into a model."""

    def fit(self, view: View, *, seed: int) -> nn.Module:
        """Train a model on what a defender may see; the same seed gives the same model."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """Plain training of a model by its settings; layer norm, RobustGCN, GNNGuard and GNN-SVD are models of their own.

    Args:
        settings: Which model and how to train it.
        device: Device of the training.
        on_epoch: Called after each epoch, for progress.
        weight_decay: Weight decay of Adam; none in GRB, 5e-4 in much of the literature.
    """

    settings: Settings
    device: str | torch.device = "cpu"
    on_epoch: Callable[[Epoch], None] | None = None
    weight_decay: float = 0.0

    def options(self) -> dict[str, Any]:
        """What a special training adds to the one loop."""
        return {}

    def fit(self, view: View, *, seed: int) -> nn.Module:
        """Train a model on what a defender may see; the same seed gives the same weights."""
        return self.fit_with_history(view, seed=seed)[0]

    def fit_with_history(self, view: View, *, seed: int) -> tuple[nn.Module, Fit]:
        """The model and how its training went; the same seed gives the same weights."""
        generator = torch.Generator().manual_seed(seed)
        model = build(self.settings, view.graph.num_features, view.num_classes, generator)
        self._check_task(model, view)
        before = getattr(model, "before_training", None)
        if before is not None:
            before(view, seed=seed)
        model = model.to(self.device)
        if torch.device(self.device).type != "cpu":
            generator = torch.Generator(self.device).manual_seed(seed)
        train = fit if view.graph.ptr is None else fit_graphs
        sampled = self._sampling(view)
        with _seeded(model, seed):
            result = train(
                model,
                view.to(self.device),
                optimizer=_adam(model, self.settings.lr, self.weight_decay),
                epochs=self.settings.epochs,
                patience=self.settings.patience,
                eval_every=self.settings.validate_every,
                generator=generator,
                on_epoch=self.on_epoch,
                **sampled,
                **self._objective(view),
                **self.options(),
            )
        if isinstance(model, GraphModel):
            model.trained_as = self.settings.model
        return model, result

    def _sampling(self, view: View) -> dict[str, Any]:
        """Mini-batches, if the settings ask for them."""
        if self.settings.sampled_neighbours is None:
            return {}
        if view.graph.ptr is not None:
            raise DataError("sampled_neighbours is for models of nodes, but the dataset has graphs to classify")
        return {"sampling": NeighbourSampling(self.settings.sampled_neighbours, self.settings.batch_nodes)}

    def _objective(self, view: View) -> dict[str, Any]:
        """Another loss and another choice of the best epoch, if the settings ask for them."""
        weights, metric = self.settings.class_weights, self.settings.metric
        if weights is None and metric is None:
            return {}
        if view.graph.ptr is not None:
            raise DataError("class_weights and metric are for models of nodes, but the dataset has graphs to classify")
        found: dict[str, Any] = {}
        if weights is not None:
            found["loss"] = weighted_loss(class_weights(weights, view.labels[view.train], view.num_classes))
        if metric is not None:
            found["metric"] = selection(metric)
        return found

    def _check_task(self, model: nn.Module, view: View) -> None:
        name, graphs = self.settings.model, view.graph.ptr is not None
        if isinstance(model, Known) and not view.inductive:
            raise DataError(
                f"'{name}' knows every original node in transductive training, so a result there would say nothing about "
                "injection; train it inductively"
            )
        if graphs != bool(getattr(model, "pools", False)):
            own, wanted = ("graphs", "nodes") if not graphs else ("nodes", "graphs")
            advice = (
                f"'{ModelName.parse(name).for_task('graph')}' classifies graphs" if graphs else f"leave '{POOL}' out"
            )
            raise DataError(f"model '{name}' classifies {own}, but the dataset has {wanted} to classify; {advice}")


@contextmanager
def _seeded(model: nn.Module, seed: int) -> Iterator[None]:
    """Modules of others draw their dropout from torch's global generator: seeded here, and as it was afterwards."""
    if isinstance(model, GraphModel):
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def _adam(model: nn.Module, lr: float, weight_decay: float) -> torch.optim.Optimizer:
    if not lr > 0:
        raise DataError(f"the learning rate is {lr}, but must be positive")
    if not 0 <= weight_decay < math.inf:
        raise DataError(f"weight_decay is {weight_decay}, but a finite number of at least 0 is needed")
    return torch.optim.Adam(model.parameters(), lr=lr, weight_decay=weight_decay, fused=True)
