"""Profiling models by name, with the taxonomy paper's settings for collections and for single graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import torch

from grb.catalogue import resolve, spelling
from grb.errors import DataError
from grb.model.profiling.network import DEPTH, WIDTH, Conv, ProfilingGNN

# what differs between the models, beside the convolution: the published runs did not share one training scheme
OWN: Mapping[str, Mapping[str, Any]] = {
    "gin-2l": {"depth": 2},
    "chebnet": {"lr": 1e-2, "epochs": 200, "plateau": 20},
    "gatedgcn": {"epochs": 200, "schedule": "cosine"},
}
MIN_DECREASE = 0.02
"""Fall of the training loss, as a fraction of its first value, that counts as progress where there is a patience."""
PATIENCE = {"collection": 25, "single": 250}
"""Epochs without progress after which a training may end with next to no loss: ``benchmarks/stopping.py``."""
SAMPLED_BATCH = 1024
"""Nodes per batch where neighbours are sampled."""
SINGLE: Mapping[str, Any] = {"batch_norm": False, "lr": 1e-2, "epochs": 5000, "plateau": 100, "eval_every": 5}


@dataclass(frozen=True)
class ProfilingConfig:
    """How to make and train one profiling model.

    Args:
        model: Catalogue name or ``package.module:Class`` of the convolution.
        depth: Number of convolutions.
        width: Width of every layer.
        batch_norm: Whether layers have one.
        lr: Adam's first learning rate.
        epochs: Maximum number of epochs.
        batch: Graphs per step; a single graph is one step.
        eval_every: Epochs between two evaluations.
        schedule: ``plateau`` halves the rate when the validation loss stalls, ``cosine`` lets it fall to zero.
        plateau: Evaluations without a smaller validation loss after which the rate is halved.
        patience: End after this number of epochs without progress: a better validation AUROC or a training loss that fell. None
            trains for all, as the paper did.
        min_decrease: Fall of the training loss since the last progress, as a fraction of its first value, that counts as
            progress; None lets only the validation AUROC count.
        class_weights: Rare classes weigh more in the loss of every batch.
        neighbours: Train a single graph on batches of nodes with this number of sampled neighbours per node and hop; None
            trains on the whole graph at once.
        options: More arguments of the convolution.
    """

    model: str
    depth: int = DEPTH
    width: int = WIDTH
    batch_norm: bool = True
    lr: float = 1e-3
    epochs: int = 300
    batch: int = 64
    eval_every: int = 1
    schedule: Literal["plateau", "cosine"] = "plateau"
    plateau: int = 15
    patience: int | None = None
    min_decrease: float | None = None
    class_weights: bool = False
    neighbours: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("depth", "width", "epochs", "batch", "eval_every", "plateau", "patience", "neighbours"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise DataError(f"{name} of a profiling model is {value!r}, but a whole number of at least 1 is needed")
        if not 0 < self.lr < 10:
            raise DataError(f"lr of a profiling model is {self.lr!r}, but a number above 0 and below 10 is needed")
        if self.min_decrease is not None and not 0 < self.min_decrease <= 1:
            raise DataError(
                f"min_decrease of a profiling model is {self.min_decrease!r}, but a number above 0 and at most 1 is needed"
            )
        if self.schedule not in ("plateau", "cosine"):
            raise DataError(f"schedule of a profiling model is '{self.schedule}'; allowed: plateau, cosine")


def profiler(model: str, *, collection: bool, class_weights: bool = False, **changes: Any) -> ProfilingConfig:
    """The paper's settings for a model, with changes; what is no setting goes to the convolution.

    Args:
        model: Name of the model.
        collection: Whether the data is a collection of graphs, or one graph.
        class_weights: Whether the dataset asks for weighted classes.
        changes: Other values; None keeps ours.
    """
    name = spelling("profiler", model)
    known = {each.name for each in fields(ProfilingConfig)} - {"model", "options"}
    given = {key: value for key, value in changes.items() if value is not None}
    if "patience" in given:  # a run without features is not over while its loss falls
        given = {"min_decrease": MIN_DECREASE, **given}
    if "neighbours" in given:
        if collection:
            raise DataError("neighbours are sampled in a single graph, but this is a collection; leave out neighbours")
        given = {"batch": SAMPLED_BATCH, "eval_every": 1, **given}
    values = {**OWN.get(name, {}), **({} if collection else SINGLE), "class_weights": class_weights}
    made = ProfilingConfig(name, **{**values, **{key: value for key, value in given.items() if key in known}})
    return replace(made, options={key: value for key, value in given.items() if key not in known})


def build_profiler(
    chosen: ProfilingConfig,
    in_features: int,
    out_features: int,
    *,
    pool: bool,
    edge_features: int = 0,
    generator: torch.Generator | None = None,
) -> ProfilingGNN:
    """A new model with weights drawn from ``generator``."""
    conv = resolve("profiler", chosen.model)
    if not (isinstance(conv, type) and issubclass(conv, Conv)):
        raise DataError(f"'{chosen.model}' is no convolution for profiling; it must be a grb.model.profiling.Conv")
    with torch.random.fork_rng(devices=[], enabled=generator is not None):
        return ProfilingGNN(
            conv,
            in_features,
            out_features,
            pool=pool,
            batch_norm=chosen.batch_norm,
            width=chosen.width,
            depth=chosen.depth,
            edge_features=edge_features,
            generator=generator,
            options=chosen.options,
        )
