"""Models by name with the papers' settings: ``gcn``, ``gcn+ln``, ``gcn+at``, or ``package.module:Class``."""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from grb.catalogue import POOL, SUFFIXES, base_model_name, canonical, preset, resolve
from grb.errors import DataError

# datasets without a table of their own are trained with the settings of grb-cora
FALLBACK = "grb-cora"
# these are not in the tables and get the settings of GCN; the graph-free baseline with one hidden layer (with three it
# overfits: 54 instead of 64 per cent on grb-cora)
BORROWED = {"mlp": "gcn", "mlp+ln": "gcn+ln", "egnnguard": "gcn", "egnnguard+ln": "gcn+ln"}


@dataclass(frozen=True)
class Settings:
    """How to make and train one model on one dataset."""

    model: str
    params: dict[str, Any] = field(default_factory=dict)
    lr: float = 0.01
    epochs: int = 2000
    patience: int = 200

    @property
    def adversarial(self) -> bool:
        """Whether the name asks for adversarial training; see ``grb.defense``."""
        return any(suffix.startswith("at") for suffix in split_name(self.model)[1])

    def override(self, **changes: Any) -> Settings:
        """With other values for lr, epochs and patience (None keeps ours); all else goes to the model."""
        known = {key: changes.pop(key) for key in ("lr", "epochs", "patience") if changes.get(key) is not None}
        for key in ("lr", "epochs", "patience"):
            changes.pop(key, None)
        return replace(self, **known, params={**self.params, **changes})


def split_name(name: str) -> tuple[str, frozenset[str]]:
    """The catalogue name of a model and its suffixes: ``ln`` for layer norm, ``at...`` for adversarial training.

    >>> split_name("gcn+at")
    ('gcn', frozenset({'at'}))
    """
    base, *given = name.split("+")
    suffixes = [suffix.lower() for suffix in given]
    unknown = [suffix for suffix in suffixes if suffix not in SUFFIXES]
    if unknown or len(set(suffixes)) != len(suffixes):
        allowed = ", ".join(f"'+{suffix}'" for suffix in SUFFIXES)
        raise DataError(
            f"model '{name}' has the suffix '+{(unknown or suffixes)[0]}', but only {allowed} are known, once each"
        )
    if sum(suffix.startswith("at") for suffix in suffixes) > 1:
        raise DataError(f"model '{name}' asks for two kinds of adversarial training; keep one of them")
    return (base if ":" in base else canonical("model", base)), frozenset(suffixes)


def settings(name: str, dataset: str) -> Settings:
    """The papers' settings for a model on a dataset (Tables 6 to 10); those of grb-cora for any other dataset."""
    base, suffixes = split_name(name)
    full = "+".join([base, *(suffix for suffix in SUFFIXES if suffix in suffixes)])
    norm = "ln" in suffixes
    norm_param = {"layer_norm": True} if norm else {}
    if base.endswith(POOL):
        return _of_graphs(full, base, norm_param)
    tables = preset("models")
    own = base_model_name(base)
    plain = f"{own}+ln" if norm else own
    listed = BORROWED.get(plain, plain)
    row = copy.deepcopy(tables.get(dataset, {}).get(listed) or tables[FALLBACK].get(listed))
    if row is None:  # a model that the tables do not have keeps its own defaults
        return Settings(full, norm_param, **tables["training"])
    row.pop("parameters", None)
    lr, hidden = row.pop("lr"), row.pop("hidden")
    if own == "mlp":
        hidden = hidden[:1]
    return Settings(full, {"hidden_features": hidden, **row, **norm_param}, lr, **tables["training"])


def _of_graphs(full: str, base: str, norm: dict[str, Any]) -> Settings:
    tables = preset("graphs")
    row = dict(tables["models"].get(base) or tables["models"]["default"])
    lr, hidden = row.pop("lr"), list(row.pop("hidden"))
    return Settings(full, {"hidden_features": hidden, **row, **norm}, lr, **tables["training"])


def for_task(name: str, task: str) -> str:
    """A model's name for nodes or for graphs: on graphs, a model of nodes is pooled.

    >>> for_task("gin+ln", "graph"), for_task("gin", "node")
    ('gin-pool+ln', 'gin')
    """
    base, plus, rest = name.partition("+")
    if task == "graph" and any(suffix.lower().startswith("at") for suffix in rest.split("+")):
        raise DataError(f"'{name}' asks for adversarial training, which is for models of nodes; leave '+at' out")
    if (task == "graph") == base.lower().endswith(POOL):
        return name
    if task != "graph":
        raise DataError(f"model '{name}' classifies graphs, but this dataset has nodes to classify; leave '{POOL}' out")
    if ":" in base:
        return name
    return f"{base}{POOL}{plus}{rest}"


def build(chosen: Settings, in_features: int, out_features: int, generator: torch.Generator | None = None) -> nn.Module:
    """A new model with weights drawn from ``generator``."""
    base, _ = split_name(chosen.model)
    maker = resolve("model", base)
    try:
        # layers draw default weights before the generator's; that must not move the global random state
        with torch.random.fork_rng(devices=[], enabled=generator is not None):
            model: nn.Module = maker(in_features, out_features, **chosen.params, generator=generator)
    except TypeError as error:
        accepted = [key for key in inspect.signature(maker).parameters if key != "generator"]
        unknown = sorted(set(chosen.params) - set(accepted))
        if not unknown:
            raise DataError(f"model '{chosen.model}' does not take these parameters: {error}") from None
        raise DataError(
            f"model '{chosen.model}' does not take '{unknown[0]}'; it takes {', '.join(accepted)}"
        ) from None
    return model
