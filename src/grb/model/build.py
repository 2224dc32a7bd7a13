"""Models by name with the papers' settings: ``gcn``, ``gcn+ln``, ``gcn+at``, or ``package.module:Class``."""

from __future__ import annotations

import copy
import inspect
import math
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from grb.catalogue import preset, resolve
from grb.errors import DataError, nearest
from grb.names import ModelName

# datasets without a table of their own are trained with the settings of grb-cora
FALLBACK = "grb-cora"
# arguments of a training that are not the model's
TRAINING = (
    "lr",
    "epochs",
    "patience",
    "validate_every",
    "sampled_neighbours",
    "batch_nodes",
    "class_weights",
    "metric",
)
# these are not in the tables and get the settings of GCN; the graph-free baseline with one hidden layer (with three it
# overfits: 54 instead of 64 per cent on grb-cora)
BORROWED = {"mlp": "gcn", "mlp+ln": "gcn+ln", "egnnguard": "gcn", "egnnguard+ln": "gcn+ln"}


@dataclass(frozen=True)
class Settings:
    """How to make and train one model on one dataset.

    Args:
        model: Name of the model.
        params: Arguments of its constructor.
        lr: Learning rate of Adam.
        epochs: Maximum number of epochs.
        patience: Epochs without a better validation score before stopping.
        validate_every: Epochs between two validations; the weights that are kept are those of a validated epoch.
        sampled_neighbours: Neighbours drawn per node and hop for steps on mini-batches; None for whole graphs.
        batch_nodes: Training nodes of a mini-batch.
        class_weights: ``balanced``, or one weight per class in the loss; None for equal ones.
        metric: Metric that chooses the best epoch; None for accuracy.
    """

    model: str
    params: dict[str, Any] = field(default_factory=dict)
    lr: float = 0.01
    epochs: int = 2000
    patience: int = 200
    validate_every: int = 1
    sampled_neighbours: int | None = None
    batch_nodes: int = 1024
    class_weights: Any = None
    metric: Any = None

    def __post_init__(self) -> None:
        lr: Any = self.lr  # a recipe may hold anything
        if isinstance(lr, bool) or not isinstance(lr, int | float) or not 0 < lr < math.inf:
            raise DataError(f"lr is {self.lr}, but a finite number above 0 is needed, for instance 0.01")
        for name in ("epochs", "patience", "validate_every"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise DataError(f"{name} is {value}, but a whole number of at least 1 is needed")

    @property
    def adversarial(self) -> bool:
        """Whether the name asks for adversarial training; see ``grb.defense``."""
        return ModelName.parse(self.model).adversarial

    def override(self, **changes: Any) -> Settings:
        """With other values for the training (None keeps ours); all else goes to the model."""
        known = {key: changes.pop(key) for key in TRAINING if changes.get(key) is not None}
        for key in TRAINING:
            changes.pop(key, None)
        return replace(self, **known, params={**self.params, **changes})


def settings(name: str | ModelName, dataset: str) -> Settings:
    """The papers' settings for a model on a dataset (Tables 6 to 10); those of grb-cora for any other dataset."""
    chosen = ModelName.parse(name)
    norm = {"layer_norm": True} if chosen.layer_norm else {}
    if chosen.pooled:
        return _of_graphs(chosen, norm)
    tables = preset("models")
    plain = str(ModelName(chosen.base, layer_norm=chosen.layer_norm))
    listed = BORROWED.get(plain, plain)
    row = copy.deepcopy(tables.get(dataset, {}).get(listed) or tables[FALLBACK].get(listed))
    if row is None:  # a model that the tables do not have keeps its own defaults
        return Settings(str(chosen), norm, **tables["training"])
    row.pop("parameters", None)
    lr, hidden = row.pop("lr"), row.pop("hidden")
    if chosen.base == "mlp":
        hidden = hidden[:1]
    return Settings(str(chosen), {"hidden_features": hidden, **row, **norm}, lr, **tables["training"])


def _of_graphs(chosen: ModelName, norm: dict[str, Any]) -> Settings:
    tables = preset("graphs")
    row = dict(tables["models"].get(chosen.architecture) or tables["models"]["default"])
    lr, hidden = row.pop("lr"), list(row.pop("hidden"))
    return Settings(str(chosen), {"hidden_features": hidden, **row, **norm}, lr, **tables["training"])


def build(chosen: Settings, in_features: int, out_features: int, generator: torch.Generator | None = None) -> nn.Module:
    """A new model with weights drawn from ``generator``."""
    maker = resolve("model", ModelName.parse(chosen.model).architecture)
    try:
        # layers draw default weights before the generator's; that must not move the global random state
        with torch.random.fork_rng(devices=[], enabled=generator is not None):
            model: nn.Module = _made(maker, in_features, out_features, chosen.params, generator)
    except TypeError as error:
        accepted = [key for key in inspect.signature(maker).parameters if key != "generator"]
        unknown = sorted(set(chosen.params) - set(accepted))
        if not unknown:
            raise DataError(f"model '{chosen.model}' does not take these parameters: {error}") from None
        near = nearest(unknown[0], [*accepted, *TRAINING])
        hint = f"did you mean '{near}'? It takes" if near else "it takes"
        own = [key for key in accepted if key not in ("in_features", "out_features")]
        raise DataError(
            f"model '{chosen.model}' does not take '{unknown[0]}'; {hint} {', '.join([*own, *TRAINING])}"
        ) from None
    return model


def _made(
    maker: Any, in_features: int, out_features: int, params: dict[str, Any], generator: torch.Generator | None
) -> nn.Module:
    """The model; a module of others that takes no generator draws from torch's global one, and is wrapped."""
    given = inspect.signature(maker).parameters
    takes = "generator" in given or any(each.kind is inspect.Parameter.VAR_KEYWORD for each in given.values())
    if takes:
        model = maker(in_features, out_features, **params, generator=generator)
    else:
        if generator is not None:
            torch.manual_seed(generator.initial_seed() % 2**63)
        model = maker(in_features, out_features, **params)
    if isinstance(model, nn.Module) and not hasattr(model, "prepare"):
        from grb.model.adapters import wrap

        return wrap(model)
    return model
