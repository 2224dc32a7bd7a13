"""A stack of convolutions: what GCN, TAGCN, GraphSAGE and GAT have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from grb.graph import CSR, dense
from grb.model.base import GraphModel, Mix, Rows, Stage, State, hidden_sizes
from grb.model.layers import Dropout, relu_dropout


class Conv(Protocol):
    """One convolution: rows and edges in, rows out; its stages turn the state (h,) into (h',)."""

    def __call__(self, x: Any, op: Any) -> Tensor: ...
    def stages(self) -> list[Stage]: ...


class ConvStack(GraphModel):
    r"""Convolutions with layer norm in front, activation, residual and dropout behind.

    .. math:: H_{l+1} = \mathrm{dropout}(\sigma(\mathrm{conv}_l(\mathrm{LN}_l(H_l))) \; [+ H_l])

    The last convolution has neither norm, activation nor dropout and gives logits. With ``layer_norm`` the input and
    every hidden layer but the last is normalised, which gives the number of parameters in the GRB paper's tables (its
    text, "after every layer except the last", would give 128 more for GCN on grb-cora).

    A subclass names ``make_conv`` in its constructor and gives ``prepare``.
    """

    activation: Callable[[Tensor], Tensor] = staticmethod(torch.relu)

    def __init__(
        self,
        in_features: int,
        out_features: int,
        hidden_features: int | Sequence[int],
        n_layers: int | None,
        *,
        layer_norm: bool,
        dropout: float,
        residual: bool,
        make_conv: Callable[[int, int, bool], nn.Module],
        width: Callable[[int], int] = lambda hidden: hidden,
        **params: Any,
    ) -> None:
        """``make_conv(in, out, is_last)`` makes a layer; ``width(hidden)`` is what a hidden one really puts out."""
        super().__init__()
        hidden = hidden_sizes(hidden_features, n_layers)
        self.params = {
            "in_features": in_features,
            "out_features": out_features,
            "hidden_features": hidden,
            "layer_norm": layer_norm,
            "dropout": dropout,
            "residual": residual,
            **params,
        }
        inputs = [in_features, *(width(size) for size in hidden)]
        outputs = [*hidden, out_features]
        self.convs = nn.ModuleList(
            make_conv(a, b, place == len(hidden)) for place, (a, b) in enumerate(zip(inputs, outputs, strict=True))
        )
        self.norms = nn.ModuleList(nn.LayerNorm(size) for size in inputs[:-1]) if layer_norm else None
        self.dropout = Dropout(dropout)
        self._residual = [residual and a == b for a, b in zip(inputs, inputs[1:], strict=False)] + [False]

    def forward(self, x: Tensor | CSR, op: Any) -> Tensor:
        h: Any = x
        last = len(self.convs) - 1
        for place, conv in enumerate(self.convs):
            before = h
            if self.norms is not None and place < last:
                h = self.norms[place](dense(h))
            h = conv(h, op)
            if place < last:
                h = self._activated(h, before if self._residual[place] else None)
        return h

    def _activated(self, h: Tensor, before: Tensor | CSR | None) -> Tensor:
        if before is None and self.activation is torch.relu:
            return relu_dropout(h, self.dropout)
        h = self.activation(h)
        return self.dropout(h if before is None else h + dense(before))

    def stages(self) -> list[Stage] | None:
        stages: list[Stage] = []
        last = len(self.convs) - 1
        for place, conv in enumerate(self.convs):
            layer: list[Stage] = []
            if self.norms is not None and place < last:
                layer.append(_rows(self.norms[place]))
            layer += cast(Conv, conv).stages()
            if place < last:
                layer.append(_rows(self.activation))
            stages += _with_residual(layer) if self._residual[place] else layer
        return stages


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
