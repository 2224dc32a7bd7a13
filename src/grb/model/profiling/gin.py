"""GIN's convolution for profiling."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from grb.graph import Adjacency, Op, normalise
from grb.model.profiling.network import Conv, Dense


class GINConv(Conv):
    r"""A perceptron of the sum over a node and its neighbours, :math:`\mathrm{relu}((A + I) H W_1 + b_1) W_2 + b_2`.

    Both maps keep their bias, also in front of a batch norm, as the published models do.

    References:
        Xu et al., *How Powerful are Graph Neural Networks?*, ICLR 2019.
    """

    def __init__(self, width: int, bias: bool, **options: Any) -> None:
        super().__init__(width, bias, **options)
        self.inner, self.outer = Dense(width, width), Dense(width, width)

    @staticmethod
    def prepare(adj: Adjacency) -> Op:
        """The adjacency without self-loops."""
        return normalise.operator(adj, left=0.0, right=0.0, self_loops=False)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights from ``generator``, or from torch's global one."""
        self.inner.reset_parameters(generator)
        self.outer.reset_parameters(generator)

    def forward(self, h: Tensor, op: Op, first: Tensor) -> Tensor:
        """New rows, [n, out]."""
        out: Tensor = self.outer(torch.relu(self.inner(h + op @ h)))
        return out
