"""Training of profiling models: mini-batches of graphs or one whole graph, and the test AUROC of the best validation epoch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from grb.dataset.splits import Split
from grb.errors import DataError
from grb.graph import Graph
from grb.model.base import evaluating
from grb.model.profiling import ProfilingConfig, ProfilingGNN, build_profiler
from grb.trainer.batches import Batch, Collection
from grb.trainer.loop import train_pass
from grb.trainer.neighbours import SampledNodes
from grb.trainer.objective import Objective

MIN_LR = 1e-6
# graphs that are evaluated at a time
EVALUATED = 256


@dataclass(frozen=True)
class Point:
    """One evaluation.

    Args:
        epoch: Number of the epoch, counted from 0.
        loss: Mean training loss of that epoch.
        val_loss: Validation loss.
        val_auroc: Validation AUROC.
        lr: Learning rate.
        auroc: Test AUROC if the validation AUROC is the best so far, else None.
    """

    epoch: int
    loss: float
    val_loss: float
    val_auroc: float
    lr: float
    auroc: float | None = None


@dataclass(frozen=True)
class Profiled:
    """How a training ended: the test AUROC of the first epoch with the best validation AUROC."""

    auroc: float
    val_auroc: float
    best_epoch: int
    epochs: int
    parameters: int
    stopped: str
    seconds: float
    history: tuple[Point, ...]


@dataclass
class Progress:
    """The last epoch that was worth its time: a better validation AUROC, or a training loss that fell far enough.

    A model without features learns slowly: for hundreds of epochs only its loss falls. So a fall by ``min_decrease`` of the
    first loss counts too. The fraction is of the first loss, not of the last one, because the loss of a model that learns its
    training set by heart falls for ever, if ever less.

    Args:
        min_decrease: Fall since the last progress that counts, as a fraction of the first loss; None if none does.
    """

    min_decrease: float | None
    epoch: int = 0
    first: float = math.nan
    lowest: float = math.inf

    def update(self, point: Point, better: bool) -> None:
        """Take notice of an evaluation, and whether its validation AUROC is the best so far."""
        if math.isnan(self.first):
            self.first = self.lowest = point.loss
        fell = self.min_decrease is not None and point.loss < self.lowest - self.min_decrease * self.first
        if fell:
            self.lowest = point.loss
        if better or fell:
            self.epoch = point.epoch


def fit_profile(
    graph: Graph,
    split: Split,
    chosen: ProfilingConfig,
    *,
    task: str,
    classes: int,
    seed: int,
    on_evaluation: Callable[[Point], None] = lambda point: None,
) -> Profiled:
    """Train a profiling model on a graph or a collection and score it.

    A collection trains on batches of its training graphs, drawn anew in every epoch; a single graph on all nodes at once with
    the loss of the training nodes, or on batches of nodes with sampled neighbours. Validation and test nodes of a single graph
    are seen, their labels are not.

    Args:
        graph: Graph or collection with labels.
        split: Ids of nodes, or of graphs of a collection.
        chosen: The model and its settings.
        task: ``node`` or ``graph``.
        classes: Number of classes.
        seed: Random seed of weights and batches.
        on_evaluation: Called after every evaluation.
    """
    if graph.y is None:
        raise DataError("a profiling model needs labels, but the graph has none")
    begin = time.perf_counter()
    generator = torch.Generator().manual_seed(seed)
    objective = Objective.of(graph.y, classes, weighted=chosen.class_weights)
    model = build_profiler(
        chosen,
        graph.num_features,
        objective.outputs,
        pool=task == "graph",
        edge_features=graph.num_edge_features,
        generator=generator,
    )
    data: Parts
    if chosen.neighbours is not None:
        data = SampledNodes(model, graph, split, chosen.batch, chosen.neighbours)
    else:
        data = (_Whole if graph.ptr is None else _Batched)(model, graph, split, chosen.batch)
    return run_course(model, data, objective, chosen, generator, begin, on_evaluation)


class Parts(Protocol):
    """What a course trains on and is evaluated on."""

    def training(self, generator: torch.Generator) -> Iterator[Batch]:
        """The batches of one epoch."""

    def evaluated(self, part: str) -> tuple[Tensor, Tensor]:
        """Logits and labels of ``val`` or ``test``."""


def run_course(
    model: nn.Module,
    data: Parts,
    objective: Objective,
    chosen: ProfilingConfig,
    generator: torch.Generator,
    begin: float,
    on_evaluation: Callable[[Point], None] = lambda point: None,
) -> Profiled:
    """Train a model and keep the test score of the epoch with the best validation score.

    Args:
        model: The model, with its first weights.
        data: Batches to train on, and logits and labels to evaluate.
        objective: Loss and score.
        chosen: Training settings.
        generator: Draws the batches.
        begin: When it all began, by :func:`time.perf_counter`.
        on_evaluation: Called after every evaluation.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=chosen.lr, foreach=True)
    scheduler = _Schedule(optimizer, chosen)
    best_auroc, best_epoch, auroc = -1.0, -1, math.nan
    history: list[Point] = []
    progress = Progress(chosen.min_decrease)
    stopped, epoch = "all epochs done", 0
    for epoch in range(chosen.epochs):
        loss = train_pass(model, data.training(generator), objective.loss, optimizer, epoch)
        if epoch % chosen.eval_every and epoch != chosen.epochs - 1:
            scheduler.epoch()
            continue
        logits, y = data.evaluated("val")
        val_loss, val_auroc = float(objective.loss(logits, y)), objective.auroc(logits, y)
        better = val_auroc > best_auroc
        if better:
            best_auroc, best_epoch, auroc = val_auroc, epoch, objective.auroc(*data.evaluated("test"))
        history.append(Point(epoch, loss, val_loss, val_auroc, scheduler.lr, auroc if better else None))
        on_evaluation(history[-1])
        scheduler.epoch(val_loss)
        progress.update(history[-1], better)
        if chosen.patience is not None and epoch - progress.epoch >= chosen.patience:
            also = "" if chosen.min_decrease is None else " and no lower training loss"
            stopped = f"no better validation AUROC{also} for {chosen.patience} epochs"
            break
    return Profiled(
        auroc,
        best_auroc,
        best_epoch,
        epoch + 1,
        sum(parameter.numel() for parameter in model.parameters()),
        stopped,
        time.perf_counter() - begin,
        tuple(history),
    )


