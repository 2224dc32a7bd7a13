"""SGFormer: one layer of attention over all nodes beside a graph convolutional network."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from grb.errors import DataError
from grb.graph import CSR, Adjacency, normalise
from grb.model.attention import GlobalAttention
from grb.model.base import LayeredModel
from grb.model.layers import Linear, relu_dropout
from grb.model.torch.gcn import GCNConv


@dataclass(eq=False, repr=False)
class SGFormer(LayeredModel):
    r"""A graph transformer whose attention is linear in the number of nodes.

    .. math:: Z_0 = \mathrm{relu}(\mathrm{LN}(X W_0)), \quad
              Z_1 = \mathrm{LN}\big(\alpha\, \mathrm{attention}(Z_0) + (1 - \alpha) Z_0\big), \quad
              Y = \big(g\, \mathrm{GCN}(X, A) + (1 - g) Z_1\big) W

    with the attention of :func:`grb.model.attention.simple_attention`. Every node meets every other in it, injected ones too,
    wherever their edges lead; so there are no stages, ``+known`` is refused, and so are certificates about injected nodes.

    Differs from the published code: no batch norm in the convolutions, so that evaluation is that of one graph.

    Args:
        graph_weight: :math:`g`, the share of the convolutions.
        alpha: Share of the attention in its layer; the rest is the layer's input.

    References:
        Wu et al., *SGFormer: Simplifying and Empowering Transformers for Large-Graph Representations*, NeurIPS 2023.
    """

    graph_weight: float = 0.8
    alpha: float = 0.5
    name = "sgformer"
    joins_all_nodes = True
    version = 1

    def build(self) -> None:
        """Make both branches and the last linear map."""
        for key in ("graph_weight", "alpha"):
            if not 0 <= getattr(self, key) <= 1:
                raise DataError(f"{key} is {getattr(self, key)}, but a number from 0 to 1 is needed")
        width = self.hidden[-1]
        self.first = Linear(self.in_features, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention = GlobalAttention(width)
        inner = [self.in_features, *self.hidden]
        self.convs = nn.ModuleList(GCNConv(before, after) for before, after in pairwise(inner))
        self.last = Linear(width, self.out_features)

    def prepare(self, adj: Adjacency) -> CSR:
        """The adjacency with self-loops, scaled by the roots of both degrees."""
        return normalise.gcn(adj)

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        """Logits of every node, [n, classes]."""
        z = self.drop(torch.relu(self.norms[0](self.first(x))))
        z = self.drop(self.norms[1](self.alpha * self.attention(z) + (1 - self.alpha) * z))
        h: Tensor | CSR = x
        for conv in self.convs:
            h = relu_dropout(conv(h, op), self.drop)
        logits: Tensor = self.last(self.graph_weight * h + (1 - self.graph_weight) * z)  # type: ignore[operator]
        return logits
