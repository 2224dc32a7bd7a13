"""The one training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from grb.dataset.view import View
from grb.errors import DataError, GRBError
from grb.graph import CSR, Graph
from grb.model.base import EvaluationView, evaluating, observing, prepare, use_generator
from grb.trainer.batches import Batch
from grb.trainer.sampling import NeighbourSampling
from grb.trainer.stop import Best

Loss = Callable[[Tensor, Tensor], Tensor]
Augment = Callable[[nn.Module, Graph, Tensor, int, torch.Generator], Graph]


class TrainingError(GRBError):
    """Training that cannot go on; the sentence says what to try."""


@dataclass(frozen=True)
class Epoch:
    """What one epoch gave; scores are None where the epoch was not evaluated."""

    number: int
    loss: float
    val_score: float | None
    val_loss: float | None
    lr: float


@dataclass(frozen=True)
class Fit:
    """How a training went."""

    best_epoch: int
    best_score: float | None
    epochs: int
    seconds: float
    stopped: str
    history: tuple[Epoch, ...]


@dataclass(frozen=True, eq=False)
class _Inputs:
    """What one forward pass needs, with the rows that count."""

    x: Tensor | CSR
    op: Any
    y: Tensor
    ids: Tensor | None  # None: all rows

    def rows(self, logits: Tensor) -> Tensor:
        if self.ids is None:
            return logits
        return logits[self.ids] if logits.dim() < 3 else logits[:, self.ids]


# in place of the training graph's inputs where every batch has its own
_NOTHING = _Inputs(torch.empty(0, 0), None, torch.empty(0), None)


def fit(
    model: nn.Module,
    view: View,
    *,
    optimizer: torch.optim.Optimizer,
    epochs: int,
    generator: torch.Generator,
    loss: Loss | None = None,
    patience: int | None = None,
    eval_every: int = 1,
    metric: Callable[[Tensor, Tensor], float] | None = None,
    scheduler: Any = None,
    augment: Augment | None = None,
    augment_validation: Augment | None = None,
    select_from: int = 0,
    on_epoch: Callable[[Epoch], None] | None = None,
    sampling: NeighbourSampling | None = None,
) -> Fit:
    """Train a model on what a view shows and leave it with the weights of its best validation epoch.

    An inductive view trains on the sub-graph of the training nodes, normalised by its own degrees, and validates on
    the sub-graph of training and validation nodes; a transductive view does both on the whole visible graph.

    Args:
        model: Anything with ``prepare`` and ``forward``; left in evaluation mode.
        view: From ``Dataset.defender_view()`` or ``transductive_view()``.
        optimizer: Over the model's parameters.
        epochs: Maximum number of steps.
        generator: Draws dropout masks and whatever ``augment`` needs.
        loss: Function of logits and labels; cross-entropy (or its multi-label form) if not given. ``nll_loss`` and
            ``binary_cross_entropy`` get log-probabilities and probabilities.
        patience: Stop after this number of epochs without a better validation score; None never stops early.
        eval_every: Number of epochs between two validations.
        metric: Function of logits and labels, higher is better; accuracy (or micro-F1) if not given.
        scheduler: A torch learning-rate schedule; ``ReduceLROnPlateau`` is stepped with the validation score.
        augment: Called before each step as ``augment(model, graph, train_ids, epoch, generator)``; the step uses the
            graph it returns, whose first nodes are those of the graph it got. Adversarial training is one.
        augment_validation: The same before each validation, with the validation graph and its ids; the score is that of the
            graph it returns.
        select_from: The best epoch is looked for from this one on; patience counts from there too.
        on_epoch: Called with every :class:`Epoch`, for progress.
        sampling: Make an epoch of mini-batches with sampled neighbours; None for one step on the whole training graph.

    A model with a method ``observe`` is told that it knows all nodes of the training graph and, where validation nodes are
    met for the first time, the training nodes alone.

    A model with a method ``graph_learner(view, loss)`` learns its graph too: what that gives is called with the number of the
    epoch before each step, and both graphs are prepared again where it says that something changed.

    A model with a method ``penalty()`` has it added to the loss of each step. In training mode a model may give several
    draws, [draws, n, classes]; the loss is the mean of theirs.
    """
    _check_counts(epochs, eval_every, patience)
    objective = _on_logits(loss, view.labels)
    score = metric or (_accuracy if view.labels.dim() == 1 else _micro_f1)
    graph, ids = view.training_graph()
    learner = getattr(model, "graph_learner", None)
    learn_graph: Callable[[int], bool] | None = None if learner is None else learner(view, objective)
    if sampling is not None:
        sampling.hops(model)
        if augment is not None:
            raise DataError(
                "adversarial training attacks the whole training graph in every step; leave sampled_neighbours out"
            )
    with observing(model, EvaluationView.of(torch.arange(graph.n), graph.n)):
        train = _NOTHING if sampling is not None else _inputs(model, graph, None if len(ids) == graph.n else ids)
    held_out = None
    if len(view.val):
        whole = view.validation_graph or view.graph
        known = view.train if view.inductive else torch.arange(whole.n)
        with observing(model, EvaluationView.of(known, whole.n)):
            held_out = _inputs(model, whole, view.val)

    def step(epoch: int) -> float:
        nonlocal train, held_out
        if sampling is not None:
            return _finite(sampling.epoch(model, graph, ids, objective, optimizer, generator), epoch)
        if learn_graph is not None and learn_graph(epoch):
            train = _inputs(model, graph, train.ids, repeated=False)
            if held_out is not None:
                held_out = _inputs(model, whole, view.val, repeated=False)
        inputs = train
        if augment is not None:
            inputs = _augmented(model, augment(model, graph, ids, epoch, generator), graph, ids, train)
        return _step(model, inputs, objective, optimizer, epoch)

    def validate(epoch: int) -> tuple[float, float] | None:
        if held_out is None or not (epoch % eval_every == 0 or epoch == epochs - 1):
            return None
        inputs = held_out
        if augment_validation is not None:
            changed = augment_validation(model, whole, view.val, epoch, generator)
            inputs = _augmented(model, changed, whole, view.val, held_out)
        return _validate(model, inputs, score, objective)

    return run_epochs(
        model,
        optimizer,
        step,
        validate,
        epochs=epochs,
        generator=generator,
        patience=patience if held_out is not None else None,
        scheduler=scheduler,
        select_from=select_from,
        on_epoch=on_epoch,
    )


def run_epochs(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    step: Callable[[int], float],
    validate: Callable[[int], tuple[float, float] | None],
    *,
    epochs: int,
    generator: torch.Generator,
    patience: int | None = None,
    scheduler: Any = None,
    select_from: int = 0,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> Fit:
    """The course of a training, whatever an epoch is: best weights, patience, history, and dropout from one generator.

    Args:
        model: Left in evaluation mode with its best weights.
        optimizer: Optimiser whose learning rate is recorded.
        step: Does an epoch and gives its loss.
        validate: Score and loss on what was held out; None where an epoch is not evaluated.

    All other arguments are those of :func:`fit`.
    """
    start = time.perf_counter()
    use_generator(model, generator)
    best, history, stopped = Best(), [], "all epochs done"
    try:
        for epoch in range(epochs):
            value = step(epoch)
            val_score, val_loss = validate(epoch) or (None, None)
            if val_score is not None and val_loss is not None and epoch >= min(select_from, epochs - 1):
                best.update(epoch, val_score, val_loss, model)
            _schedule(scheduler, val_score)
            history.append(Epoch(epoch, value, val_score, val_loss, optimizer.param_groups[0]["lr"]))
            if on_epoch is not None:
                on_epoch(history[-1])
            if patience is not None and epoch - max(best.epoch, select_from) >= patience:
                stopped = f"no better validation score for {patience} epochs"
                break
    finally:
        use_generator(model, None)
    best.restore(model)
    model.eval()
    found = best.epoch >= 0
    return Fit(
        best.epoch if found else len(history) - 1,
        best.score if found else None,
        len(history),
        time.perf_counter() - start,
        stopped,
        tuple(history),
    )


def train_pass(
    model: nn.Module,
    batches: Iterable[Batch],
    loss: Callable[[Tensor, Tensor], Tensor],
    optimizer: torch.optim.Optimizer,
    epoch: int,
    penalty: Callable[[], Tensor] | None = None,
) -> float:
    """One optimisation step per batch; returns the mean loss of the steps, without the model's penalty."""
    model.train()
    losses: list[Tensor] = []
    for batch in batches:
        optimizer.zero_grad(set_to_none=True)
        logits = model(batch.x, batch.op, batch.ptr)
        value = loss(logits if batch.rows is None else logits[batch.rows], batch.y)
        losses.append(value.detach())
        (value if penalty is None else value + penalty()).backward()
        optimizer.step()
    return _finite(float(torch.stack(losses).mean()), epoch)


