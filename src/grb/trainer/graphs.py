"""Training of models of whole graphs: mini-batches of training graphs, drawn anew in every epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from grb import metric
from grb.catalogue import preset
from grb.dataset.view import View
from grb.errors import DataError
from grb.model.base import evaluating, prepare
from grb.trainer.batches import Batch, Collection
from grb.trainer.loop import Epoch, Fit, run_epochs, train_pass

# graphs that are evaluated at a time
EVALUATED = 512


def fit_graphs(
    model: nn.Module,
    view: View,
    *,
    optimizer: torch.optim.Optimizer,
    epochs: int,
    generator: torch.Generator,
    patience: int | None = None,
    batch: int | None = None,
    eval_every: int = 1,
    scheduler: Any = None,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> Fit:
    """Train a model that pools on the graphs of a view and leave it with the weights of its best validation epoch.

    Args:
        model: With ``prepare`` and ``forward(x, op, ptr)``; left in evaluation mode.
        view: From ``Dataset.defender_view()`` of a dataset whose task is to classify graphs.
        optimizer: Over the model's parameters.
        epochs: Maximum number of passes over the training graphs.
        generator: Draws batches and dropout masks.
        patience: Stop after this number of epochs without a better validation accuracy; None never stops early.
        batch: Graphs of one step; 64 if not given.
        eval_every: Number of epochs between two validations.
        scheduler: A torch learning-rate schedule; ``ReduceLROnPlateau`` is stepped with the validation accuracy.
        on_epoch: Called with every :class:`~grb.trainer.Epoch`, for progress.
    """
    size = preset("graphs")["batch"] if batch is None else batch
    if not (epochs >= 1 and size >= 1 and eval_every >= 1 and (patience is None or patience >= 1)):
        raise DataError(
            f"epochs={epochs}, batch={size}, eval_every={eval_every}, patience={patience} must be at least 1"
        )
    if not getattr(model, "pools", False):
        raise DataError(
            f"a {type(model).__name__} classifies nodes, but the view has graphs to classify; use '...-pool'"
        )
    training, _ = view.training_graph()
    measure = getattr(model, "measure", None)
    if measure is not None:
        measure(training.x)
    train = Collection.of(training, prepare(model, training.adj))
    held_out: list[Batch] = []
    if len(view.val):
        everything = Collection.of(view.graph, prepare(model, view.graph.adj))
        held_out = list(everything.batches(view.val, EVALUATED))

    def validate(epoch: int) -> tuple[float, float] | None:
        if not held_out or not (epoch % eval_every == 0 or epoch == epochs - 1):
            return None
        return _validate(model, held_out)

    return run_epochs(
        model,
        optimizer,
        lambda epoch: _pass(model, train, size, optimizer, generator, epoch),
        validate,
        epochs=epochs,
        generator=generator,
        patience=patience if held_out else None,
        scheduler=scheduler,
        on_epoch=on_epoch,
    )


def _pass(
    model: nn.Module,
    train: Collection,
    size: int,
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
    epoch: int,
) -> float:
    """One pass over all training graphs in a new order."""
    order = torch.randperm(train.graph.num_graphs, generator=generator, device=generator.device).cpu()
    penalty = getattr(model, "penalty", None)
    return train_pass(model, train.batches(order, size), functional.cross_entropy, optimizer, epoch, penalty)


def _validate(model: nn.Module, held_out: list[Batch]) -> tuple[float, float]:
    with evaluating(model):
        logits = torch.cat([model(batch.x, batch.op, batch.ptr) for batch in held_out])
    y = torch.cat([batch.y for batch in held_out])
    return metric.accuracy(logits, y), float(functional.cross_entropy(logits, y))
