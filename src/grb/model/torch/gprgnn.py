"""Generalised PageRank with learnt coefficients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from grb.errors import DataError
from grb.graph import CSR, Adjacency, normalise
from grb.model.base import Propagate, Rows, Stage, State
from grb.model.decoupled import DecoupledModel
from grb.model.layers import Dropout

Start = Literal["ppr", "random"]


@dataclass(eq=False, repr=False, kw_only=True)
class GPRGNN(DecoupledModel):
    r"""A perceptron whose predictions are mixed over hops with weights that are learnt and may be negative.

    .. math:: H = \mathrm{MLP}(X), \qquad Z = \sum_{k=0}^{K} \gamma_k \hat A^k H

    Trained adversarially against changed edges, the coefficients become a *robust diffusion*:
    ``{name: gprgnn+at, attack: lrbcd}``.

    Args:
        k: Hops :math:`K`.
        coefficients: Where they begin: ``ppr`` with :math:`\gamma_k = \alpha (1 - \alpha)^k`,
            :math:`\gamma_K = (1 - \alpha)^K`, or ``random``: uniform, divided by the sum of absolute values.
        alpha: :math:`\alpha` of ``ppr``.
        propagation_dropout: Dropout rate of the predictions before they travel.

    References:
        Chien et al., *Adaptive Universal Generalized PageRank Graph Neural Network*, ICLR 2021.
        Gosch et al., *Adversarial Training for Graph Neural Networks: Pitfalls, Solutions, and New Directions*, NeurIPS 2023.
    """

    coefficients: Start = "ppr"
    alpha: float = 0.1
    propagation_dropout: float = 0.0
    name = "gprgnn"

    def build(self) -> None:
        """Make the perceptron and the coefficients."""
        if self.k < 0 or not 0 <= self.alpha <= 1 or self.coefficients not in get_args(Start):
            raise DataError(
                f"k is {self.k}, alpha {self.alpha} and coefficients {self.coefficients!r}, but k of at least 0, alpha "
                f"in [0, 1] and {' or '.join(get_args(Start))} are needed"
            )
        super().build()
        self.propagation_drop = Dropout(self.propagation_dropout)
        self.mixture = Coefficients(self.k, self.coefficients, self.alpha)

    def prepare(self, adj: Adjacency) -> CSR:
        """The adjacency with self-loops, scaled by the roots of both degrees."""
        return normalise.gcn(adj)

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        """Logits of every node, [n, classes]."""
        h = self.propagation_drop(self.predictions(x))
        total = self.mixture.gamma[0] * h
        for hop in range(1, self.k + 1):
            h = op @ h
            total = total + self.mixture.gamma[hop] * h
        return total

    def stages(self) -> list[Stage]:
        """The forward pass in evaluation mode as row-wise and propagating steps."""

        def started(state: State) -> State:
            h = self.predictions(state[0])
            return h, self.mixture.gamma[0] * h

        def added(hop: int) -> Rows:
            return Rows(lambda state: (state[0], state[1] + self.mixture.gamma[hop] * state[0]))

        hops: list[Stage] = [part for hop in range(1, self.k + 1) for part in (Propagate(), added(hop))]
        return [Rows(started), *hops, Rows(lambda state: (state[1],))]


class Coefficients(nn.Module):
    """One number per hop, learnt."""

    def __init__(self, k: int, start: Start, alpha: float) -> None:
        super().__init__()
        self.start, self.alpha = start, alpha
        self.gamma = nn.Parameter(torch.empty(k + 1))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Begin anew; only a random start draws from ``generator``."""
        with torch.no_grad():
            if self.start == "random":
                bound = math.sqrt(3 / len(self.gamma))
                self.gamma.uniform_(-bound, bound, generator=generator)
                self.gamma.div_(self.gamma.abs().sum())
                return
            hops = torch.arange(len(self.gamma), dtype=self.gamma.dtype, device=self.gamma.device)
            self.gamma.copy_(self.alpha * (1 - self.alpha) ** hops)
            self.gamma[-1] = (1 - self.alpha) ** (len(self.gamma) - 1)
