"""ChebNetII: a spectral filter by its values at the Chebyshev nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from grb.errors import DataError
from grb.graph import CSR, Adjacency, normalise
from grb.model.base import Propagate, Rows, Stage, State
from grb.model.decoupled import DecoupledModel
from grb.model.layers import Dropout


@dataclass(eq=False, repr=False, kw_only=True)
class ChebNetII(DecoupledModel):
    r"""A perceptron behind a polynomial filter whose values at the Chebyshev nodes are learnt.

    With :math:`\hat L = -D^{-1/2} A D^{-1/2}`, the Chebyshev polynomials :math:`T_k` and their nodes
    :math:`x_j = \cos\big((j + \frac12) \pi / (K + 1)\big)`,

    .. math:: Z = \frac{c_0}{2} H + \sum_{k=1}^{K} c_k T_k(\hat L) H, \qquad
              c_k = \frac{2}{K + 1} \sum_{j=0}^{K} \mathrm{relu}(\gamma_j)\, T_k(x_j), \qquad H = \mathrm{MLP}(X) .

    The filter takes the value :math:`\mathrm{relu}(\gamma_j)` at :math:`x_j`; it starts as the identity,
    :math:`\gamma_j = 1`.

    Differs from ivam-he/ChebNetII: one learning rate for all parameters.

    Args:
        k: Degree :math:`K` of the polynomial.
        propagation_dropout: Dropout rate of the predictions before they are filtered.

    References:
        He et al., *Convolutional Neural Networks on Graphs with Chebyshev Approximation, Revisited*, NeurIPS 2022.
    """

    propagation_dropout: float = 0.0
    name = "chebnetii"

    def build(self) -> None:
        """Make the perceptron and the values of the filter."""
        if self.k < 1:
            raise DataError(f"k is {self.k}, but a polynomial of at least degree 1 is needed")
        super().build()
        self.propagation_drop = Dropout(self.propagation_dropout)
        self.filter = Filter(self.k)

    def prepare(self, adj: Adjacency) -> CSR:
        """The adjacency without self-loops, scaled by the roots of both degrees."""
        return normalise.scaled(adj, left=-0.5, right=-0.5, self_loops=False)

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        """Logits of every node, [n, classes]."""
        state = self._started((x,))  # type: ignore[arg-type]
        for degree in range(1, self.k + 1):
            state = self._added((op @ state[0], *state[1:]), degree)
        return state[3]

    def _started(self, state: State) -> State:
        """What travels next, the current polynomial, the one before, the sum so far."""
        h = self.propagation_drop(self.predictions(state[0]))
        return h, h, torch.zeros_like(h), self.filter()[0] / 2 * h

    def _added(self, state: State, degree: int) -> State:
        r"""The recursion :math:`T_k = 2 \hat L T_{k-1} - T_{k-2}`, with the operator being :math:`-\hat L`."""
        moved, current, before, total = state
        latest = -moved if degree == 1 else -2 * moved - before
        return latest, latest, current, total + self.filter()[degree] * latest

    def stages(self) -> list[Stage]:
        """The forward pass in evaluation mode as row-wise and propagating steps."""

        def added(degree: int) -> Rows:
            return Rows(lambda state: self._added(state, degree))

        steps: list[Stage] = [part for degree in range(1, self.k + 1) for part in (Propagate(), added(degree))]
        return [Rows(self._started), *steps, Rows(lambda state: (state[3],))]


class Filter(nn.Module):
    """Values of a filter at the Chebyshev nodes; gives the coefficients of its polynomials."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(k + 1))
        self.k = k

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Begin anew with the identity."""
        nn.init.ones_(self.gamma)

    def forward(self) -> Tensor:
        """Coefficients, [k + 1]; that of degree 0 counts half."""
        angles = (
            (torch.arange(self.k + 1, dtype=self.gamma.dtype, device=self.gamma.device) + 0.5) * math.pi / (self.k + 1)
        )
        degrees = torch.arange(self.k + 1, dtype=self.gamma.dtype, device=self.gamma.device)
        # the polynomial of degree k at cos(a) is cos(k a)
        return 2 / (self.k + 1) * (torch.cos(degrees.unsqueeze(1) * angles) @ torch.relu(self.gamma))
