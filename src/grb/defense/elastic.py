"""ElasticGNN: differences along edges are penalised by their length, so that a few may be large."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from grb.defense.smoothing import SmoothedPerceptron, edge_weights
from grb.errors import DataError
from grb.graph import CSR, Pattern
from grb.graph.attention import gather_columns, gather_rows

Norm = Literal["l21", "l1"]


@dataclass(eq=False, repr=False, kw_only=True)
class ElasticGNN(SmoothedPerceptron):
    r"""A perceptron whose predictions are smoothed by elastic message passing.

    With :math:`H = \mathrm{MLP}(X)` and the differences
    :math:`\Delta_{ij} F = f_i / \sqrt{\tilde d_i} - f_j / \sqrt{\tilde d_j}` along edges, for which
    :math:`\Delta^T \Delta = I - \hat A`, the logits are ``k`` steps towards

    .. math:: \min_F \lambda_1 \sum_{(i,j) \in E} a_{ij} \lVert \Delta_{ij} F \rVert_2
              + \frac{\lambda_2}{2} \mathrm{tr}(F^T (I - \hat A) F) + \frac12 \lVert F - H \rVert_F^2 .

    With :math:`\gamma = 1 / (1 + \lambda_2)`, :math:`\beta = 1 / (2 \gamma)` and :math:`Z = 0` a step is

    .. math:: Y = \gamma H + (1 - \gamma) \hat A F, \quad
              Z \leftarrow \Pi_{\lambda_1}\big(Z + \beta \Delta (Y - \gamma \Delta^T Z)\big), \quad
              F \leftarrow Y - \gamma \Delta^T Z ,

    where :math:`\Pi` projects every row on a ball. :math:`\lambda_1 = 0` is APPNP with :math:`\alpha = \gamma`. Everything
    is differentiable. Per step :math:`O(|E|\, c)` time and memory.

    Differs from lxiaorui/ElasticGNN, which keeps the edges and :math:`Z` of the first graph that it sees. An edge of weight
    :math:`a` counts :math:`a` times, so that one of weight zero is none and still has a gradient.

    Args:
        lambda1: :math:`\lambda_1`, weight of the lengths.
        lambda2: :math:`\lambda_2`, weight of the squares.
        norm: ``l21`` for the lengths of differences, ``l1`` for the sums of their absolute entries.

    References:
        Liu et al., *Elastic Graph Neural Networks*, ICML 2021.
    """

    lambda1: float = 3.0
    lambda2: float = 3.0
    norm: Norm = "l21"
    name = "elasticgnn"

    def build(self) -> None:
        """Make the perceptron."""
        if not self.lambda1 >= 0 or not self.lambda2 >= 0 or self.k < 0:
            raise DataError(
                f"lambda1 is {self.lambda1}, lambda2 {self.lambda2} and k {self.k}, but none may be below 0"
            )
        if self.norm not in get_args(Norm):
            raise DataError(f"norm is {self.norm!r}, but {' or '.join(get_args(Norm))} is needed")
        super().build()

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        """Logits of every node, [n, classes]."""
        first = self.predictions(x)
        weights, roots = edge_weights(op, first)
        gamma = 1 / (1 + self.lambda2)
        # one row per direction of an edge; both are the same but for the sign
        dual = first.new_zeros(op.pattern.entries, first.shape[1])
        h = first
        for _ in range(self.k):
            smooth = (CSR(op.pattern, weights) @ (h * roots) + h * roots) * roots
            y = gamma * first + (1 - gamma) * smooth
            if self.lambda1 == 0:
                h = y
                continue
            ahead = (y - gamma * _collected(op.pattern, dual, weights, roots)) * roots
            difference = gather_rows(op.pattern, ahead) - gather_columns(op.pattern, ahead)
            dual = self._projected(dual + difference / (2 * gamma))
            h = y - gamma * _collected(op.pattern, dual, weights, roots)
        return h

    def _projected(self, dual: Tensor) -> Tensor:
        if self.norm == "l1":
            return dual.clamp(-self.lambda1, self.lambda1)
        square = dual.square().sum(1, keepdim=True)
        outside = square > self.lambda1**2
        return torch.where(outside, dual * (self.lambda1 / torch.where(outside, square, 1.0).sqrt()), dual)

    def relaxations(self) -> dict[str, nn.Module]:
        """``quadratic``: without the lengths, which is APPNP."""
        return {"quadratic": self.twin(lambda1=0.0)}


def _collected(pattern: Pattern, dual: Tensor, weights: Tensor, roots: Tensor) -> Tensor:
    r""":math:`\Delta^T Z`, [n, c], of one row per direction of an edge."""
    return (CSR(pattern.row_entries) @ (dual * weights.unsqueeze(1))) * roots
