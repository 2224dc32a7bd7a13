"""How central a node is, one number per node of a graph."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from grb.errors import DataError, require
from grb.graph import CSR, Adjacency, Graph, convert

# nodes up to which betweenness is exact, and sources from which it is estimated above
EXACT = 5000
SOURCES = 512
# numbers in one block of breadth-first searches; few enough for the cache
BLOCK = 2**18
# rounds of power iteration at most, and the change that ends it
ROUNDS = 1000
CHANGE = 1e-10


def degree(graph: Graph) -> Tensor:
    """Number of neighbours, [n]."""
    return graph.adj.degrees.double()


def betweenness(graph: Graph, *, sources: int | None = None, seed: int = 0) -> Tensor:
    r"""Shortest paths of other pairs through a node, each pair once and shared among its shortest paths, [n].

    .. math:: c_v = \sum_{s < t,\ s \ne v \ne t} \frac{\sigma_{st}(v)}{\sigma_{st}}

    Brandes' two sweeps run for a block of sources at a time, one sparse product per level of the search.

    Args:
        graph: Edges count one each, whatever their weights.
        sources: Start from this number of random nodes only and scale up; all up to 5000 nodes, 512 above, if not given.
        seed: Random seed of those nodes.

    References:
        Brandes, *A Faster Algorithm for Betweenness Centrality*, 2001.
    """
    n = graph.n
    if sources is None:
        sources = n if n <= EXACT else SOURCES
    chosen = torch.arange(n)
    if sources < n:
        chosen = torch.randperm(n, generator=torch.Generator().manual_seed(seed))[:sources].sort().values
    op = CSR(graph.adj.pattern, symmetric=True)
    total = torch.zeros(n, dtype=torch.float64)
    for block in chosen.split(max(1, BLOCK // max(n, 1))):
        total += _dependencies(op, block)
    return total / 2 * (n / max(len(chosen), 1))


def exact_betweenness(graph: Graph) -> Tensor:
    """:func:`betweenness` from every node, whatever the size, by igraph: [n]; hours for a million edges."""
    igraph = require("igraph", extra="igraph", what="exact betweenness")
    edges = graph.adj.edges().T.numpy()
    return torch.tensor(igraph.Graph(n=graph.n, edges=edges).betweenness(directed=False), dtype=torch.float64)


def _dependencies(op: CSR, sources: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Sum over sources of what every node contributes to their shortest paths, [n]."""
    front = torch.zeros(op.shape[0], len(sources), dtype=dtype)
    front[sources, torch.arange(len(sources))] = 1.0
    paths, levels = front.clone(), [front]
    zero = torch.empty_like(front)  # as numbers, because a product with booleans is several times slower
    while True:
        front = (op @ front).mul_(torch.eq(paths, 0.0, out=zero))
        reached = float(front.sum())
        if not math.isfinite(reached):  # more shortest paths than a short number can count
            if dtype == torch.float64:
                raise DataError(
                    "betweenness: the graph has more shortest paths than numbers can count; choose deg or eigen"
                )
            return _dependencies(op, sources, torch.float64)
        if not reached:
            break
        paths += front
        levels.append(front)
    total = torch.zeros(op.shape[0], dtype=torch.float64)
    shares = torch.zeros_like(paths)
    for level in range(len(levels) - 1, 1, -1):
        front = levels[level]
        torch.eq(front, 0.0, out=zero)
        # a node of this level hands (1 + share) / paths on to each node before it on a shortest path
        below = shares.add_(1.0).sub_(zero).div_(zero.add_(front))
        shares = (op @ below).mul_(levels[level - 1])
        total += shares.sum(1)
    return total


def eigenvector(graph: Graph) -> Tensor:
    r"""The leading eigenvector of :math:`A + I` of every component, [n]; the whole has length one.

    A component of :math:`k` of :math:`n` nodes gets the length :math:`\sqrt{k / n}`, so that small ones do not vanish; the
    loops leave the vectors as they are and keep the iteration from oscillating on bipartite graphs.
    """
    n = graph.n
    if n == 0:
        return torch.zeros(0, dtype=torch.float64)
    component, sizes = components(graph.adj)
    length = torch.sqrt(sizes.double() / n)[component]
    op = CSR(graph.adj.pattern, symmetric=True)
    vector = torch.full((n,), n**-0.5, dtype=torch.float64)
    for _ in range(ROUNDS):
        moved = vector + op @ vector
        norms = torch.zeros(len(sizes), dtype=torch.float64).index_add_(0, component, moved.square()).sqrt_()
        moved *= length / norms[component]
        change = float((moved - vector).abs().max())
        vector = moved
        if change < CHANGE:
            break
    return vector


def components(adj: Adjacency) -> tuple[Tensor, Tensor]:
    """The component of every node, [n], and how many nodes each has."""
    from scipy.sparse.csgraph import connected_components

    _, labels = connected_components(convert.to_scipy(adj), directed=False)
    component = torch.from_numpy(labels.astype(np.int64))
    return component, torch.bincount(component)
