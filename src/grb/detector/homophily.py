"""Nodes that are unlike their neighbours, and edges between unlike nodes."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from grb.detector.base import Detector, degrees_of
from grb.errors import DataError
from grb.graph import Graph, dense, sampled_product
from grb.graph.normalise import scaled


class Homophily(Detector):
    r"""Cosine of every node with what its neighbours say, and of the two ends of every edge.

    .. math:: h_u = \cos\Big(x_u, \sum_{v \in N(u)} \frac{x_v}{\sqrt{d_u d_v}}\Big), \qquad h_{uv} = \cos(x_u, x_v)

    Low values are suspicious; HAO is made to avoid them. ``side="both"`` also suspects nodes that resemble their neighbours
    more than any node of the training graph does.

    Args:
        in_features: Number of features.
        out_features: Number of classes.
        side: ``low``, ``high`` or ``both``: which values are suspicious.

    References:
        Chen et al., *Understanding and Improving Graph Injection Attack by Promoting Unnoticeability*, ICLR 2022.
    """

    name = "homophily"

    def __init__(self, in_features: int, out_features: int, *, side: str = "low") -> None:
        super().__init__(in_features, out_features, side=side)
        if side not in ("low", "high", "both"):
            raise DataError(f"side is {side!r}, but low, high or both is needed")
        self.side = side  # type: ignore[assignment]

    def node_values(self, graph: Graph) -> Tensor:
        """Cosine of every node with the sum of its neighbours, [n]; NaN without neighbours."""
        return node_homophily(graph)

    def edge_values(self, graph: Graph) -> Tensor:
        """Cosine of the two ends, [entries]."""
        unit = functional.normalize(dense(graph.x), dim=1, eps=1e-8)
        return sampled_product(graph.adj.pattern, unit, unit)


def node_homophily(graph: Graph) -> Tensor:
    """Cosine of every node with the degree-normalised sum of its neighbours, [n]; NaN for nodes without any."""
    x = dense(graph.x).float()
    around = scaled(graph.adj, left=-0.5, right=-0.5, self_loops=False) @ x
    alike = functional.cosine_similarity(x, around, dim=1, eps=1e-8)
    return torch.where(degrees_of(graph) > 0, alike, torch.nan)
