"""Perturbations of the edges that need no more than counting: none, all, fewer, more."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from grb.errors import DataError
from grb.graph import Adjacency, CompleteAdjacency, Graph, Pattern
from grb.perturb.base import (
    Drawn,
    DrawnShare,
    Fixed,
    Floats,
    Integers,
    Streams,
    boundaries,
    joined,
    owners,
    ranges,
    ranks,
)

# rounds of drawing pairs before those that are left are listed one by one
ROUNDS = 30


@dataclass(frozen=True)
class NoEdges(Fixed):
    """No edge at all: every node stands for itself.

    References:
        Liu et al., *Taxonomy of Benchmarks in Graph Representation Learning*, LoG 2022, Section 2.2.
    """

    title = "NoEdges"

    def __call__(self, graph: Graph, generator: torch.Generator | None = None) -> Graph:
        """Return the graph without its edges."""
        device = graph.adj.device
        indptr = torch.zeros(graph.n + 1, dtype=torch.int32, device=device)
        none = torch.zeros(0, dtype=torch.int32, device=device)
        return replace(graph, adj=Adjacency(Pattern(indptr, none, graph.n, symmetric=True)))


@dataclass(frozen=True)
class FullyConn(Fixed):
    """Every node joined with every other node of its graph; the edges are never written out.

    The adjacency of the result is a :class:`grb.graph.CompleteAdjacency`. A model that multiplies by
    :func:`grb.graph.normalise.operator` works on it with sums per graph, in time and memory linear in the nodes.

    References:
        Liu et al., *Taxonomy of Benchmarks in Graph Representation Learning*, LoG 2022, Section 2.2.
    """

    title = "FullyConn"

    def __call__(self, graph: Graph, generator: torch.Generator | None = None) -> Graph:
        """Return the graph with an edge between every two nodes."""
        ptr = torch.from_numpy(boundaries(graph)).to(graph.adj.device)
        return replace(graph, adj=CompleteAdjacency(ptr))


@dataclass(frozen=True)
class DropEdges(DrawnShare):
    """Remove a fraction of the edges of every graph, chosen uniformly.

    Args:
        share: Fraction of the edges that are removed; rounded down in every graph.
    """

    title = "DropEdges"

    def __call__(self, graph: Graph, generator: torch.Generator | None = None) -> Graph:
        """Return the graph without some edges."""
        edges = Edges.of(graph)
        numbers = Streams.draw(generator).uniform(edges.owner, edges.position)
        gone = np.floor(self.share * edges.counts + 1e-9).astype(np.int64)
        return edges.first(numbers, edges.counts - gone)


@dataclass(frozen=True)
class Sparsify(DrawnShare):
    r"""Keep a fraction of the edges of every graph, preferably those that connect it.

    Edges are drawn without replacement with weights :math:`1 / d_u + 1 / d_v`, which is what the effective resistance of an
    edge comes to where a graph is well connected: sampling by resistances keeps the spectrum of the Laplacian.

    Args:
        share: Fraction of the edges that stay; rounded up in every graph.

    References:
        Spielman and Srivastava, *Graph Sparsification by Effective Resistances*, SIAM Journal on Computing 2011.
        von Luxburg, Radl and Hein, *Hitting and Commute Times in Large Random Neighborhood Graphs*, JMLR 2014.
    """

    title = "Sparsify"

    def __call__(self, graph: Graph, generator: torch.Generator | None = None) -> Graph:
        """Return the graph with the most important edges."""
        edges = Edges.of(graph)
        degrees = graph.adj.degrees.cpu().numpy()
        weights = (1 / degrees[edges.ends]).sum(0)
        numbers = Streams.draw(generator).uniform(edges.owner, edges.position)
        # the edges that ring first if each waits an exponential time with its weight as rate; mapped into [0, 1)
        waits = -np.expm1(np.log1p(-numbers) / weights)
        return edges.first(np.minimum(waits, 1 - 2.0**-53), np.ceil(self.share * edges.counts - 1e-9).astype(np.int64))


@dataclass(frozen=True)
class AddEdges(Drawn):
    """New edges between random nodes of the same graph, chosen uniformly among the pairs that have none.

    Args:
        share: Number of new edges per edge of a graph, rounded down; where there are fewer free pairs, all of them are joined.
    """

    share: float = 0.5
    title = "AddEdges"

    def __post_init__(self) -> None:
        if not 0 <= self.share < np.inf:
            raise DataError(f"share is {self.share}, but a number of at least 0 is needed")

    def __call__(self, graph: Graph, generator: torch.Generator | None = None) -> Graph:
        """Return the graph with new random edges."""
        edges = Edges.of(graph)
        sizes = np.diff(edges.ptr)
        free = sizes * (sizes - 1) // 2 - edges.counts
        wanted = np.minimum(np.floor(self.share * edges.counts + 1e-9).astype(np.int64), free)
        new = _free_pairs(edges, wanted, free, Streams.draw(generator))
        return edges.with_new(np.arange(len(edges.owner)), new)


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges of a collection, each once, graph by graph.

    Args:
        graph: Graph or collection that the edges belong to.
        ptr: First node of every graph, [graphs + 1].
        ends: The smaller and the larger node, [2, m].
        owner: The graph of every edge, [m].
        counts: Edges of every graph, [graphs].
        weights: [m], or None.
        features: [m, f], or None.
    """

    graph: Graph
    ptr: Integers
    ends: Integers
    owner: Integers
    counts: Integers
    weights: NDArray[np.float32] | None
    features: NDArray[np.float32] | None

    @classmethod
    def of(cls, graph: Graph) -> Edges:
        """Return the undirected edges of a graph."""
        ptr = boundaries(graph)
        pattern = graph.adj.pattern
        rows, columns = pattern.row_ids.cpu().numpy(), pattern.indices.cpu().numpy()
        upper = rows < columns
        ends = np.stack([rows[upper], columns[upper]]).astype(np.int64)
        owner = owners(ptr)[ends[0]]
        weights, features = (
            None if each is None else each.detach().cpu().numpy().astype(np.float32)[upper]
            for each in (graph.adj.values, graph.adj.features)
        )
        return cls(graph, ptr, ends, owner, np.bincount(owner, minlength=len(ptr) - 1), weights, features)

    @property
    def position(self) -> Integers:
        """The number of every edge among those of its graph, [m]."""
        return np.arange(len(self.owner)) - (np.cumsum(self.counts) - self.counts)[self.owner]

    @property
    def keys(self) -> Integers:
        """``u * n + v`` of every edge, ascending, [m]."""
        return self.ends[0] * self.graph.n + self.ends[1]

    def first(self, numbers: Floats, quota: Integers) -> Graph:
        """The graph with those edges of every graph alone that have the smallest numbers in [0, 1)."""
        order, position = ranks(self.owner, numbers)
        chosen = np.zeros(len(order), dtype=bool)
        chosen[order] = position < quota[self.owner[order]]
        return self.replaced(self.ends[:, chosen], *self.carried(np.flatnonzero(chosen)))

    def carried(self, ids: Integers) -> tuple[NDArray[np.float32] | None, NDArray[np.float32] | None]:
        """Weights and features of some edges by their numbers; None where there are none."""
        weights, features = (None if each is None else each[ids] for each in (self.weights, self.features))
        return weights, features

    def with_new(self, kept: Integers, new: Integers) -> Graph:
        """The graph with some of its edges, by their numbers, and new ones [2, a] of weight one and features of zero."""
        weights, features = self.carried(kept)
        count = new.shape[1]
        if weights is not None:
            weights = np.concatenate([weights, np.ones(count, dtype=np.float32)])
        if features is not None:
            features = np.concatenate([features, np.zeros((count, features.shape[1]), dtype=np.float32)])
        return self.replaced(np.concatenate([self.ends[:, kept], new], axis=1), weights, features)

    def replaced(
        self, ends: Integers, weights: NDArray[np.float32] | None, features: NDArray[np.float32] | None
    ) -> Graph:
        """The graph with other edges, which must be distinct and no loops."""
        return replace(self.graph, adj=joined(self.graph.n, ends, weights, features).to(self.graph.adj.device))


