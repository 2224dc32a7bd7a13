"""Personalised propagation of neural predictions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from grb.errors import DataError
from grb.graph import CSR, Adjacency, normalise
from grb.model.base import Propagate, Rows, Stage, State
from grb.model.decoupled import DecoupledModel


@dataclass(eq=False, repr=False, kw_only=True)
class APPNP(DecoupledModel):
    r"""A perceptron whose predictions travel ``k`` steps and keep returning to where they started.

    .. math:: Z_0 = \mathrm{MLP}(X), \qquad Z_{i+1} = (1 - \alpha)\, \hat A Z_i + \alpha Z_0, \qquad \text{logits} = Z_k

    Differs from THUDM/grb, which returns to the current instead of the initial prediction and applies relu to logits.

    Args:
        alpha: Fraction of the initial prediction in every step; GRB uses 0.01, the APPNP paper 0.1.

    References:
        Gasteiger et al., *Predict then Propagate: Graph Neural Networks meet Personalized PageRank*, ICLR 2019.
    """

    alpha: float = 0.01
    dropout: float = 0.0
    name = "appnp"

    def build(self) -> None:
        """Make the perceptron."""
        if not 0 <= self.alpha <= 1 or self.k < 0:
            raise DataError(f"alpha is {self.alpha} and k is {self.k}, but alpha in [0, 1] and k >= 0 are needed")
        super().build()

    def prepare(self, adj: Adjacency) -> CSR:
        """The adjacency with self-loops, scaled by the roots of both degrees."""
        return normalise.gcn(adj)

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        """Logits of every node, [n, classes]."""
        state = self._predicted((x,))  # type: ignore[arg-type]
        for _ in range(self.k):
            state = self._returned((op @ state[0], state[1]))
        return state[0]

    def _predicted(self, state: State) -> State:
        h = self.predictions(state[0])
        return h, h

    def _returned(self, state: State) -> State:
        return torch.lerp(state[0], state[1], self.alpha), state[1]

    def stages(self) -> list[Stage]:
        """The forward pass in evaluation mode as row-wise and propagating steps."""
        step: list[Stage] = [Propagate(), Rows(self._returned)]
        return [Rows(self._predicted), *step * self.k, Rows(lambda state: (state[0],))]
