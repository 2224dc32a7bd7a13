"""Several detectors together."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from grb.dataset.view import View
from grb.detector.base import KINDS, Detector, Kind
from grb.detector.consistency import Consistency
from grb.detector.degree import Degree
from grb.detector.homophily import Homophily
from grb.detector.likelihood import FeatureLikelihood
from grb.graph import Graph

PARTS: tuple[type[Detector], ...] = (FeatureLikelihood, Homophily, Degree, Consistency)
# correlations are shrunk towards none, so that few validation nodes suffice
SHRINKAGE = 0.05


class Joint(Detector):
    r"""How far the normal scores of all detectors together are from what is usual.

    .. math:: s = z^\top R^{-1} z

    with :math:`z` the normal scores of feature likelihood, homophily, degree and consistency, and :math:`R` their
    correlations over the validation nodes, or over their edges: a Gaussian copula. Unusual in any direction is suspicious,
    also a node that resembles its neighbours too well.

    Args:
        in_features: Number of features.
        out_features: Number of classes.
    """

    name = "joint"
    side = "high"
    held_out = True

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__(in_features, out_features)
        self.parts = nn.ModuleList(make(in_features, out_features) for make in PARTS)
        for kind in KINDS:
            self.register_buffer(f"{kind}_precision", torch.eye(len(PARTS)))

    def learn(self, view: View, generator: torch.Generator) -> None:
        """Let every detector learn, then their correlations."""
        for part in self.detectors:
            part.fit(view, seed=int(torch.randint(2**31, (1,), generator=generator)))

    @property
    def detectors(self) -> list[Detector]:
        """The detectors inside."""
        return [part for part in self.parts if isinstance(part, Detector)]

    def learn_scores(self, graph: Graph, usual: Mapping[Kind, Tensor]) -> None:
        """Learn the correlations of the normal scores."""
        for kind in KINDS:
            scores = self._together(kind, graph)[usual[kind]]
            if len(scores) > len(PARTS):
                moments = scores.T @ scores / len(scores)
                moments = (1 - SHRINKAGE) * moments + SHRINKAGE * torch.eye(len(PARTS))
                getattr(self, f"{kind}_precision").copy_(torch.linalg.inv(moments))

    def normal_scores(self, kind: Kind, graph: Graph) -> Tensor:
        """The squared distance itself, of every node or entry: it has no sign to normalise."""
        scores = self._together(kind, graph)
        precision: Tensor = getattr(self, f"{kind}_precision")
        return ((scores @ precision) * scores).sum(1)

    def node_values(self, graph: Graph) -> Tensor:
        """The squared distance of every node, [n]."""
        return self.normal_scores("nodes", graph)

    def edge_values(self, graph: Graph) -> Tensor:
        """The squared distance of every entry, [entries]."""
        return self.normal_scores("edges", graph)

    def _together(self, kind: Kind, graph: Graph) -> Tensor:
        return torch.stack([part.normal_scores(kind, graph) for part in self.detectors], 1)