def _check_counts(epochs: int, eval_every: int, patience: int | None) -> None:
    if not (epochs >= 1 and eval_every >= 1 and (patience is None or patience >= 1)):
        raise DataError(f"epochs={epochs}, eval_every={eval_every}, patience={patience} must all be at least 1")


def _inputs(model: nn.Module, graph: Graph, ids: Tensor | None, *, repeated: bool = True) -> _Inputs:
    assert graph.y is not None
    op = prepare(model, graph.adj)
    if repeated and isinstance(graph.x, Tensor):
        op = _remembering(op, graph.x)
    return _Inputs(graph.x, op, graph.y if ids is None else graph.y[ids], ids)


def _remembering(op: Any, x: Tensor) -> Any:
    if isinstance(op, CSR):
        return op.remembering(x)
    if isinstance(op, Sequence):
        return type(op)(_remembering(part, x) for part in op)  # type: ignore[call-arg]
    return op


def _augmented(model: nn.Module, changed: Graph, graph: Graph, ids: Tensor, plain: _Inputs) -> _Inputs:
    if changed is graph:
        return plain
    if changed.n < graph.n:
        raise DataError(f"augment returned {changed.n} nodes, but must keep the {graph.n} it was given")
    return _inputs(model, changed, ids, repeated=False)


