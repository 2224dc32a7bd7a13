"""Dense references: everything with n x n matrices and autograd, for small graphs alone."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor

from attack.contexts import random_graph
from grb.graph import Adjacency, Graph
from grb.model.torch import GCN


def double_graph(n: int, *, density: float = 0.3, isolated: int = 0, seed: int = 0, features: int = 3) -> Graph:
    """A random graph in double precision, weights of one included."""
    graph = random_graph(n, density=density, isolated=isolated, seed=seed, features=features)
    assert isinstance(graph.x, Tensor)
    ones = torch.ones(graph.adj.pattern.entries, dtype=torch.float64)
    return Graph(Adjacency(graph.adj.pattern, ones), graph.x.double())


def double_gcn(features: int = 3, classes: int = 4, hidden: Any = (6, 5), seed: int = 0) -> GCN:
    model = GCN(features, classes, hidden_features=list(hidden), generator=torch.Generator().manual_seed(seed))
    return model.double().eval().requires_grad_(False)


def matrix(graph: Graph) -> Tensor:
    """The adjacency, [n, n]."""
    a = torch.zeros(graph.n, graph.n, dtype=torch.float64)
    a[graph.adj.pattern.row_ids.long(), graph.adj.pattern.indices.long()] = 1.0
    return a


def gcn_logits(model: GCN, a: Tensor, x: Tensor) -> Tensor:
    loops = a + torch.eye(len(a), dtype=a.dtype)
    scale = loops.sum(1) ** -0.5
    op = scale.unsqueeze(1) * loops * scale
    h = x
    for place, conv in enumerate(model.convs):
        h = op @ h @ conv.linear.weight + conv.linear.bias  # type: ignore[union-attr]
        h = torch.relu(h) if place < len(model.convs) - 1 else h
    return h


def pairs_of(n: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(n), 2))


def flipped(a: Tensor, u: int, v: int) -> Tensor:
    b = a.clone()
    b[u, v] = b[v, u] = 1 - a[u, v]
    return b
