"""GCNII's convolution for profiling."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from grb.errors import DataError
from grb.graph import Op
from grb.model.profiling.gcn import GCNConv


class GCNIIConv(GCNConv):
    r"""GCN with the first layer's rows mixed in: :math:`((1 - \alpha) \hat A H + \alpha H_0) W`.

    The published models leave out the identity map whose share falls with depth, and there is no bias.

    Args:
        alpha: Fraction of the first layer's rows; 0.2 in the paper.

    References:
        Chen et al., *Simple and Deep Graph Convolutional Networks*, ICML 2020.
    """

    def __init__(self, width: int, bias: bool, alpha: float = 0.2, **options: Any) -> None:
        super().__init__(width, bias=False, **options)
        if not 0 <= alpha <= 1:
            raise DataError(f"alpha of GCNII is {alpha}, but must be from 0 to 1")
        self.alpha = alpha

    def forward(self, h: Tensor, op: Op, first: Tensor) -> Tensor:
        """New rows, [n, out]."""
        out: Tensor = self.linear(torch.lerp(op @ h, first, self.alpha))
        return out
