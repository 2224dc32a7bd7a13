"""A stack of convolutions: what GCN, TAGCN, GraphSAGE and GAT have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from grb.graph import CSR, dense
from grb.model.base import LayeredModel, Mix, Rows, Stage, State
from grb.model.layers import layer_norms, relu_dropout


class Conv(Protocol):
    """One convolution: rows and edges in, rows out; its stages turn the state (h,) into (h',)."""

    def __call__(self, x: Any, op: Any) -> Tensor:
        """New rows, [n, out]."""

    def stages(self) -> list[Stage]:
        """The forward pass in evaluation mode as row-wise and propagating steps."""


@dataclass(eq=False, repr=False)
class ConvStack(LayeredModel):
    r"""Convolutions with layer norm in front, activation, residual and dropout behind.

    .. math:: H_{l+1} = \mathrm{dropout}(\sigma(\mathrm{conv}_l(\mathrm{LN}_l(H_l))) \; [+ H_l])

    The last convolution has neither norm, activation nor dropout and gives logits. With ``layer_norm`` the input and
    every hidden layer but the last is normalised, which gives the number of parameters in the GRB paper's tables (its
    text, "after every layer except the last", would give 128 more for GCN on grb-cora).

    A subclass gives ``make_conv`` and ``prepare``.
    """

    def activation(self, h: Tensor) -> Tensor:
        """Nonlinearity behind every hidden convolution."""
        return torch.relu(h)

    def make_conv(self, in_features: int, out_features: int, last: bool) -> nn.Module:
        """One convolution; ``last`` if it gives the logits."""
        raise NotImplementedError(f"{type(self).__name__} needs make_conv(in_features, out_features, last)")

    def output_width(self, hidden: int) -> int:
        """Width that a hidden convolution puts out."""
        return hidden

    def build(self) -> None:
        """Make the convolutions alone."""
        self.stack(layer_norm=False, residual=False)

    def stack(self, *, layer_norm: bool, residual: bool) -> None:
        """Make the convolutions and, as wanted, layer norms and residual connections."""
        inputs = [self.in_features, *map(self.output_width, self.hidden)]
        last = len(self.hidden)
        self.convs = nn.ModuleList(
            self.make_conv(before, after, layer == last)
            for layer, (before, after) in enumerate(zip(inputs, self.widths[1:], strict=True))
        )
        self.norms = layer_norms(inputs[:-1], layer_norm)
        self._residual = [residual and before == after for before, after in pairwise(inputs)] + [False]

    def forward(self, x: Tensor | CSR, op: Any) -> Tensor:
        """Logits of every node, [n, classes]."""
        h: Any = x
        last = len(self.convs) - 1
        for position, conv in enumerate(self.convs):
            before = h
            if self.norms is not None and position < last:
                h = self.norms[position](dense(h))
            h = conv(h, op)
            if position < last:
                h = self._activated(h, before if self._residual[position] else None)
        return h

    def _activated(self, h: Tensor, before: Tensor | CSR | None) -> Tensor:
        if before is None and type(self).activation is ConvStack.activation:
            return relu_dropout(h, self.drop)
        h = self.activation(h)
        return self.drop(h if before is None else h + dense(before))

    def stages(self) -> list[Stage] | None:
        """The forward pass in evaluation mode as row-wise and propagating steps."""
        stages: list[Stage] = []
        last = len(self.convs) - 1
        for position, conv in enumerate(self.convs):
            layer: list[Stage] = []
            if self.norms is not None and position < last:
                layer.append(_rows(self.norms[position]))
            layer += cast(Conv, conv).stages()
            if position < last:
                layer.append(_rows(self.activation))
            stages += _with_residual(layer) if self._residual[position] else layer
        return stages


@dataclass(eq=False, repr=False, kw_only=True)
class ResidualStack(ConvStack):
    """Convolutions with optional layer norms and residual connections.

    Args:
        layer_norm: Normalise rows in front of every convolution but the last.
        residual: Add a hidden layer's input to its output where both have the same width.
    """

    layer_norm: bool = False
    residual: bool = False

    def build(self) -> None:
        """Make convolutions, norms and residual connections."""
        self.stack(layer_norm=self.layer_norm, residual=self.residual)


def _rows(function: Callable[[Tensor], Tensor]) -> Rows:
    return Rows(lambda state: (function(state[0]), *state[1:]))


def _with_residual(layer: list[Stage]) -> list[Stage]:
    """The layer with its input carried along at the end of the state and added to its output."""
    return [
        Rows(lambda state: (state[0], state[0])),
        *(_carried(stage) for stage in layer),
        Rows(lambda state: (state[0] + state[1],)),
    ]


def _carried(stage: Stage) -> Stage:
    if isinstance(stage, Rows):
        rows = stage.apply
        return Rows(lambda state: (*rows(state[:-1]), state[-1]))
    if isinstance(stage, Mix):
        mix = stage.apply

        def apply(op: CSR, sources: State, targets: State) -> State:
            return (*mix(op, sources[:-1], targets[:-1]), targets[-1])

        return Mix(apply, stage.op)
    return stage
