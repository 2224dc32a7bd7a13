"""A defense of your own: whatever turns what a defender sees into a model; here, one without strangers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

import grb
from grb.dataset import View
from grb.defense import Defended
from grb.graph import Graph, adjacency_from_edges
from grb.model.torch import GCN
from grb.trainer import fit


@dataclass(frozen=True)
class WithoutStrangers:
    """Drop every edge whose ends have features that point in different directions."""

    below: float = 0.0

    def __call__(self, graph: Graph) -> Graph:
        edges = graph.adj.edges()
        x = nn.functional.normalize(graph.x, dim=1)
        alike = (x[edges[0]] * x[edges[1]]).sum(1) > self.below
        return Graph(adjacency_from_edges(edges[:, alike].numpy(), graph.n)[0], graph.x, graph.y)


@dataclass(frozen=True)
class Careful:
    """A GCN that never meets strangers, neither in training nor afterwards."""

    epochs: int = 100

    def fit(self, view: View, *, seed: int) -> nn.Module:
        generator = torch.Generator().manual_seed(seed)
        gcn = GCN(view.graph.num_features, view.num_classes, [16], generator=generator)
        model = Defended(gcn, WithoutStrangers())
        adam = torch.optim.Adam(model.parameters(), lr=0.01)
        fit(model, view, optimizer=adam, epochs=self.epochs, generator=generator)
        return model


dataset = grb.load_dataset("synth-tiny")
plain = grb.train("gcn", dataset, seed=0, epochs=100, hidden_features=[16])
careful = Careful().fit(dataset.defender_view(), seed=0)
attack = grb.run_attack("pgd", plain, dataset, iterations=50)  # it does not know the defense
print("GCN               ", grb.evaluate(plain, dataset), "|", grb.evaluate(plain, dataset, attack))
print("careful           ", grb.evaluate(careful, dataset), "|", grb.evaluate(careful, dataset, attack))
# a defense is worth what is left of it when the attacker knows it
adaptive = grb.run_attack("pgd", careful.relaxed(), dataset, iterations=50)
print("careful, white-box", grb.evaluate(careful, dataset, adaptive))
