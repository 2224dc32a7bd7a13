"""Topology-adaptive graph convolutional network."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from grb.errors import DataError
from grb.graph import CSR, Adjacency, Op, normalise
from grb.model.base import Propagate, Rows, Stage, State
from grb.model.layers import Linear
from grb.model.stack import ResidualStack


@dataclass(eq=False, repr=False, kw_only=True)
class TAGCN(ResidualStack):
    r"""Convolutions that see up to ``k`` hops at once.

    .. math:: H_{l+1} = \mathrm{dropout}(\mathrm{relu}(\sum_{j=0}^{k} \hat A^j\, \mathrm{LN}(H_l)\, W_{l,j} + b_l))

    with :math:`\hat A = \tilde D^{-1/2} (A + I) \tilde D^{-1/2}` as in GRB. (The TAGCN paper and PyG's ``TAGConv`` leave
    the self-loops out.) The sum is evaluated from the highest power inwards, so that only the narrow products travel.

    Args:
        k: Hops of one convolution.

    References:
        Du et al., *Topology Adaptive Graph Convolutional Networks*, 2017.
    """

    k: int = 2
    name = "tagcn"

    def make_conv(self, in_features: int, out_features: int, last: bool) -> nn.Module:
        """A convolution over up to ``k`` hops."""
        if self.k < 0:
            raise DataError(f"k is {self.k}, but at least 0 hops are needed")
        return TAGConv(in_features, out_features, self.k)

    def prepare(self, adj: Adjacency) -> CSR:
        """The adjacency with self-loops, scaled by the roots of both degrees."""
        return normalise.gcn(adj)


class TAGConv(nn.Module):
    """One convolution over 0..k hops; one weight of [(k + 1) in, out] and one bias."""

    def __init__(self, in_features: int, out_features: int, k: int) -> None:
        super().__init__()
        self.k = k
        self.linear = Linear((k + 1) * in_features, out_features)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights from ``generator``, or from torch's global one."""
        self.linear.reset_parameters(generator)

    def forward(self, x: Tensor | CSR, op: Op) -> Tensor:
        """New rows, [n, out]."""
        parts = self._parts(x)
        total = parts[0]
        for part in parts[1:]:
            total = op @ total + part
        return self.linear.shift(total)

    def _parts(self, x: Tensor | CSR) -> State:
        """``x W_j`` for every hop j, the farthest first."""
        weights = self.linear.weight.view(self.k + 1, -1, self.linear.weight.shape[1])
        return tuple(x @ weights[hop] for hop in range(self.k, -1, -1))

    def stages(self) -> list[Stage]:
        """The forward pass in evaluation mode as row-wise and propagating steps."""
        hop: list[Stage] = [Propagate(), Rows(lambda state: (state[0] + state[1], *state[2:]))]
        return [Rows(lambda state: self._parts(state[0])), *hop * self.k, Rows(lambda s: (self.linear.shift(s[0]),))]
