"""GraphSAGE: sample and aggregate, here on the whole graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from grb.errors import DataError
from grb.graph import CSR, Adjacency, Op, dense, normalise
from grb.model.base import Propagate, Rows, Stage, State
from grb.model.layers import Linear
from grb.model.stack import ResidualStack

# the root of zero has an infinite slope
TINY = 1e-12


@dataclass(eq=False, repr=False, kw_only=True)
class GraphSAGE(ResidualStack):
    r"""GraphSAGE with GRB's pooling, or with the mean of the neighbours.

    ``pool``: with rows scaled to length one, :math:`H' = \mathrm{relu}(H W_p + b_p)`, and :math:`P = \tilde D^{-1} \tilde A`,

    .. math:: \mathrm{conv}(H) = H' W_s + b_s + \sqrt{P\, (H' \circ H')}\; W_n + b_n,

    a soft maximum over the neighbourhood (quadratic mean). ``mean``: the classical
    :math:`H W_s + D^{-1} A H\, W_n + b`, equal to PyG's ``SAGEConv``.

    Args:
        aggregate: ``pool`` or ``mean``.

    References:
        Hamilton et al., *Inductive Representation Learning on Large Graphs*, NeurIPS 2017.
    """

    aggregate: Literal["pool", "mean"] = "pool"
    name = "graphsage"

    def make_conv(self, in_features: int, out_features: int, last: bool) -> nn.Module:
        """A convolution of the chosen aggregation."""
        convs: dict[str, type[nn.Module]] = {"pool": PoolConv, "mean": MeanConv}
        if self.aggregate not in convs:
            raise DataError(f"aggregate is {self.aggregate!r}, but 'pool' or 'mean' is needed")
        return convs[self.aggregate](in_features, out_features)

    def prepare(self, adj: Adjacency) -> CSR:
        """The adjacency scaled by degrees, with self-loops for ``pool``."""
        if self.aggregate == "pool":
            return normalise.row(adj)
        return normalise.scaled(adj, left=-1.0, right=0.0, self_loops=False)


class PoolConv(nn.Module):
    """The pooled convolution; both outer linear maps act on pooled rows of the input's width."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.pool = Linear(in_features, in_features)
        self.own = Linear(in_features, out_features)
        self.neighbours = Linear(in_features, out_features)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights from ``generator``, or from torch's global one."""
        for linear in (self.pool, self.own, self.neighbours):
            linear.reset_parameters(generator)

    def forward(self, x: Tensor | CSR, op: Op) -> Tensor:
        """New rows, [n, out]."""
        squares, pooled = self._pooled((dense(x),))
        return self._joined((op @ squares, pooled))[0]

    def _pooled(self, state: State) -> State:
        pooled = torch.relu(self.pool(functional.normalize(state[0], dim=1)))
        return pooled * pooled, pooled

    def _joined(self, state: State) -> State:
        squares, pooled = state
        return (self.own(pooled) + self.neighbours(torch.sqrt(squares + TINY)),)

    def stages(self) -> list[Stage]:
        """The forward pass in evaluation mode as row-wise and propagating steps."""
        return [Rows(self._pooled), Propagate(), Rows(self._joined)]


class MeanConv(nn.Module):
    """A node's own row and the mean of its neighbours' rows, each with a weight."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.own = Linear(in_features, out_features)
        self.neighbours = Linear(in_features, out_features, bias=False)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights from ``generator``, or from torch's global one."""
        self.own.reset_parameters(generator)
        self.neighbours.reset_parameters(generator)

    def forward(self, x: Tensor | CSR, op: Op) -> Tensor:
        """New rows, [n, out]."""
        return self.own(x) + op @ self.neighbours(x)

    def stages(self) -> list[Stage]:
        """The forward pass in evaluation mode as row-wise and propagating steps."""
        return [
            Rows(lambda state: (self.neighbours(state[0]), self.own(state[0]))),
            Propagate(),
            Rows(lambda state: (state[0] + state[1],)),
        ]
