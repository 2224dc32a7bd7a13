"""Features that no node of the training graph would have."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from grb.dataset.view import View
from grb.detector.base import Detector, of_ends
from grb.errors import DataError
from grb.graph import CSR, Graph

POWER_ITERATIONS = 8


class FeatureLikelihood(Detector):
    r"""Unlikely rows of features, by probabilistic principal components of the training nodes.

    .. math:: -2 \log p(x) = \sum_k \frac{(w_k^\top (x - \mu))^2}{\lambda_k}
              + \frac{\lVert x - \mu \rVert^2 - \sum_k (w_k^\top (x - \mu))^2}{\sigma^2} + \text{const}

    with the largest variances :math:`\lambda_k` in the directions :math:`w_k`, and :math:`\sigma^2` the mean variance of all
    others. An edge is as unlikely as the less likely of its ends. Costs O(nd), also on sparse features.

    Args:
        in_features: Number of features.
        out_features: Number of classes.
        rank: Number of principal components.

    References:
        Tipping and Bishop, *Probabilistic Principal Component Analysis*, J. R. Stat. Soc. B 61, 1999.
    """

    name = "feature-likelihood"
    side = "high"
    held_out = True
    mean: Tensor
    basis: Tensor
    variances: Tensor
    noise: Tensor

    def __init__(self, in_features: int, out_features: int, *, rank: int = 32) -> None:
        super().__init__(in_features, out_features, rank=rank)
        count: Any = rank  # a recipe may hold anything
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise DataError(f"rank is {rank!r}, but a whole number of at least 1 is needed")
        width = min(rank, in_features)
        self.register_buffer("mean", torch.zeros(in_features))
        self.register_buffer("basis", torch.zeros(in_features, width))
        self.register_buffer("variances", torch.ones(width))
        self.register_buffer("noise", torch.ones(()))

    def learn(self, view: View, generator: torch.Generator) -> None:
        """Find the principal components of the training nodes by subspace iteration."""
        with torch.no_grad():
            rows: Any = view.graph.subgraph(view.train).x
            n, d = rows.shape
            back = rows.T
            ones = torch.ones(n, 1)
            mean = (back @ ones).squeeze(1) / n
            width = self.basis.shape[1]
            basis = torch.linalg.qr(torch.randn(d, width, generator=generator))[0]
            for _ in range(POWER_ITERATIONS):
                along = rows @ basis - mean @ basis
                basis = torch.linalg.qr(back @ along - torch.outer(mean, along.sum(0)))[0]
            along = rows @ basis - mean @ basis
            _, turn = torch.linalg.eigh(along.T @ along)
            basis, along = basis @ turn, along @ turn
            total = _squares(rows).sum() / n - mean.square().sum()
            variances = along.square().mean(0)
            least = float(total) / d * 1e-3 + 1e-12
            noise = ((total - variances.sum()) / max(d - width, 1)).clamp_min(least)
            self.mean.copy_(mean)
            self.basis.copy_(basis)
            self.variances.copy_(variances.clamp_min(float(noise)))
            self.noise.copy_(noise)

    def node_values(self, graph: Graph) -> Tensor:
        """Twice the negative log-likelihood of every row but for a constant, [n]."""
        x: Any = graph.x
        along = x @ self.basis - self.mean @ self.basis
        squares = _squares(x) - 2 * (x @ self.mean.unsqueeze(1)).squeeze(1) + self.mean.square().sum()
        inside = along.square()
        rest = (squares - inside.sum(1)).clamp_min(0)
        return (inside / self.variances).sum(1) + rest / self.noise

    def edge_values(self, graph: Graph) -> Tensor:
        """The value of the less likely end, [entries]."""
        return torch.maximum(*of_ends(graph, self.node_values(graph)))


def _squares(x: Tensor | CSR) -> Tensor:
    """Squared length of every row, [n]."""
    if isinstance(x, Tensor):
        return x.square().sum(1)
    values = torch.ones(x.pattern.entries) if x.values is None else x.values
    return CSR(x.pattern, values.square()) @ torch.ones(x.shape[1])
