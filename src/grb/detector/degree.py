"""Nodes with an unusual number of edges."""

from __future__ import annotations

import torch
from torch import Tensor

from grb.detector.base import Detector, degrees_of, of_ends
from grb.graph import Graph


class Degree(Detector):
    r"""Unusual degrees: :math:`\log(1 + d_u)` of nodes, :math:`\log (1 + d_u)(1 + d_v)` of edges.

    In the inductive scenario known nodes have lost their edges to test nodes, so that the degrees of the test graph are
    higher than those a defender has seen; this detector pays for it in false alarms.

    Args:
        in_features: Number of features.
        out_features: Number of classes.
    """

    name = "degree"

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__(in_features, out_features)

    def node_values(self, graph: Graph) -> Tensor:
        """Logarithm of the degree plus one, [n]."""
        return torch.log1p(degrees_of(graph))

    def edge_values(self, graph: Graph) -> Tensor:
        """Sum of the values of both ends, [entries]."""
        one, other = of_ends(graph, self.node_values(graph))
        return one + other
