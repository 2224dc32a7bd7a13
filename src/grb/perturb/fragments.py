"""Frag-k: a graph cut at random into balls of radius k."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from grb.errors import DataError
from grb.graph import Graph
from grb.perturb.base import Compat, Drawn, Integers, Streams, boundaries, check_compat, filtered, owners


@dataclass(frozen=True)
class Frag(Drawn):
    """Cut into fragments: a random node and all within k steps of it, again and again in what is left.

    Every fragment is connected and has a node from which all others are at most ``k`` steps away, so a path falls into
    pieces of at most 2k + 1 nodes. Only edges between fragments go.

    Args:
        k: Radius; 1 to 3 in the paper.
        compat: ``"gtaxogym"`` uses the same random numbers in every graph of a collection, as the paper's code does.

    The paper says "less than k"; its code, its figures and we take at most k.

    References:
        Liu et al., *Taxonomy of Benchmarks in Graph Representation Learning*, LoG 2022, Section 2.2.
    """

    k: int = 1
    compat: Compat = None

    def __post_init__(self) -> None:
        if self.k < 0:
            raise DataError(f"k is {self.k}, but a fragment needs a radius of 0 or more")
        check_compat(self.compat)

    @property
    def title(self) -> str:
        """Name in the published tables."""
        return f"Frag-k{self.k}"

    def __call__(self, graph: Graph, generator: torch.Generator | None = None) -> Graph:
        """Return the graph without the edges between fragments."""
        label = torch.from_numpy(self.fragments(graph, generator))
        pattern = graph.adj.pattern.to("cpu")
        keep = label[pattern.row_ids.long()] == label[pattern.indices.long()]
        return replace(graph, adj=filtered(graph.adj, keep))

    def fragments(self, graph: Graph, generator: torch.Generator | None = None) -> Integers:
        """The seed of the fragment that every node belongs to, [n]."""
        ptr = boundaries(graph)
        owner = owners(ptr)
        position = np.arange(graph.n) - ptr[owner]
        numbers = Streams.draw(generator).uniform(np.zeros_like(owner) if self.compat else owner, position)
        # the next seed drawn among the nodes that are left is the next one left in a random order
        order = np.argsort(owner + numbers)
        pattern = graph.adj.pattern.to("cpu")
        found = _balls(pattern.indptr.tolist(), pattern.indices.tolist(), order.tolist(), self.k)
        return np.array(found, dtype=np.int64)


@dataclass(frozen=True)
class FragK1(Frag):
    """Frag-k1: a random node and its neighbours, again and again in what is left. Arguments as in :class:`Frag`."""


@dataclass(frozen=True)
class FragK2(Frag):
    """Frag-k2: a random node and all within two steps, again and again in what is left. Arguments as in :class:`Frag`."""

    k: int = 2


@dataclass(frozen=True)
class FragK3(Frag):
    """Frag-k3: a random node and all within three steps, again and again in what is left. Arguments as in :class:`Frag`."""

    k: int = 3


def _balls(indptr: list[int], indices: list[int], order: list[int], k: int) -> list[int]:
    """The seed of every node's ball, [n], if seeds are taken in the given order.

    A plain loop on purpose: it looks at every entry once, and cutting off all balls that cannot touch each other at once,
    by sparse products, took longer on 20,000 nodes.
    """
    found = [-1] * len(order)
    for seed in order:
        if found[seed] >= 0:
            continue
        found[seed] = seed
        front = [seed]
        for _ in range(k):
            nearest = []
            for node in front:
                for near in indices[indptr[node] : indptr[node + 1]]:
                    if found[near] < 0:
                        found[near] = seed
                        nearest.append(near)
            front = nearest
    return found
