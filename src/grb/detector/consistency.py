"""Nodes whose neighbours belong, by their features, to other classes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from grb.dataset.view import View
from grb.detector.base import Detector, degrees_of, neighbour_mean
from grb.errors import DataError
from grb.graph import Graph, sampled_product
from grb.model.torch.mlp import MLP
from grb.trainer import fit

EPOCHS, PATIENCE, LEARNING_RATE, WEIGHT_DECAY = 200, 50, 0.01, 5e-4


class Consistency(Detector):
    r"""Disagreement of a node with its neighbours about the class that features alone suggest.

    .. math:: s_u = 1 - \sum_c \sqrt{p_{uc}\, \bar p_{uc}}, \qquad s_{uv} = 1 - \sum_c \sqrt{p_{uc}\, p_{vc}}

    with :math:`p` from a perceptron on features, trained on the training nodes, and :math:`\bar p_u` its mean over the
    neighbours of u. Nobody's edges change what the perceptron says.

    Args:
        in_features: Number of features.
        out_features: Number of classes.
        hidden: Width of the perceptron.
    """

    name = "consistency"
    side = "high"
    held_out = True
    weight: Tensor
    bias: Tensor
    out_weight: Tensor
    out_bias: Tensor

    def __init__(self, in_features: int, out_features: int, *, hidden: int = 64) -> None:
        super().__init__(in_features, out_features, hidden=hidden)
        width: Any = hidden  # a recipe may hold anything
        if isinstance(width, bool) or not isinstance(width, int) or width < 1:
            raise DataError(f"hidden is {hidden!r}, but a whole number of at least 1 is needed")
        self.register_buffer("weight", torch.zeros(in_features, hidden))
        self.register_buffer("bias", torch.zeros(hidden))
        self.register_buffer("out_weight", torch.zeros(hidden, out_features))
        self.register_buffer("out_bias", torch.zeros(out_features))

    def learn(self, view: View, generator: torch.Generator) -> None:
        """Train the perceptron on the training nodes; its best epoch is that of the validation nodes."""
        if view.labels.dim() != 1:
            raise DataError(
                "the detector 'consistency' compares classes, but nodes of this dataset have several labels; choose another"
            )
        with torch.random.fork_rng(devices=[]):
            model = MLP(self.in_features, self.out_features, [len(self.bias)], dropout=0.5, generator=generator)
        adam = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True)
        fit(model, view, optimizer=adam, epochs=EPOCHS, patience=PATIENCE, generator=generator)
        learnt = tuple(model.linears.parameters())
        with torch.no_grad():
            for own, value in zip((self.weight, self.bias, self.out_weight, self.out_bias), learnt, strict=True):
                own.copy_(value)

    def probabilities(self, graph: Graph) -> Tensor:
        """What the perceptron says of every node, [n, classes]."""
        hidden = torch.relu(graph.x @ self.weight + self.bias)
        return (hidden @ self.out_weight + self.out_bias).softmax(1)

    def node_values(self, graph: Graph) -> Tensor:
        """One minus the overlap with the neighbours' mean, [n]; NaN without neighbours."""
        own = self.probabilities(graph)
        around = neighbour_mean(graph, own)
        overlap = ((own * around).clamp_min(1e-12)).sqrt().sum(1)
        return torch.where(degrees_of(graph) > 0, 1 - overlap, torch.nan)

    def edge_values(self, graph: Graph) -> Tensor:
        """One minus the overlap of the two ends, [entries]."""
        roots = self.probabilities(graph).clamp_min(1e-12).sqrt()
        return 1 - sampled_product(graph.adj.pattern, roots, roots)
