"""GCNII's convolution for profiling."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from grb.errors import DataError
from grb.graph import Adjacency, Op, normalise
from grb.model.profiling.gcn import Glorot
from grb.model.profiling.network import Conv


class GCNIIConv(Conv):
    r"""GCN with the first layer's rows mixed in: :math:`((1 - \alpha) \hat A H + \alpha H_0) W`.

    The published models leave out the identity map whose share falls with depth, and there is no bias.

    Args:
        alpha: Share of the first layer's rows; 0.2 in the paper.

    References:
        Chen et al., *Simple and Deep Graph Convolutional Networks*, ICML 2020.
    """

    def __init__(self, width: int, bias: bool, alpha: float = 0.2, **options: Any) -> None:
        super().__init__(width, bias, **options)
        if not 0 <= alpha <= 1:
            raise DataError(f"alpha of GCNII is {alpha}, but must be from 0 to 1")
        self.alpha = alpha
        self.linear = Glorot(width, width, bias=False)

    @staticmethod
    def prepare(adj: Adjacency) -> Op:
        return normalise.operator(adj, left=-0.5, right=-0.5)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        self.linear.reset_parameters(generator)

    def forward(self, h: Tensor, op: Op, first: Tensor) -> Tensor:
        out: Tensor = self.linear(torch.lerp(op @ h, first, self.alpha))
        return out