def _free_pairs(edges: Edges, wanted: Integers, free: Integers, streams: Streams) -> Integers:
    """Distinct pairs without an edge, as many as wanted of every graph, [2, sum of wanted]."""
    taken, fresh = edges.keys, np.zeros(0, dtype=np.int64)
    need = wanted.copy()
    crowded = wanted > 0.5 * free  # drawing would hit the same pairs again and again
    for salt in range(ROUNDS):
        count = np.where(crowded, 0, need)
        if not count.any():
            break
        graph = np.repeat(np.arange(len(need)), count)
        drawn = _drawn_pairs(edges, graph, streams, 2 * salt)
        accepted, where = _new(drawn, taken)
        fresh = np.concatenate([fresh, accepted])
        taken = np.union1d(taken, accepted)
        need -= np.bincount(graph[where], minlength=len(need))
    rest = [_listed(edges, int(g), int(need[g]), taken, streams) for g in np.flatnonzero(need)]
    keys = np.concatenate([fresh, *rest])
    return np.stack(np.divmod(keys, max(edges.graph.n, 1)))


def _drawn_pairs(edges: Edges, graph: Integers, streams: Streams, salt: int) -> Integers:
    """Keys of pairs of different nodes drawn uniformly, one for every entry of ``graph``."""
    sizes = np.diff(edges.ptr)[graph]
    counts = np.bincount(graph, minlength=len(edges.counts))
    position = np.arange(len(graph)) - (np.cumsum(counts) - counts)[graph]
    first = (streams.uniform(graph, position, salt) * sizes).astype(np.int64)
    second = (streams.uniform(graph, position, salt + 1) * (sizes - 1)).astype(np.int64)
    second += second >= first
    low, high = np.minimum(first, second), np.maximum(first, second)
    return np.asarray((low + edges.ptr[graph]) * edges.graph.n + high + edges.ptr[graph])


def _new(drawn: Integers, taken: Integers) -> tuple[Integers, Integers]:
    """Keys that are not taken, each once, and where they were drawn first."""
    keys, where = np.unique(drawn, return_index=True)
    fresh = ~np.isin(keys, taken, assume_unique=True)
    return keys[fresh], where[fresh]


def _listed(edges: Edges, graph: int, count: int, taken: Integers, streams: Streams) -> Integers:
    """Some of the free pairs of one graph, after listing all of them."""
    start, size = edges.ptr[graph], edges.ptr[graph + 1] - edges.ptr[graph]
    low = np.repeat(np.arange(size), np.arange(size)[::-1])
    high = ranges(np.arange(1, size + 1), np.arange(size)[::-1])
    keys = np.setdiff1d((low + start) * edges.graph.n + high + start, taken, assume_unique=True)
    numbers = streams.uniform(np.full(len(keys), graph), np.arange(len(keys)), 2 * ROUNDS)
    return keys[np.argsort(numbers)[:count]]
