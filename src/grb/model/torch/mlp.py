"""Multi-layer perceptron: no edges, so no structural attack can touch it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from grb.graph import CSR, Adjacency, dense, normalise
from grb.model.base import GraphModel, Rows, Stage, hidden_sizes
from grb.model.layers import Dropout, Linear, relu_dropout


class MLP(GraphModel):
    r"""Features alone: :math:`H_{l+1} = \mathrm{dropout}(\mathrm{relu}(\mathrm{LN}(H_l) W_l + b_l))`.

    A robust graph model has to beat it: under attack it keeps its clean accuracy.

    Args:
        in_features: Width of the features.
        out_features: Classes.
        hidden_features: Hidden widths, or one width together with ``n_layers``.
        n_layers: Linear layers, if one width is given.
        layer_norm: Normalise rows in front of every linear layer but the last.
        dropout: Rate behind every hidden layer.
        generator: Draws the weights; torch's global one if not given.
    """

    name = "mlp"

    def __init__(
        self,
        in_features: int,
        out_features: int,
        hidden_features: int | Sequence[int] = (64, 64),
        n_layers: int | None = None,
        layer_norm: bool = False,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        hidden = hidden_sizes(hidden_features, n_layers)
        self.params = {
            "in_features": in_features,
            "out_features": out_features,
            "hidden_features": hidden,
            "layer_norm": layer_norm,
            "dropout": dropout,
        }
        widths = [in_features, *hidden, out_features]
        self.linears = nn.ModuleList(Linear(a, b) for a, b in zip(widths, widths[1:], strict=False))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for width in widths[:-2]) if layer_norm else None
        self.dropout = Dropout(dropout)
        if generator is not None:
            self.reset_parameters(generator)

    def prepare(self, adj: Adjacency) -> CSR:
        return normalise.raw(adj)

    def forward(self, x: Tensor | CSR, op: object = None) -> Tensor:
        last = len(self.linears) - 1
        h: Any = x
        for place, linear in enumerate(self.linears):
            if self.norms is not None and place < last:
                h = self.norms[place](dense(h))
            h = linear(h)
            if place < last:
                h = relu_dropout(h, self.dropout)
        return h

    def stages(self) -> list[Stage]:
        def without_dropout(state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            assert not self.training, "stages are the forward pass in evaluation mode"
            return (self.forward(state[0]),)

        return [Rows(without_dropout)]
