"""GIN's convolution with edge features, for profiling."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from grb.graph import Adjacency, CompleteAdjacency, normalise
from grb.graph.operators import Complete, FeaturedEdges
from grb.model.profiling.gin import GINConv
from grb.model.profiling.network import Dense


class GINEConv(GINConv):
    r"""GIN whose messages have the features of the edge in them:

    .. math:: \mathrm{MLP}\Big(h_i + \sum_j \mathrm{relu}(h_j + W_e e_{ij} + b_e)\Big).

    Where edges have no features (and under FullyConn, whose edges never have any) the message is
    :math:`\mathrm{relu}(h_j)`. Weights of edges are not used.

    Args:
        edge_features: Number of features per edge; 0 where edges have none.

    References:
        Hu et al., *Strategies for Pre-training Graph Neural Networks*, ICLR 2020.
    """

    takes_edge_features = True

    def __init__(self, width: int, bias: bool, edge_features: int = 0, **options: Any) -> None:
        super().__init__(width, bias, **options)
        self.edge = Dense(edge_features, width) if edge_features else None

    @staticmethod
    def prepare(adj: Adjacency) -> Any:
        """Edges with their features, or sums per graph where every edge is there."""
        if isinstance(adj, CompleteAdjacency):
            return normalise.operator(adj, left=0.0, right=0.0, self_loops=False)
        return FeaturedEdges(adj.pattern, adj.features)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights from ``generator``, or from torch's global one."""
        super().reset_parameters(generator)
        if self.edge is not None:
            self.edge.reset_parameters(generator)

    def forward(self, h: Tensor, op: Any, first: Tensor) -> Tensor:
        """New rows, [n, out]."""
        if isinstance(op, Complete):
            received = op @ torch.relu(h)
        else:
            sent = h[op.pattern.indices.long()]
            if self.edge is not None and op.features is not None:
                sent = sent + self.edge(op.features)
            received = torch.zeros_like(h).index_add(0, op.pattern.row_ids.long(), torch.relu(sent))
        out: Tensor = self.outer(torch.relu(self.inner(h + received)))
        return out