def _step(model: nn.Module, inputs: _Inputs, objective: Loss, optimizer: torch.optim.Optimizer, epoch: int) -> float:
    model.train()
    optimizer.zero_grad(set_to_none=True)
    loss = _mean_loss(objective, inputs.rows(model(inputs.x, inputs.op)), inputs.y)
    penalty = getattr(model, "penalty", None)
    if penalty is not None:
        loss = loss + penalty()
    value = _finite(float(loss.detach()), epoch)
    loss.backward()
    optimizer.step()
    return value


def _finite(value: float, epoch: int) -> float:
    if not math.isfinite(value):
        raise TrainingError(f"the training loss became {value} in epoch {epoch}; try a smaller learning rate")
    return value


def _mean_loss(objective: Loss, logits: Tensor, y: Tensor) -> Tensor:
    if logits.dim() < 3:
        return objective(logits, y)
    return torch.stack([objective(draw, y) for draw in logits]).mean()


def _validate(
    model: nn.Module, inputs: _Inputs, score: Callable[[Tensor, Tensor], float], objective: Loss
) -> tuple[float, float]:
    with evaluating(model):
        logits = inputs.rows(model(inputs.x, inputs.op))
        return float(score(logits, inputs.y)), float(objective(logits, inputs.y))


def _schedule(scheduler: Any, val_score: float | None) -> None:
    if scheduler is None:
        return
    if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
        if val_score is not None:
            scheduler.step(val_score)
    else:
        scheduler.step()


def _on_logits(loss: Loss | None, labels: Tensor) -> Loss:
    """The loss as a function of logits, whatever torch expects it to be fed with."""
    if loss is None:
        return functional.cross_entropy if labels.dim() == 1 else functional.binary_cross_entropy_with_logits
    if loss is functional.nll_loss or isinstance(loss, nn.NLLLoss):
        return lambda logits, y: loss(functional.log_softmax(logits, dim=-1), y)
    if loss is functional.binary_cross_entropy or isinstance(loss, nn.BCELoss):
        return lambda logits, y: loss(torch.sigmoid(logits), y)
    return loss


def _accuracy(logits: Tensor, y: Tensor) -> float:
    return float((logits.argmax(1) == y).float().mean())


def _micro_f1(logits: Tensor, y: Tensor) -> float:
    from grb.metric import f1

    return f1(logits > 0, y)
