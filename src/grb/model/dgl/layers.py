"""Stacks of DGL's own convolutions, which take a DGLGraph, features and weights of edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from grb.errors import DataError, MissingExtra
from grb.model.adapters import Wrapped
from grb.model.base import hidden_sizes
from grb.model.bridges import INSTALL_DGL as INSTALL

Activation = Callable[[Tensor], Tensor]


def dgl_layers() -> Any:
    """``dgl.nn.pytorch``; says how to get it, and what needs no DGL, if it is not there."""
    try:
        from dgl.nn import pytorch
    except (ImportError, OSError) as error:  # a library that was built for another torch is an OSError
        raise MissingExtra(
            f"grb.model.dgl needs dgl; install it with: {INSTALL}; models of the same name in grb.model.torch need no DGL"
        ) from error
    return pytorch


class Stack(nn.Module):
    """Convolutions with layer norm in front, activation and dropout behind; the last one gives logits.

    Args:
        convs: Layers called as ``conv(graph, x, edge_weight=...)``.
        inputs: Width in front of every layer.
        activation: Behind every hidden layer.
        layer_norm: Normalise rows in front of every layer but the last.
        residual: Add a hidden layer's input to its output where both have the same width.
        dropout: Rate behind every hidden layer.
        average: Whether the last layer has heads to average, and the others some to concatenate.
    """

    def __init__(
        self,
        convs: Sequence[nn.Module],
        inputs: Sequence[int],
        activation: Activation,
        *,
        layer_norm: bool = False,
        residual: bool = False,
        dropout: float = 0.0,
        average: bool = False,
    ) -> None:
        super().__init__()
        self.convs = nn.ModuleList(convs)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for width in inputs[:-1]) if layer_norm else None
        self.activation, self.residual, self.average = activation, residual, average
        self.dropout = nn.Dropout(dropout)

    def forward(self, graph: Any, x: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Logits, [n, classes]."""
        last = len(self.convs) - 1
        for position, conv in enumerate(self.convs):
            before = x
            if self.norms is not None and position < last:
                x = self.norms[position](x)
            x = conv(graph, x, edge_weight=edge_weight)
            if position == last:
                return x.mean(1) if self.average else x
            x = self.activation(x.flatten(1) if self.average else x)
            if self.residual and x.shape == before.shape:
                x = x + before
            x = self.dropout(x)
        raise DataError("a stack needs at least one layer")


class DGLModel(Wrapped):
    """A ready model of DGL's layers: takes our graphs and makes DGL's of them, self-loops included where layers want them."""

    model_type = "dgl"
    model_name = ""
    adj_norm_func = None
    feat_norm = None

    def __init__(self, module: nn.Module, *, self_loops: bool) -> None:
        super().__init__(module, "dgl", "edge_weight", self_loops=self_loops)

    def __repr__(self) -> str:
        return f"grb.model.dgl.{type(self).__name__}({self.module})"


def widths(in_features: int, out_features: int, hidden_features: Any, n_layers: int | None) -> list[int]:
    """Widths from the features to the classes."""
    return [in_features, *hidden_sizes(hidden_features, n_layers), out_features]


def check_old_arguments(owner: str, feat_norm: Any, adj_norm_func: Any) -> None:
    """Refuse what THUDM/grb's models took and ours do in one place: the dataset, and the layers themselves."""
    if feat_norm is not None:
        raise DataError(f"{owner} got feat_norm={feat_norm!r}, but features are normalised by the dataset")
    if adj_norm_func is not None:
        raise DataError(f"{owner} got an adj_norm_func, but DGL's layers normalise by themselves; give None")


def gin_perceptron(before: int, after: int, batch_norm: bool) -> nn.Module:
    """Two linear maps with a relu between, and a batch norm behind."""
    norm = nn.BatchNorm1d(after) if batch_norm else nn.Identity()
    return nn.Sequential(nn.Linear(before, after), nn.ReLU(), nn.Linear(after, after), norm)


def relu(x: Tensor) -> Tensor:
    """The rectifier."""
    return torch.relu(x)
