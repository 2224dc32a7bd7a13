"""Stacks of DGL's own convolutions, which take a DGLGraph, features and weights of edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from grb.errors import DataError, MissingExtra
from grb.model.adapters import Wrapped
from grb.model.base import hidden_sizes
from grb.model.bridges import INSTALL_DGL as INSTALL

Activation = Callable[[Tensor], Tensor]


def relu(x: Tensor) -> Tensor:
    """The rectifier."""
    return torch.relu(x)


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


@dataclass(eq=False, repr=False)
class DGLModel(Wrapped):
    """A ready model of DGL's layers: takes our graphs and makes DGL's of them, self-loops included where layers want them.

    A subclass is a dataclass too, adds its own fields, and makes its layers in :meth:`stack`.

    Args:
        in_features: Number of input features.
        out_features: Number of classes.
        hidden_features: Hidden widths, or one width together with ``n_layers``.
        n_layers: Number of layers, if one width is given.
        activation: Function behind every hidden layer.
        layer_norm: Normalise rows in front of every layer but the last.
        feat_norm: None; the dataset normalises features.
        adj_norm_func: None; the layers normalise as far as they want to.
        dropout: Rate behind every hidden layer.
    """

    in_features: int
    out_features: int
    hidden_features: int | Sequence[int] = (64, 64)
    n_layers: int | None = None
    activation: InitVar[Activation] = field(default=relu, kw_only=True)  # may be a module, which the stack owns
    layer_norm: bool = field(default=False, kw_only=True)
    feat_norm: None = field(default=None, kw_only=True)
    adj_norm_func: None = field(default=None, kw_only=True)
    dropout: float = field(default=0.0, kw_only=True)
    model_type = "dgl"
    model_name = ""
    self_loops = True

    def __post_init__(self, activation: Activation) -> None:
        owner = f"grb.model.dgl.{type(self).__name__}"
        if self.feat_norm is not None:
            raise DataError(f"{owner} got feat_norm={self.feat_norm!r}, but features are normalised by the dataset")
        if self.adj_norm_func is not None:
            raise DataError(f"{owner} got an adj_norm_func, but DGL's layers normalise by themselves; give None")
        sizes = [self.in_features, *hidden_sizes(self.hidden_features, self.n_layers), self.out_features]
        stack = self.stack(sizes, activation, dgl_layers())
        super().__init__(stack, "dgl", "edge_weight", self_loops=self.self_loops)

    def stack(self, sizes: list[int], activation: Activation, layers: Any) -> Stack:
        """The layers, given the widths from features to classes, the activation and the module ``dgl.nn.pytorch``."""
        raise NotImplementedError(
            f"{type(self).__name__} needs stack(sizes, activation, layers), which makes its layers"
        )

    def __repr__(self) -> str:
        return f"grb.model.dgl.{type(self).__name__}({self.module})"


def gin_perceptron(before: int, after: int, batch_norm: bool) -> nn.Module:
    """Two linear maps with a relu between, and a batch norm behind."""
    norm = nn.BatchNorm1d(after) if batch_norm else nn.Identity()
    return nn.Sequential(nn.Linear(before, after), nn.ReLU(), nn.Linear(after, after), norm)
