"""An attack, a model, a perturbation and a dataset, each as short as it can be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from grb.attack import AttackContext
from grb.dataset import Dataset
from grb.graph import Adjacency, Graph, GraphEdit, normalise
from grb.model.base import GraphModel


@dataclass(frozen=True)
class Star:
    """Joins every new node, with random features, with as many random targets as the limits allow."""

    needs_model = False
    version = 1

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        graph, limits = context.graph, context.injection
        low, high = limits.feature_range
        new_x = low + (high - low) * torch.rand(limits.nodes, graph.num_features, generator=generator)
        each = min(limits.edges_per_node, len(context.targets))
        ends = [context.targets[torch.randperm(len(context.targets), generator=generator)[:each]] for _ in new_x]
        new = torch.arange(graph.n, graph.n + limits.nodes).repeat_interleave(each)
        return GraphEdit(graph.n, add=torch.stack([torch.cat(ends), new]), new_x=new_x)


class Mean(GraphModel):
    """The mean over a node and its neighbours, then a perceptron."""

    name = "grb_plugin_example:Mean"
    version = 1

    def __init__(
        self, in_features: int, out_features: int, width: int = 32, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.params = {"in_features": in_features, "out_features": out_features, "width": width}
        self.first, self.last = nn.Linear(in_features, width), nn.Linear(width, out_features)
        for layer in (self.first, self.last):
            nn.init.xavier_uniform_(layer.weight, generator=generator)
            nn.init.zeros_(layer.bias)

    def prepare(self, adj: Adjacency) -> Any:
        return normalise.scaled(adj, left=-1.0, right=0.0, self_loops=True)

    def forward(self, x: Any, op: Any) -> Tensor:
        return self.last(torch.relu(self.first(op @ x)))


@dataclass(frozen=True)
class Signs:
    """Features lose their size and keep their sign."""

    def __call__(self, graph: Graph, generator: torch.Generator) -> Graph:
        x = graph.x if isinstance(graph.x, Tensor) else graph.x @ torch.eye(graph.num_features)
        return Graph(graph.adj, x.sign(), graph.y, graph.ptr)


def two_rings(size: int = 60) -> Dataset:
    """Two rings whose nodes have noisy features of their ring."""
    random = np.random.default_rng(0)
    ring = np.arange(size)
    ends = np.concatenate([np.stack([ring, (ring + 1) % size]), size + np.stack([ring, (ring + 1) % size])], axis=1)
    y = np.repeat([0, 1], size)
    x = (random.normal(size=(2 * size, 4)) + 2 * y[:, None]).astype(np.float32)
    order = random.permutation(2 * size)
    parts = np.split(order, [48, 60, 80, 100])
    split = dict(zip(("train", "val", "easy", "medium", "hard"), parts, strict=True))
    both = np.concatenate([ends, ends[::-1]], axis=1)
    adj = sparse.csr_matrix((np.ones(both.shape[1]), (both[0], both[1])), shape=(2 * size, 2 * size))
    return Dataset.from_arrays(adj, x, y, split=split, name="two-rings")
