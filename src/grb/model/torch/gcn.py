"""Graph convolutional network."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from grb.graph import CSR, Adjacency, normalise
from grb.model.base import GraphModel, Propagate, Rows, Stage, hidden_sizes
from grb.model.layers import Dropout, GraphConv


class GCN(GraphModel):
    r"""Graph convolutional network with GRB's layer norm.

    .. math:: H_{l+1} = \mathrm{dropout}(\mathrm{relu}(\hat A\, \mathrm{LN}(H_l)\, W_l + b_l)), \qquad
              \hat A = \tilde D^{-1/2} (A + I) \tilde D^{-1/2}

    with one convolution more than hidden widths. The last one has neither norm, relu nor dropout and gives logits. With
    ``layer_norm`` the input and every hidden layer but the last is normalised, which gives the number of parameters
    in the paper's tables (its text, "after every layer except the last", would give 128 more on grb-cora).

    Args:
        in_features: Width of the features.
        out_features: Classes.
        hidden_features: Hidden widths, or one width together with ``n_layers``.
        n_layers: Convolutions, if one width is given.
        layer_norm: Normalise rows in front of every convolution but the last.
        dropout: Rate behind every hidden layer.
        residual: Add a hidden layer's input to its output where both have the same width.
        generator: Draws the weights; torch's global one if not given.

    References:
        Kipf and Welling, *Semi-Supervised Classification with Graph Convolutional Networks*, ICLR 2017.
        Zheng et al., *Graph Robustness Benchmark*, NeurIPS 2021 Datasets and Benchmarks, Tables 6 to 10.
    """

    name = "gcn"

    def __init__(
        self,
        in_features: int,
        out_features: int,
        hidden_features: int | Sequence[int] = (64, 64),
        n_layers: int | None = None,
        layer_norm: bool = False,
        dropout: float = 0.0,
        residual: bool = False,
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
            "residual": residual,
        }
        widths = [in_features, *hidden, out_features]
        self.convs = nn.ModuleList(GraphConv(a, b) for a, b in zip(widths, widths[1:], strict=False))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for width in widths[:-2]) if layer_norm else None
        self.dropout = Dropout(dropout)
        self.residual = residual
        if generator is not None:
            self.reset_parameters(generator)

    def prepare(self, adj: Adjacency) -> CSR:
        return normalise.gcn(adj)

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        last = len(self.convs) - 1
        for place, conv in enumerate(self.convs):
            before = x
            if self.norms is not None and place < last:
                x = self.norms[place](x)
            x = conv(x, op)
            if place < last:
                x = self._activated(x, before)
        return x

    def _activated(self, x: Tensor, before: Tensor | CSR) -> Tensor:
        x = torch.relu(x)
        if self.residual and isinstance(before, Tensor) and before.shape == x.shape:
            x = x + before
        return self.dropout(x)

    def stages(self) -> list[Stage] | None:
        if self.residual:
            return None
        stages: list[Stage] = []
        last = len(self.convs) - 1
        for place, conv in enumerate(self.convs):
            norm = self.norms[place] if self.norms is not None and place < last else None
            stages += conv_stages(conv, norm, activate=place < last)
        return stages


def conv_stages(conv: nn.Module, norm: nn.Module | None, *, activate: bool) -> list[Stage]:
    """Norm, product with the weight, propagation, bias and relu of one convolution."""
    assert isinstance(conv, GraphConv)
    before = Rows(lambda state: (conv.transform(state[0] if norm is None else norm(state[0])),))
    if activate:
        return [before, Propagate(), Rows(lambda state: (torch.relu(conv.add_bias(state[0])),))]
    return [before, Propagate(), Rows(lambda state: (conv.add_bias(state[0]),))]
