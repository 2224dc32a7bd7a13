"""The Trainer of the GRB paper's Figure 3, a short caller of the one loop."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from grb import _lazy
from grb import metric as metrics
from grb._paper_calls import PaperCalls, paper_calls
from grb.dataset import Dataset
from grb.dataset.view import View
from grb.errors import DataError
from grb.graph import Graph
from grb.model.base import dropout_rate, predict
from grb.trainer.checkpoint import save_model
from grb.trainer.loop import Epoch, Fit, Loss, fit


class Trainer(metaclass=PaperCalls):
    """Train and evaluate models on one dataset.

    Args:
        dataset: A :class:`grb.dataset.Dataset`.
        optimizer: Over the parameters of the model that will be trained.
        loss: Function of the model's output and the labels; ``nll_loss`` gets log-probabilities although models give logits.
        lr_scheduler: Multiply the learning rate by ``lr_factor`` when validation has not improved for ``lr_patience``; or a
            schedule of torch for the optimizer.
        lr_patience: Evaluations without improvement before that.
        lr_factor: By what the rate is multiplied.
        lr_min: The rate never falls below it.
        early_stop: Stop when validation has not improved for ``early_stop_patience`` epochs; an object with a ``patience`` of
            its own is one that stops.
        early_stop_patience: Epochs without improvement before that.
        eval_metric: Function of logits and labels, higher is better; accuracy if not given.
        device: Where to train, for instance ``"cuda"``.
        seed: Random seed of the dropout masks.
    """

    def __init__(
        self,
        dataset: Dataset,
        optimizer: torch.optim.Optimizer,
        loss: Loss | None = None,
        *,
        lr_scheduler: bool | torch.optim.lr_scheduler.LRScheduler | None = False,
        lr_patience: int = 100,
        lr_factor: float = 0.75,
        lr_min: float = 1e-5,
        early_stop: Any = False,
        early_stop_patience: int = 100,
        eval_metric: Callable[[Tensor, Tensor], float] | None = None,
        device: str | torch.device = "cpu",
        seed: int = 0,
    ) -> None:
        self.dataset = dataset
        self.optimizer = optimizer
        self.loss = loss
        self.scheduler = None
        if isinstance(lr_scheduler, torch.optim.lr_scheduler.LRScheduler):
            self.scheduler = lr_scheduler
        elif lr_scheduler:
            self.scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
                optimizer, mode="max", patience=lr_patience, factor=lr_factor, min_lr=lr_min
            )
        self.patience = getattr(early_stop, "patience", early_stop_patience) if early_stop else None
        self.eval_metric = eval_metric
        check_device(device)
        self.device = torch.device(device)
        self.seed = seed
        self._assigned: dict[str, Any] = {}

    @paper_calls()
    def train(
        self,
        model: nn.Module,
        n_epoch: int,
        *,
        train_mode: Literal["inductive", "transductive"] = "inductive",
        dropout: float | None = None,
        eval_every: int = 1,
        save_dir: str | os.PathLike[str] | None = None,
        save_name: str = "model.safetensors",
        on_epoch: Callable[[Epoch], None] | None = None,
    ) -> Fit:
        """Train for at most ``n_epoch`` epochs; the model ends with its best validation weights, in evaluation mode.

        Args:
            model: The model whose parameters the optimizer has.
            n_epoch: Maximum number of epochs.
            train_mode: ``inductive`` (no test node is seen) or ``transductive`` (no test label is seen).
            dropout: Rate for this run instead of the model's own.
            eval_every: Number of epochs between two validations.
            save_dir: Where to write the trained model, if anywhere.
            save_name: File name there.
            on_epoch: Called after each epoch, for progress.
        """
        with dropout_rate(model, dropout):
            result = self._fit(model, train_mode, epochs=n_epoch, eval_every=eval_every, on_epoch=on_epoch)
        if save_dir is not None:
            save_model(model, Path(save_dir) / save_name)
        return result

    def _fit(self, model: nn.Module, train_mode: str, **options: Any) -> Fit:
        """Train with this trainer's settings and the options of :func:`~grb.trainer.fit` for one training."""
        view = self.view(train_mode)
        ours = {id(parameter) for parameter in model.parameters()}
        if not any(id(parameter) in ours for group in self.optimizer.param_groups for parameter in group["params"]):
            raise DataError("the optimizer has none of this model's parameters; make it with model.parameters()")
        return fit(
            model.to(self.device),
            view.to(self.device),
            optimizer=self.optimizer,
            loss=self.loss,
            patience=self.patience,
            metric=self.eval_metric,
            scheduler=self.scheduler,
            generator=torch.Generator(self.device).manual_seed(self.seed),
            **options,
        )

    def view(self, train_mode: str) -> View:
        """What a training of this mode may see of the dataset."""
        if train_mode not in ("inductive", "transductive"):
            raise DataError(f"train_mode is {train_mode!r}, but 'inductive' or 'transductive' is needed")
        if self._assigned:
            raise DataError(
                f"{' and '.join(self._assigned)} of the trainer were assigned, which inference and evaluate use; to train on "
                "another graph make a dataset of it: CustomDataset(adj, features, labels, train_mask, ...)"
            )
        return self.dataset.defender_view() if train_mode == "inductive" else self.dataset.transductive_view()

    @property
    def adj(self) -> Any:
        """Adjacency that ``inference`` and ``evaluate`` meet: the dataset's, or an attacked one that was assigned."""
        return self._assigned.get("adj", self.dataset.adj)

    @adj.setter
    def adj(self, adj: Any) -> None:
        self._assigned["adj"] = adj

    @property
    def features(self) -> Tensor:
        """Features that ``inference`` and ``evaluate`` meet: the dataset's, or attacked ones that were assigned."""
        found: Tensor = self._assigned.get("features", self.dataset.features)
        return found

    @features.setter
    def features(self, features: Tensor) -> None:
        self._assigned["features"] = features

    # the dataset's; an assignment would change nothing, so Python refuses it
    labels = property(lambda self: self.dataset.labels)
    train_mask = property(lambda self: self.dataset.train_mask)
    val_mask = property(lambda self: self.dataset.val_mask)
    test_mask = property(lambda self: self.dataset.test_mask)

    def inference(self, model: nn.Module) -> Tensor:
        """Logits of all nodes of the whole graph, [n, classes]; of an attacked one if that was assigned."""
        graph = self.dataset.graph
        if self._assigned:
            graph, _ = Graph.build(self.adj, self.features.detach().cpu(), mode="canonicalise")
        return predict(model, graph.to(self.device)).cpu()

    def evaluate(self, model: nn.Module, mask: Tensor | None = None) -> float:
        """Score on the nodes of a mask (the dataset's test mask if not given), each met in the whole graph.

        Nodes behind those of the dataset, which an assigned graph may have, are injected ones and do not count.
        """
        mask = self.dataset.test_mask if mask is None else mask
        y = self.dataset.labels
        logits, y = self.inference(model)[: len(y)][mask], y[mask]
        if self.eval_metric is not None:
            return float(self.eval_metric(logits, y))
        return metrics.accuracy(logits, y) if y.dim() == 1 else metrics.f1(logits > 0, y)


def check_device(device: str | torch.device) -> None:
    """Refuse a device that torch does not know or cannot use here."""
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0][:100]
        raise DataError(f"device '{device}' cannot be used here ({reason}); `grb doctor` shows what there is") from None


# of the papers' era
__getattr__ = _lazy.attach(
    __name__, dict.fromkeys(("AutoTrainer", "EarlyStop", "GraphTrainer"), "grb.compat.trainers")
)[0]
