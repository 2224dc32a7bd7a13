"""GPS: graph convolutions and attention over all nodes, side by side in every layer."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from grb.graph import CSR, Adjacency, Op, normalise
from grb.model.attention import GlobalAttention
from grb.model.base import LayeredModel
from grb.model.layers import Dropout, Linear, relu_dropout
from grb.model.torch.gcn import GCNConv


@dataclass(eq=False, repr=False)
class GPS(LayeredModel):
    r"""The general, powerful, scalable graph transformer.

    .. math:: H' = \mathrm{LN}\big(H + \mathrm{conv}(H, A)\big) + \mathrm{LN}\big(H + \mathrm{attention}(H)\big), \qquad
              H_{l+1} = \mathrm{LN}\big(H' + \mathrm{relu}(H' W_1) W_2\big)

    with a graph convolution and the attention of :func:`grb.model.attention.kernel_attention`, linear in the number of nodes.
    Every node meets every other in each layer, injected ones too; so there are no stages, ``+known`` is refused, and so are
    certificates about injected nodes.

    Differs from the paper: layer norm instead of batch norm, so that evaluation is that of one graph; no positional encodings.
    Where the width changes a linear map leads to the next layer.

    Args:
        heads: Heads of the attention; a divisor of every hidden width.

    References:
        Rampášek et al., *Recipe for a General, Powerful, Scalable Graph Transformer*, NeurIPS 2022.
    """

    heads: int = 1
    name = "gps"
    joins_all_nodes = True
    version = 1

    def build(self) -> None:
        """Make the layers, the maps into them and the last linear map."""
        inner = [self.in_features, *self.hidden]
        self.maps = nn.ModuleDict(
            {
                str(layer): Linear(before, after)
                for layer, (before, after) in enumerate(pairwise(inner))
                if not layer or before != after
            }
        )
        self.layers = nn.ModuleList(GPSLayer(width, self.heads) for width in self.hidden)
        self.last = Linear(self.hidden[-1], self.out_features)

    def prepare(self, adj: Adjacency) -> CSR:
        """The adjacency with self-loops, scaled by the roots of both degrees."""
        return normalise.gcn(adj)

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        """Logits of every node, [n, classes]."""
        h: Tensor | CSR = x
        for number, layer in enumerate(self.layers):
            if str(number) in self.maps:
                h = self.maps[str(number)](h)
            h = layer(h, op, self.drop)
        logits: Tensor = self.last(h)
        return logits


class GPSLayer(nn.Module):
    """One layer: a convolution and attention over all nodes side by side, then a perceptron of every row.

    Args:
        width: Width of the rows.
        heads: Heads of the attention.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.conv = GCNConv(width, width)
        self.attention = GlobalAttention(width, heads)
        self.wide, self.narrow = Linear(width, 2 * width), Linear(2 * width, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights from ``generator``, or from torch's global one."""
        for part in (self.conv, self.attention, self.wide, self.narrow):
            part.reset_parameters(generator)
        for norm in self.norms:
            norm.reset_parameters()  # type: ignore[operator]

    def forward(self, h: Tensor, op: Op, drop: Dropout) -> Tensor:
        """New rows, [n, width]."""
        local = self.norms[0](h + drop(self.conv(h, op)))
        everywhere = self.norms[1](h + drop(self.attention(h)))
        both = local + everywhere
        rows: Tensor = self.norms[2](both + drop(self.narrow(relu_dropout(self.wide(both), drop))))
        return rows
