"""RUNG: neighbours that are too far away have no pull at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from grb.defense.smoothing import SmoothedPerceptron, edge_weights
from grb.errors import DataError
from grb.graph import CSR, Pattern
from grb.graph.attention import gather_columns, gather_rows
from grb.graph.sparse import row_sums

Variant = Literal["paper", "code"]
# distances count as at least this, because the weight of two equal rows would be infinite
NEAREST = 1e-3
# what the authors' code adds to a distance before it takes its root
SHIFT = 0.01
# sharpness of the soft weights that an attacker may follow
SHARPNESS = 5.0


@dataclass(eq=False, repr=False, kw_only=True)
class RUNG(SmoothedPerceptron):
    r"""A perceptron whose predictions are smoothed over edges by a penalty that stops growing.

    With :math:`F_0 = \mathrm{MLP}(X)`, :math:`\tilde d` the degree plus one and
    :math:`y_{ij} = \lVert f_i / \sqrt{\tilde d_i} - f_j / \sqrt{\tilde d_j} \rVert`, the logits are ``k`` steps towards

    .. math:: \min_F \sum_{(i,j) \in E} a_{ij}\, \rho_\gamma(y_{ij}) + \lambda \lVert F - F_0 \rVert_F^2, \qquad
              \rho_\gamma(y) = y - \frac{y^2}{2 \gamma} \ (y < \gamma), \quad \frac{\gamma}{2} \text{ else} ,

    the minimax concave penalty, by quasi-Newton reweighting: with
    :math:`w_{ij} = \max(0, \frac{1}{2 y_{ij}} - \frac{1}{2 \gamma})` and
    :math:`q_i = \lambda + \sum_j w_{ij} a_{ij} / \tilde d_i`,

    .. math:: f_i \leftarrow \frac{1}{q_i}
              \Big( \sum_j w_{ij} a_{ij} \frac{f_j}{\sqrt{\tilde d_i \tilde d_j}} + \lambda f_{0,i} \Big) ,

    which never raises the objective. An edge across a distance of :math:`\gamma` or more has no influence. Per step
    :math:`O(|E|\, c)` time and memory.

    Differs from chris-hzc/RUNG: edges only instead of dense matrices; weights are constants in training alone, so that the
    gradients of an attack in evaluation mode are the true ones, which the authors' are not.

    Args:
        gamma: :math:`\gamma`, beyond which an edge counts nothing; infinity gives the :math:`\ell_1` penalty.
        smoothing: :math:`\hat\lambda`, where :math:`\lambda = 1 / \hat\lambda - 1`; higher is smoother.
        variant: ``paper`` as above; ``code`` as the authors ran it, who take :math:`\sqrt{y + 0.01}` in place of
            :math:`y`, so that edges vanish from the distance :math:`\gamma^2 - 0.01` on.

    References:
        Hou et al., *Robust Graph Neural Networks via Unbiased Aggregation*, NeurIPS 2024.
    """

    gamma: float = 6.0
    smoothing: float = 0.9
    variant: Variant = "paper"
    name = "rung"

    def build(self) -> None:
        """Make the perceptron."""
        if not self.gamma > 0 or not 0 < self.smoothing <= 1 or self.k < 0:
            raise DataError(
                f"gamma is {self.gamma}, smoothing {self.smoothing} and k {self.k}, but gamma above 0, smoothing in (0, 1] "
                "and k of at least 0 are needed"
            )
        if self.variant not in get_args(Variant):
            raise DataError(f"variant is {self.variant!r}, but {' or '.join(get_args(Variant))} is needed")
        # how weights enter an attacker's gradients: as they are, soft, or not at all
        self.weighing: Literal["exact", "soft", "constant"] = "exact"
        super().build()

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        """Logits of every node, [n, classes]."""
        first = self.predictions(x)
        edges, roots = edge_weights(op, first)
        strength = 1 / self.smoothing - 1
        h = first
        for _ in range(self.k):
            h = self._step(op.pattern, edges, roots, h, first, strength)
        return h

    def _step(
        self, pattern: Pattern, edges: Tensor, roots: Tensor, h: Tensor, first: Tensor, strength: float
    ) -> Tensor:
        scaled = h * roots
        if self.training or self.weighing == "constant":
            with torch.no_grad():
                weights = self._weights(distances(pattern, scaled))
        else:
            weights = self._weights(distances(pattern, scaled))
        weights = weights * edges
        q = row_sums(pattern, weights).unsqueeze(1) * roots.square() + strength
        # without a pull to its first prediction a node that hears nobody keeps it
        alone = q <= 0
        total = (CSR(pattern, weights) @ scaled) * roots + (strength + alone.to(h.dtype)) * first
        return total / torch.where(alone, 1.0, q)

    def _weights(self, y: Tensor) -> Tensor:
        """The derivative of the penalty by the squared distance, [entries]."""
        y = (y + SHIFT).sqrt() if self.variant == "code" else y.clamp_min(NEAREST)
        raw = 1 / (2 * y) - 1 / (2 * self.gamma)
        return functional.softplus(raw, beta=SHARPNESS) if self.weighing == "soft" else raw.clamp_min(0)

    def relaxations(self) -> dict[str, nn.Module]:
        """``soft``: weights that never vanish; ``l1``: no limit of distances; ``constant``: weights without gradients."""
        soft, constant = self.twin(), self.twin()
        soft.weighing, constant.weighing = "soft", "constant"
        return {"soft": soft, "l1": self.twin(gamma=math.inf), "constant": constant}


def distances(pattern: Pattern, x: Tensor) -> Tensor:
    """Euclidean distance of the two rows of every entry, [entries]; where it is zero, so is its slope."""
    square = (gather_rows(pattern, x) - gather_columns(pattern, x)).square().sum(1)
    distinct = square > 0
    return torch.where(distinct, torch.where(distinct, square, 1.0).sqrt(), 0.0)
