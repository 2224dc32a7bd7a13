"""grb in five lines: load a dataset, train a model, evaluate it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import nn

from grb import metric
from grb.dataset import DIFFICULTIES, Dataset
from grb.errors import DataError
from grb.graph import GraphEdit
from grb.model.base import predict
from grb.model.build import build, settings
from grb.trainer import Epoch, Fit, fit


class Scores(dict[str, float]):
    """Score per difficulty as a fraction; prints in per cent.

    >>> print(Scores(easy=0.5, full=0.75))
    easy 50.00  full 75.00
    """

    def __str__(self) -> str:
        return "  ".join(f"{name} {100 * value:.2f}" for name, value in self.items())


def train(
    model: str,
    dataset: Dataset,
    *,
    seed: int = 0,
    epochs: int | None = None,
    patience: int | None = None,
    lr: float | None = None,
    train_mode: Literal["inductive", "transductive"] = "inductive",
    device: str | torch.device = "cpu",
    on_epoch: Callable[[Epoch], None] | None = None,
    **params: Any,
) -> nn.Module:
    """Train a model by name with the papers' settings for the dataset.

    The same seed, version, number of threads and kind of CPU give the same weights, bit for bit.

    Args:
        model: ``gcn``, ``mlp``, ...; ``+ln`` adds the paper's layer norm; ``grb ls models`` shows all.
        dataset: From :func:`load_dataset` or ``Dataset.from_...``.
        seed: Of weights and dropout.
        epochs: At most so many instead of the preset.
        patience: Epochs without a better validation score before stopping, instead of the preset.
        lr: Learning rate of Adam instead of the preset.
        train_mode: ``inductive`` (no test node is seen) or ``transductive`` (no test label is seen).
        device: Where to train.
        on_epoch: Called after each epoch, for progress.
        params: Constructor arguments of the model instead of the preset, e.g. ``hidden_features=[32, 32]``.

    >>> from grb.dataset import load_dataset
    >>> dataset = load_dataset("synth-tiny")
    >>> evaluate(train("mlp", dataset, epochs=5), dataset)["full"] > 0.2
    True
    """
    return train_with_history(
        model,
        dataset,
        seed=seed,
        epochs=epochs,
        patience=patience,
        lr=lr,
        train_mode=train_mode,
        device=device,
        on_epoch=on_epoch,
        **params,
    )[0]


def train_with_history(
    model: str,
    dataset: Dataset,
    *,
    seed: int = 0,
    train_mode: Literal["inductive", "transductive"] = "inductive",
    device: str | torch.device = "cpu",
    on_epoch: Callable[[Epoch], None] | None = None,
    **changes: Any,
) -> tuple[nn.Module, Fit]:
    """As :func:`train`, and how it went."""
    if train_mode not in ("inductive", "transductive"):
        raise DataError(f"train_mode is {train_mode!r}, but 'inductive' or 'transductive' is needed")
    chosen = settings(model, dataset.name).override(**changes)
    generator = torch.Generator().manual_seed(seed)
    made = build(chosen, dataset.num_features, dataset.num_classes, generator).to(device)
    if torch.device(device).type != "cpu":
        generator = torch.Generator(device).manual_seed(seed)
    view = dataset.defender_view() if train_mode == "inductive" else dataset.transductive_view()
    result = fit(
        made,
        view.to(device),
        optimizer=torch.optim.Adam(made.parameters(), lr=chosen.lr, fused=True),
        epochs=chosen.epochs,
        patience=chosen.patience,
        generator=generator,
        on_epoch=on_epoch,
    )
    return made, result


def evaluate(model: nn.Module, dataset: Dataset, edit: GraphEdit | None = None) -> Scores:
    """Accuracy (micro-F1 for several labels per node) on each difficulty, every test node met in the whole graph.

    Args:
        model: A trained model.
        dataset: The dataset with true labels.
        edit: Applied to the graph first; scores are those under attack then.
    """
    graph = dataset.graph if edit is None else dataset.graph.apply(edit)
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    logits = predict(model, graph.to(device)).cpu()
    names = [name for name in DIFFICULTIES if name in dataset.split.test and len(dataset.split.test[name])]
    if not names:
        raise DataError(f"dataset '{dataset.name}' has no test nodes to evaluate on")
    scores = Scores()
    for name in names:
        ids = dataset.test_ids(name)
        y = dataset.labels[ids]
        scores[name] = metric.accuracy(logits[ids], y) if y.dim() == 1 else metric.f1(logits[ids] > 0, y)
    return scores
