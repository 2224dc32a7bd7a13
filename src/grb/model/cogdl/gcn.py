"""Models of CogDL that are ready for our graphs."""

from __future__ import annotations

import importlib
from typing import Any

from torch import nn

from grb.errors import DataError, MissingExtra
from grb.model.adapters import Wrapped
from grb.model.base import hidden_sizes
from grb.model.bridges import INSTALL_COGDL as INSTALL


class CogDLModel(Wrapped):
    """A ready model of CogDL: takes our graphs and makes CogDL's of them, with self-loops."""

    model_type = "cogdl"
    model_name = ""
    adj_norm_func = None
    feat_norm = None

    def __init__(self, module: nn.Module, *, edge_weight: str | None) -> None:
        super().__init__(module, "cogdl", edge_weight, self_loops=True)

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


def one_width(owner: str, hidden_features: Any, n_layers: int | None) -> tuple[int, int]:
    """The one hidden width that CogDL's models have, and the number of layers."""
    sizes = hidden_sizes(hidden_features, n_layers)
    if len(set(sizes)) != 1:
        raise DataError(f"{owner} got the hidden sizes {sizes}, but CogDL's has one width; give equal ones")
    return sizes[0], len(sizes) + 1


class GCN(CogDLModel):
    """CogDL's own GCN.

    Args:
        in_features: Number of input features.
        out_features: Number of classes.
        hidden_features: Hidden widths, all equal, or one width together with ``n_layers``.
        n_layers: Number of convolutions, if one width is given.
        dropout: Rate behind every hidden layer.
    """

    model_name = "gcn"

    def __init__(
        self,
        in_features: int,
        out_features: int,
        hidden_features: Any = (64,),
        n_layers: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        width, layers = one_width("grb.model.cogdl.GCN", hidden_features, n_layers)
        module = cogdl_model("GCN")(in_features, width, out_features, layers, dropout)
        super().__init__(module, edge_weight="edge_weight")


class GAT(CogDLModel):
    """CogDL's own GAT; it takes no weights of edges, so that attacks on edges need a surrogate.

    Args:
        in_features: Number of input features.
        out_features: Number of classes.
        hidden_features: Hidden widths of one head, all equal, or one width together with ``n_layers``.
        n_layers: Number of layers, if one width is given.
        n_heads: Heads of every hidden layer; the last one has one.
        attn_dropout: Rate of dropped attention.
        dropout: Rate in front of every layer.
    """

    model_name = "gat"

    def __init__(
        self,
        in_features: int,
        out_features: int,
        hidden_features: Any = (64,),
        n_layers: int | None = None,
        n_heads: int = 4,
        attn_dropout: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        width, layers = one_width("grb.model.cogdl.GAT", hidden_features, n_layers)
        arguments = (in_features, width, out_features, layers, dropout, attn_dropout, 0.2, n_heads, False, 1)
        super().__init__(cogdl_model("GAT")(*arguments), edge_weight=None)
