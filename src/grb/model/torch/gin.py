"""Graph isomorphism network."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from grb.graph import CSR, Adjacency, Op, dense, normalise
from grb.model.base import LayeredModel, Propagate, Rows, Stage, State
from grb.model.layers import Linear, layer_norms, linears, relu_dropout


@dataclass(eq=False, repr=False, kw_only=True)
class GIN(LayeredModel):
    r"""Sums over neighbours with a perceptron behind each, and a perceptron as head.

    .. math:: H_{l+1} = \mathrm{dropout}(\mathrm{relu}(\mathrm{BN}(\mathrm{MLP}_l((1 + \epsilon_l)\, H_l + A H_l)))), \qquad
              \text{logits} = \mathrm{MLP}(H_k)

    with two linear maps in every perceptron and learnt :math:`\epsilon_l`. There are as many convolutions as hidden widths.

    Args:
        n_layers: One more than convolutions, if one width is given.
        layer_norm: Normalise rows in front of every convolution.
        dropout: Rate behind every convolution and inside the head.

    References:
        Xu et al., *How Powerful are Graph Neural Networks?*, ICLR 2019.
    """

    layer_norm: bool = False
    name = "gin"

    def build(self) -> None:
        """Make the convolutions and the head."""
        *inputs, last = self.widths[:-1]
        self.convs = nn.ModuleList(GINConv(before, after) for before, after in pairwise(self.widths[:-1]))
        self.norms = layer_norms(inputs, self.layer_norm)
        self.head = linears([last, last, self.out_features])

    def prepare(self, adj: Adjacency) -> CSR:
        """The adjacency as it is."""
        return normalise.raw(adj)

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        """Logits of every node, [n, classes]."""
        h = x
        for position, conv in enumerate(self.convs):
            if self.norms is not None:
                h = self.norms[position](dense(h))
            h = self.drop(conv(h, op))
        return self._headed((h,))[0]  # type: ignore[arg-type]

    def _headed(self, state: State) -> State:
        return (self.head[1](relu_dropout(self.head[0](state[0]), self.drop)),)

    def stages(self) -> list[Stage]:
        """The forward pass in evaluation mode as row-wise and propagating steps."""
        stages: list[Stage] = []
        for position, conv in enumerate(self.convs):
            norm = None if self.norms is None else self.norms[position]
            if norm is not None:
                stages.append(_normalised(norm))
            assert isinstance(conv, GINConv)
            stages += conv.stages()
        return [*stages, Rows(self._headed)]


def _normalised(norm: nn.Module) -> Rows:
    return Rows(lambda state: (norm(state[0]),))


class GINConv(nn.Module):
    """One convolution with its perceptron; the first linear map is applied before the sum, which is narrower."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.eps = nn.Parameter(torch.zeros(1))
        self.first = Linear(in_features, out_features)
        self.second = Linear(out_features, out_features)
        self.batch_norm = nn.BatchNorm1d(out_features)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights from ``generator``, or from torch's global one."""
        nn.init.zeros_(self.eps)
        self.first.reset_parameters(generator)
        self.second.reset_parameters(generator)
        self.batch_norm.reset_parameters()

    def forward(self, x: Tensor | CSR, op: Op) -> Tensor:
        """New rows, [n, out]."""
        own = self.first.transform(x)
        return self._after((op @ own, own))[0]

    def _after(self, state: State) -> State:
        summed, own = state
        h = torch.relu(self.first.shift(summed + (1 + self.eps) * own))
        return (torch.relu(self.batch_norm(self.second(h))),)

    def _before(self, state: State) -> State:
        own = self.first.transform(state[0])
        return own, own

    def stages(self) -> list[Stage]:
        """The forward pass in evaluation mode as row-wise and propagating steps."""
        return [Rows(self._before), Propagate(), Rows(self._after)]
