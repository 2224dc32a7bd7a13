"""ChebNet's convolution for profiling."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from grb.errors import DataError
from grb.graph import Adjacency, Op, normalise
from grb.model.profiling.gcn import Glorot
from grb.model.profiling.network import Conv


class ChebConv(Conv):
    r"""Chebyshev polynomials of the Laplacian, :math:`\sum_{k<K} T_k(\hat L) H W_k` with
    :math:`\hat L = -D^{-1/2} A D^{-1/2}`, which is :math:`2 L / \lambda_{\max} - I` for :math:`\lambda_{\max} = 2`.

    Args:
        order: :math:`K`; 2 in the paper.

    References:
        Defferrard et al., *Convolutional Neural Networks on Graphs with Fast Localized Spectral Filtering*, NeurIPS 2016.
    """

    def __init__(self, width: int, bias: bool, order: int = 2, **options: Any) -> None:
        super().__init__(width, bias, **options)
        if order < 1:
            raise DataError(f"the order of ChebNet is {order}, but must be at least 1")
        self.linears = nn.ModuleList(Glorot(width, width, bias and position == 0) for position in range(order))

    @staticmethod
    def prepare(adj: Adjacency) -> Op:
        """The normalised adjacency without self-loops."""
        return normalise.operator(adj, left=-0.5, right=-0.5, self_loops=False)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights from ``generator``, or from torch's global one."""
        for linear in self.linears:
            linear.reset_parameters(generator)  # type: ignore[operator]

    def forward(self, h: Tensor, op: Op, first: Tensor) -> Tensor:
        """New rows, [n, out]."""
        before, now = h, h
        out: Tensor = self.linears[0](h)
        for position, linear in enumerate(self.linears[1:], 1):
            now, before = (-(op @ h) if position == 1 else -2 * (op @ now) - before), now
            out = out + linear(now)
        return out