class _Batched:
    """A collection: training graphs in new batches every epoch, the others in fixed ones."""

    def __init__(self, model: ProfilingGNN, graph: Graph, split: Split, batch: int) -> None:
        self.model, self.size = model, batch
        self.collection = Collection.of(graph, model.prepare(graph.adj))
        self.train = split.train
        self.parts = {
            name: list(self.collection.batches(ids, EVALUATED))
            for name, ids in (("val", split.val), ("test", split.test["full"]))
        }

    def training(self, generator: torch.Generator) -> Iterator[Batch]:
        order = self.train[torch.randperm(len(self.train), generator=generator)]
        return self.collection.batches(order, self.size)

    def evaluated(self, part: str) -> tuple[Tensor, Tensor]:
        with evaluating(self.model):
            logits = [self.model(batch.x, batch.op, batch.ptr) for batch in self.parts[part]]
        return torch.cat(logits), torch.cat([batch.y for batch in self.parts[part]])


class _Whole:
    """A single graph: one forward pass serves validation and test."""

    def __init__(self, model: ProfilingGNN, graph: Graph, split: Split, batch: int) -> None:
        assert graph.y is not None
        self.model, self.labels = model, graph.y
        self.op = model.prepare(graph.adj)
        self.x = graph.x
        self.ids = {"train": split.train, "val": split.val, "test": split.test["full"]}
        self.logits: Tensor | None = None

    def training(self, generator: torch.Generator) -> Iterator[Batch]:
        self.logits = None
        yield Batch(self.x, self.op, self.labels[self.ids["train"]], rows=self.ids["train"])

    def evaluated(self, part: str) -> tuple[Tensor, Tensor]:
        if self.logits is None:
            with evaluating(self.model):
                self.logits = self.model(self.x, self.op)
        return self.logits[self.ids[part]], self.labels[self.ids[part]]


class _Schedule:
    """The learning rate: halved on a plateau of the validation loss, or a cosine."""

    def __init__(self, optimizer: torch.optim.Optimizer, chosen: ProfilingConfig) -> None:
        self.optimizer = optimizer
        schedules = torch.optim.lr_scheduler
        self.plateau = chosen.schedule == "plateau"
        self.inner: Any = (
            schedules.ReduceLROnPlateau(optimizer, factor=0.5, patience=chosen.plateau, min_lr=MIN_LR)
            if self.plateau
            else schedules.CosineAnnealingLR(optimizer, T_max=chosen.epochs)
        )

    @property
    def lr(self) -> float:
        return float(self.optimizer.param_groups[0]["lr"])

    def epoch(self, val_loss: float | None = None) -> None:
        """An epoch is over; ``val_loss`` if it was evaluated."""
        if not self.plateau:
            self.inner.step()
        elif val_loss is not None:
            self.inner.step(val_loss)
