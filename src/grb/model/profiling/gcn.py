"""GCN's convolution for profiling."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from grb.graph import Adjacency, Op, normalise
from grb.model.layers import Linear
from grb.model.profiling.network import Conv


class Glorot(Linear):
    """A linear map with uniform Glorot weights and zero bias."""

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights from ``generator``, or from torch's global one."""
        nn.init.xavier_uniform_(self.weight, generator=generator)
        if self.bias is not None:
            nn.init.zeros_(self.bias)


class GCNConv(Conv):
    r"""Kipf and Welling's :math:`\tilde D^{-1/2} \tilde A \tilde D^{-1/2} H W`.

    References:
        Kipf and Welling, *Semi-Supervised Classification with Graph Convolutional Networks*, ICLR 2017.
    """

    def __init__(self, width: int, bias: bool, **options: Any) -> None:
        super().__init__(width, bias, **options)
        self.linear = Glorot(width, width, bias)

    @staticmethod
    def prepare(adj: Adjacency) -> Op:
        """The adjacency with self-loops, scaled by the roots of both degrees."""
        return normalise.operator(adj, left=-0.5, right=-0.5)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights from ``generator``, or from torch's global one."""
        self.linear.reset_parameters(generator)

    def forward(self, h: Tensor, op: Op, first: Tensor) -> Tensor:
        """New rows, [n, out]."""
        out: Tensor = self.linear(op @ h)
        return out
