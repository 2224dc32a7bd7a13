"""HAO's term: injected nodes that resemble their neighbours pass defenses that cut dissimilar ones."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from grb.graph import Graph, dense, normalise


@dataclass(frozen=True, eq=False)
class Homophily:
    r"""Mean node-centric homophily of the injected nodes, times a weight.

    .. math:: \lambda \; \mathrm{mean}_u \cos(x_u, r_u), \qquad
              r_u = \sum_{v \in N(u)} \frac{1}{\sqrt{d_u d_v}} x_v ,

    where :math:`r_u`, what the neighbours of u say in the attacked graph, is computed at the start of an optimisation and
    held constant. Added to the loss, it trades strength against unnoticeability.

    Args:
        weight: :math:`\lambda`.
        reference: :math:`r_u` of the injected nodes, [m, d].

    References:
        Chen et al., *Understanding and Improving Graph Injection Attack by Promoting Unnoticeability*, ICLR 2022.
    """

    weight: float
    reference: Tensor

    def __call__(self, features: Tensor) -> Tensor:
        """The term at these features, [m, d]."""
        return self.weight * functional.cosine_similarity(features, self.reference, dim=1, eps=1e-8).mean()


def homophily(weight: float, attacked: Graph, count: int) -> Homophily:
    """The term for the last ``count`` nodes of a graph, from the features that they have in it."""
    ids = torch.arange(attacked.n - count, attacked.n)
    rows = normalise.scaled(attacked.adj, left=-0.5, right=-0.5, self_loops=False).rows(ids)
    return Homophily(weight, (rows @ dense(attacked.x)).detach())
