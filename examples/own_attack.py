"""A custom attack: a function from what an attacker sees to an edit. What it may do is not for it to say."""

from __future__ import annotations

from dataclasses import dataclass

import torch

import grb
from grb.attack import AttackContext
from grb.errors import BudgetError
from grb.graph import GraphEdit
from grb.model.base import predict


@dataclass(frozen=True)
class Impostors:
    """Injected nodes that look like one class in the extreme, each joined with targets that the model takes for another.

    Args:
        extra: Edges beyond the limit, to be caught with.
    """

    extra: int = 0
    version = 1

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        graph, limits, targets = context.graph, context.injection, context.targets
        guess = predict(context.model, graph).argmax(1)
        width = min(limits.edges_per_node + self.extra, len(targets))
        ends, rows = [], []
        for node in range(limits.nodes):
            looks = node % context.view.num_classes
            rows.append((graph.x[guess == looks].mean(0) - graph.x.mean(0)).sign() * limits.feature_range[1])
            others = torch.cat([targets[guess[targets] != looks], targets[guess[targets] == looks]])
            start = node * width % len(others)
            ends.append(others.roll(-start)[:width])
        new = torch.arange(graph.n, graph.n + limits.nodes).repeat_interleave(width)
        new_x = torch.stack(rows).clamp(*limits.feature_range)
        return GraphEdit(graph.n, add=torch.stack([torch.cat(ends), new]), new_x=new_x)


dataset = grb.load_dataset("synth-tiny")
model = grb.train("gcn", dataset, seed=0, epochs=100)
print("no attack   ", grb.evaluate(model, dataset))
for name, attack in (("random nodes", "rnd"), ("impostors   ", Impostors())):
    print(name, grb.evaluate(model, dataset, grb.run_attack(attack, model, dataset)))
try:
    grb.run_attack(Impostors(extra=1), model, dataset)
except BudgetError as refusal:
    print("refused:", refusal)
# `grb check own_attack:Impostors --kind attack` asks it everything that our own attacks are asked
