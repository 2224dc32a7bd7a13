"""Coarsening: pairs of neighbours become one node, seen from outside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from grb.errors import DataError
from grb.graph import Graph
from grb.perturb.base import Drawn, Integers, Streams, mean_rows, owners, ranges
from grb.perturb.edges import Edges

MAX_LEVELS = 4


@dataclass(frozen=True)
class Coarsen(Drawn):
    r"""Contract a random maximal matching, and give every node the edges of the node that it became part of.

    Every level joins the ends of a maximal set of edges without common ends, so that a graph loses up to half of its nodes; the
    next level does so with what came out. The coarse graph is then lifted back: two nodes are neighbours if they are in one
    cluster or if an edge joins their clusters, :math:`A' = P^\top A_c P`. Nodes, features and labels stay; who of a cluster had
    an edge is forgotten. A lifted edge has the mean weight and the mean
    features of the edges that it stands for.

    Args:
        levels: Number of contractions; clusters have up to :math:`2^{levels}` nodes.

    References:
        Loukas, *Graph Reduction with Spectral and Cut Guarantees*, JMLR 2019 (coarsening and lifting).
        Karypis and Kumar, *A Fast and High Quality Multilevel Scheme for Partitioning Irregular Graphs*, 1998 (matchings).
    """

    levels: int = 1
    title = "Coarsen"

    def __post_init__(self) -> None:
        if not 1 <= self.levels <= MAX_LEVELS:
            raise DataError(f"levels is {self.levels}, but 1 to {MAX_LEVELS} is needed")

    def __call__(self, graph: Graph, generator: torch.Generator | None = None) -> Graph:
        """Return the graph with the edges of its coarse version."""
        edges = Edges.of(graph)
        streams = Streams.draw(generator)
        cluster = np.arange(graph.n)
        owner = owners(edges.ptr)
        for level in range(self.levels):
            coarse = _distinct(cluster[edges.ends], graph.n)
            cluster = _contracted(coarse, owner, streams, level)[cluster]
        return _lifted(edges, cluster)


def _distinct(ends: Integers, n: int) -> Integers:
    """Pairs of different nodes, each once, the smaller first and ascending, [2, m]."""
    low, high = ends.min(0), ends.max(0)
    keys = np.unique((low * n + high)[low != high])
    return np.stack(np.divmod(keys, max(n, 1)))


def _contracted(ends: Integers, owner: Integers, streams: Streams, level: int) -> Integers:
    """What every node becomes: the smaller node of its pair in a random maximal matching, or itself, [n].

    In every round the edges are chosen that come before all others at both ends; a round matches a constant fraction.
    """
    n, graph = len(owner), owner[ends[0]]
    counts = np.bincount(graph, minlength=int(owner[-1]) + 1 if n else 0)
    position = np.arange(len(graph)) - (np.cumsum(counts) - counts)[graph]
    turn = np.empty(len(graph), dtype=np.int64)
    turn[np.argsort(streams.uniform(graph, position, level), kind="stable")] = np.arange(len(graph))
    became, left = np.arange(n), np.arange(len(graph))
    while len(left):
        first = np.full(n, len(graph), dtype=np.int64)
        # flat, because numpy 2.4 forgets rows of two-dimensional indices whose values it has to repeat
        np.minimum.at(first, ends[:, left].ravel(), np.tile(turn[left], 2))
        chosen = left[(first[ends[:, left]] == turn[left]).all(0)]
        became[ends[1, chosen]] = ends[0, chosen]
        taken = np.zeros(n, dtype=bool)
        taken[ends[:, chosen]] = True
        left = left[~taken[ends[:, left]].any(0)]
    return became


def _lifted(edges: Edges, cluster: Integers) -> Graph:
    """The graph in which members of joined clusters, and of one cluster, are neighbours."""
    n = edges.graph.n
    sizes = np.bincount(cluster, minlength=n)
    members = np.argsort(cluster, kind="stable")
    starts = np.cumsum(sizes) - sizes
    ends = cluster[edges.ends]
    low, high = ends.min(0), ends.max(0)
    keys, index = np.unique(low * n + high, return_inverse=True)
    a, b = np.divmod(keys, max(n, 1))
    counts = sizes[a] * sizes[b]
    cell, which = ranges(np.zeros_like(counts), counts), np.repeat(np.arange(len(keys)), counts)
    u = members[starts[a][which] + cell // sizes[b][which]]
    v = members[starts[b][which] + cell % sizes[b][which]]
    once = (a != b)[which] | (u < v)
    pairs = np.sort(np.stack([u, v])[:, once], axis=0)
    weights, features = (
        None if each is None else mean_rows(each, index, len(keys))[which[once]]
        for each in (edges.weights, edges.features)
    )
    return edges.replaced(pairs, weights, features)
