"""Pruning by suspicion: edges that a detector does not trust are cut before the model sees the graph."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from grb.dataset.view import View
from grb.defense.preprocess import pruned
from grb.detector import Detector, build_detector
from grb.detector.base import of_ends
from grb.errors import DataError
from grb.graph import Adjacency, Graph

# width of the soft decision, in units of what separates the threshold from the usual suspicion
SOFTNESS = 0.25


class Detect(nn.Module):
    r"""Cuts suspicious edges and all edges of suspicious nodes.

    The detector learns from the view that the model is trained on, before that training. An edge is cut if its own
    suspicion, or that of one of its ends, exceeds what ``false_positives`` of the usual nodes and edges of that view exceed;
    an edge and both its ends may be mistaken, so that up to about three times as many clean edges fall.

    Args:
        in_features: Number of features.
        out_features: Number of classes.
        detector: A name of ``grb ls detectors``.
        false_positives: Fraction of usual nodes, and of usual edges, that are given up.
    """

    cuts = True
    version = 1

    def __init__(
        self, in_features: int, out_features: int, *, detector: str = "joint", false_positives: float = 0.02
    ) -> None:
        super().__init__()
        if not 0 <= false_positives < 1:
            raise DataError(f"false_positives is {false_positives}, but at least 0 and less than 1 is needed")
        self.params = {"detector": detector, "false_positives": false_positives}
        self.false_positives = false_positives
        self.detector: Detector = build_detector(detector, in_features, out_features)

    def fit(self, view: View, *, seed: int) -> None:
        """Let the detector learn what is usual from what a defender may see."""
        self.detector.fit(view, seed=seed)

    def forward(self, graph: Graph) -> Graph:
        """The graph without suspicious edges; as it is while nothing has been learnt."""
        if not bool(self.detector.fitted):
            return graph
        with torch.no_grad():
            keep = self.excess(graph) <= 0
        return graph if bool(keep.all()) else replace(graph, adj=pruned(graph.adj, keep))

    def excess(self, graph: Graph) -> Tensor:
        """By how much the suspicion of every entry, or of one of its ends, exceeds the threshold, [entries]."""
        rate, detector = self.false_positives, self.detector
        nodes = detector.node_scores(graph) - detector.threshold("nodes", rate)
        edges = detector.edge_scores(graph) - detector.threshold("edges", rate)
        edges = torch.maximum(edges, edges[graph.adj.pattern.transposed[1]])  # both directions, whatever rounding says
        return torch.maximum(edges, torch.maximum(*of_ends(graph, nodes)))

    def relaxed(self) -> Softened:
        """The same with edges that are weighed down instead of cut, for gradients of attackers."""
        return Softened(self)


class Softened:
    r"""Edges weighed by :math:`\sigma(-e / \tau)` with :math:`e` the excess over the threshold: suspicion has a slope.

    Args:
        part: The part that cuts.
    """

    def __init__(self, part: Detect) -> None:
        self.part = part

    def __call__(self, graph: Graph) -> Graph:
        """The graph with lighter edges where there is suspicion."""
        if not bool(self.part.detector.fitted):
            return graph
        detector, rate = self.part.detector, self.part.false_positives
        width = SOFTNESS * (detector.threshold("nodes", rate) - detector.threshold("nodes", 0.5)).abs().clamp_min(1e-3)
        weights: Any = torch.sigmoid(-self.part.excess(graph) / width)
        values = weights if graph.adj.values is None else graph.adj.values * weights
        return replace(graph, adj=Adjacency(graph.adj.pattern, values))
