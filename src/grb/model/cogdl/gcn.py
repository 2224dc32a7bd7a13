"""Models of CogDL that are ready for our graphs."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import nn

from grb.errors import DataError, MissingExtra
from grb.model.adapters import Wrapped
from grb.model.base import hidden_sizes
from grb.model.bridges import INSTALL_COGDL as INSTALL


@dataclass(eq=False, repr=False)
class CogDLModel(Wrapped):
    """A ready model of CogDL: takes our graphs and makes CogDL's of them, with self-loops.

    A subclass is a dataclass too, adds its own fields, and makes CogDL's module in :meth:`made`.

    Args:
        in_features: Number of input features.
        out_features: Number of classes.
        hidden_features: Hidden widths, all equal, or one width together with ``n_layers``.
        n_layers: Number of layers, if one width is given.
        dropout: Dropout rate.
    """

    in_features: int
    out_features: int
    hidden_features: int | Sequence[int] = (64,)
    n_layers: int | None = None
    dropout: float = field(default=0.0, kw_only=True)
    model_type = "cogdl"
    model_name = ""
    weight_argument: ClassVar[str | None] = "edge_weight"
    adj_norm_func = None
    feat_norm = None

    def __post_init__(self) -> None:
        sizes = hidden_sizes(self.hidden_features, self.n_layers)
        if len(set(sizes)) != 1:
            owner = f"grb.model.cogdl.{type(self).__name__}"
            raise DataError(f"{owner} got the hidden sizes {sizes}, but CogDL's has one width; give equal ones")
        super().__init__(self.made(sizes[0], len(sizes) + 1), "cogdl", self.weight_argument, self_loops=True)

    def made(self, width: int, layers: int) -> nn.Module:
        """CogDL's module with this hidden width and number of layers."""
        raise NotImplementedError(f"{type(self).__name__} needs made(width, layers), which makes CogDL's module")

    def __repr__(self) -> str:
        return f"grb.model.cogdl.{type(self).__name__}({self.module})"


def cogdl_model(name: str) -> Any:
    """A class of ``cogdl.models.nn`` by its name; says how to get CogDL, and what needs none, if it is not there."""
    try:
        home = importlib.import_module(f"cogdl.models.nn.{name.lower()}")
    except (ImportError, OSError) as error:
        raise MissingExtra(
            f"grb.model.cogdl needs cogdl; install it with: {INSTALL}; models of the same name in grb.model.torch need no CogDL"
        ) from error
    return getattr(home, name)


@dataclass(eq=False, repr=False)
class GCN(CogDLModel):
    """CogDL's own GCN; dropout comes behind every hidden layer."""

    model_name = "gcn"

    def made(self, width: int, layers: int) -> nn.Module:
        """CogDL's module with this hidden width and number of layers."""
        module: nn.Module = cogdl_model("GCN")(self.in_features, width, self.out_features, layers, self.dropout)
        return module


@dataclass(eq=False, repr=False)
class GAT(CogDLModel):
    """CogDL's own GAT, with dropout in front of every layer; without weights of edges, so attacks on them need a surrogate.

    Args:
        hidden_features: Hidden widths of one head, all equal, or one width together with ``n_layers``.
        n_heads: Heads of every hidden layer; the last one has one.
        attn_dropout: Rate of dropped attention.
    """

    n_heads: int = 4
    attn_dropout: float = 0.0
    model_name = "gat"
    weight_argument = None

    def made(self, width: int, layers: int) -> nn.Module:
        """CogDL's module with this hidden width per head and number of layers."""
        sizes = (self.in_features, width, self.out_features, layers)
        module: nn.Module = cogdl_model("GAT")(*sizes, self.dropout, self.attn_dropout, 0.2, self.n_heads, False, 1)
        return module
