"""Rewiring by curvature: bottlenecks get a way round, dense places lose an edge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from grb.graph import Graph
from grb.perturb.base import DrawnShare, Integers, Streams, csr_of, ranks
from grb.perturb.edges import Edges

# entries of a product of the adjacency with itself that are held at a time
CHUNK = 2**22
# draws of a neighbour for every edge before it is given up
ROUNDS = 8


@dataclass(frozen=True)
class CurvRewire(DrawnShare):
    r"""Add an edge around every edge of lowest curvature, and remove as many edges of highest curvature.

    The curvature of an edge is the augmented Forman curvature

    .. math:: F(u, v) = 4 - d_u - d_v + 3\, |N_u \cap N_v|,

    low at bottlenecks between parts of a graph and high inside of dense parts. The :math:`\lfloor s\, m \rfloor` lowest edges
    each get a new edge from one end to a random neighbour of the other, which closes a triangle; where none is free, none is
    added. As many of the highest edges go, so that the number of edges stays. Equal curvatures are ordered at random.

    Args:
        share: Fraction :math:`s` of the edges that get a way round.

    Differs from the papers, which rewire to help a model and stop when curvature is mild: here a fixed fraction moves, because
    the question is what a model loses.

    References:
        Topping et al., *Understanding Over-squashing and Bottlenecks on Graphs via Curvature*, ICLR 2022.
        Fesser and Weber, *Mitigating Over-smoothing and Over-squashing Using Augmentations of Forman-Ricci
            Curvature*, LoG 2023.
    """

    share: float = 0.25
    title = "CurvRewire"

    def __call__(self, graph: Graph, generator: torch.Generator | None = None) -> Graph:
        """Return the graph with edges moved from dense places to bottlenecks."""
        edges = Edges.of(graph)
        streams = Streams.draw(generator)
        quota = np.floor(self.share * edges.counts + 1e-9).astype(np.int64)
        values = forman_curvature(graph)
        numbers = streams.uniform(edges.owner, edges.position)
        rank = _ranked(edges.owner, values + 0.5 * numbers)
        added = _ways_round(edges, np.flatnonzero(rank < quota[edges.owner]), streams)
        count = np.bincount(_owner_of(edges, added[0]), minlength=len(edges.counts))
        kept = rank < (edges.counts - count)[edges.owner]
        return edges.with_new(np.flatnonzero(kept), added)


def forman_curvature(graph: Graph) -> NDArray[np.int64]:
    r"""Augmented Forman curvature :math:`4 - d_u - d_v + 3\, |N_u \cap N_v|` of every edge, in ascending order of (u, v), [m].

    >>> from grb.graph import adjacency_from_edges
    >>> path = Graph(adjacency_from_edges(torch.tensor([[0, 1, 2], [1, 2, 0]]), 4)[0], torch.ones(4, 1))
    >>> forman_curvature(path).tolist()
    [3, 3, 3]
    """
    from scipy.sparse import csr_matrix

    indptr, indices = csr_of(graph.adj)
    n = len(indptr) - 1
    adj = csr_matrix((np.ones(len(indices), dtype=np.int64), indices, indptr), shape=(n, n))
    degrees = np.diff(indptr)
    rows = np.repeat(np.arange(n), degrees)
    triangles = np.zeros(len(indices), dtype=np.int64)
    work = np.concatenate([[0], np.cumsum(adj @ degrees + 1)])
    first = 0
    while first < n:
        last = max(int(np.searchsorted(work, work[first] + CHUNK, side="right")) - 1, first + 1)
        block = adj[first:last]
        # + block, so that entries without a common neighbour stay in the pattern
        common = (block @ adj).multiply(block).tocsr() + block
        common.sort_indices()
        triangles[indptr[first] : indptr[last]] = common.data - 1
        first = last
    upper = rows < indices
    return np.asarray(4 - degrees[rows[upper]] - degrees[indices[upper]] + 3 * triangles[upper])


def _ranked(owner: Integers, numbers: NDArray[np.float64]) -> Integers:
    """The rank of every edge among those of its graph by its number, [m]."""
    turn = np.empty(len(owner), dtype=np.int64)
    turn[np.argsort(numbers, kind="stable")] = np.arange(len(owner))
    order, position = ranks(owner, turn / max(len(owner), 1))
    rank = np.empty(len(owner), dtype=np.int64)
    rank[order] = position
    return rank


def _owner_of(edges: Edges, nodes: Integers) -> Integers:
    return np.searchsorted(edges.ptr, nodes, side="right") - 1


def _ways_round(edges: Edges, chosen: Integers, streams: Streams) -> Integers:
    """For every chosen edge (u, v) a new edge from one end to a neighbour of the other, where one is free, [2, a]."""
    indptr, indices = csr_of(edges.graph.adj)
    n, degrees = edges.graph.n, np.diff(indptr)
    taken, found = edges.keys, np.zeros(0, dtype=np.int64)
    for turn in range(ROUNDS):
        if not len(chosen):
            break
        owner, position = edges.owner[chosen], edges.position[chosen]
        ends = edges.ends[:, chosen]
        ends = np.where(streams.uniform(owner, position, 2 * turn + 1) < 0.5, ends, ends[::-1])
        steps = (streams.uniform(owner, position, 2 * turn + 2) * degrees[ends[0]]).astype(np.int64)
        near = indices[indptr[ends[0]] + steps].astype(np.int64)
        low, high = np.minimum(near, ends[1]), np.maximum(near, ends[1])
        keys = low * n + high
        once = np.zeros(len(keys), dtype=bool)
        once[np.unique(keys, return_index=True)[1]] = True
        good = once & (low != high) & ~np.isin(keys, taken)
        found = np.concatenate([found, keys[good]])
        taken = np.union1d(taken, keys[good])
        chosen = chosen[~good]
    return np.stack(np.divmod(np.sort(found), max(n, 1)))
