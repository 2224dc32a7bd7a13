"""Graph convolutional network."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from grb.graph import CSR, Adjacency, Op, normalise
from grb.model.base import Propagate, Rows, Stage
from grb.model.layers import Linear
from grb.model.stack import ResidualStack


@dataclass(eq=False, repr=False)
class GCN(ResidualStack):
    r"""Graph convolutional network.

    .. math:: H_{l+1} = \mathrm{dropout}(\mathrm{relu}(\hat A\, \mathrm{LN}(H_l)\, W_l + b_l)), \qquad
              \hat A = \tilde D^{-1/2} (A + I) \tilde D^{-1/2}

    with one convolution more than hidden widths; see :class:`grb.model.stack.ConvStack` for norms and residuals.

    References:
        Kipf and Welling, *Semi-Supervised Classification with Graph Convolutional Networks*, ICLR 2017.
        Zheng et al., *Graph Robustness Benchmark*, NeurIPS 2021 Datasets and Benchmarks, Tables 6 to 10.
    """

    name = "gcn"

    def make_conv(self, in_features: int, out_features: int, last: bool) -> nn.Module:
        """A graph convolution."""
        return GCNConv(in_features, out_features)

    def prepare(self, adj: Adjacency) -> CSR:
        """The adjacency with self-loops, scaled by the roots of both degrees."""
        return normalise.gcn(adj)


class GCNConv(nn.Module):
    r"""One convolution :math:`\hat A X W + b`, multiplied in the cheaper order."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = Linear(in_features, out_features)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights from ``generator``, or from torch's global one."""
        self.linear.reset_parameters(generator)

    def forward(self, x: Tensor | CSR, op: Op) -> Tensor:
        """New rows, [n, out]."""
        rows, columns = self.linear.weight.shape
        if isinstance(x, Tensor):
            known = op.known_product(x) if isinstance(op, CSR) else None
            if known is not None or rows <= columns:
                return self.linear(op @ x if known is None else known)
        return self.linear.shift(op @ self.linear.transform(x))

    def stages(self) -> list[Stage]:
        """The forward pass in evaluation mode as row-wise and propagating steps."""
        linear = self.linear
        return [
            Rows(lambda state: (linear.transform(state[0]),)),
            Propagate(),
            Rows(lambda state: (linear.shift(state[0]),)),
        ]
