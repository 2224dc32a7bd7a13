"""RandRewire: random swaps of ends that leave every degree as it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from grb.graph import Graph
from grb.perturb.base import Compat, Drawn, Integers, Streams, check_compat, check_fraction, mean_rows, ranks
from grb.perturb.edges import Edges

# rounds without a single swap after which a graph is given up, or searched in full if it has few edges left
PATIENCE = 24
FEW = 128


@dataclass(frozen=True)
class RandRewire(Drawn):
    r"""Swap the ends of random pairs of edges, every edge at most once, until half of all edges have been moved.

    :math:`(a, b), (c, d)` become :math:`(a, d), (c, b)` or :math:`(a, c), (b, d)`. A swap that would make a self-loop, an
    edge that is there already or one that was there at the start is refused and others are drawn instead: the result is a
    simple graph in which every node has its old degree, and exactly :math:`2 \lfloor s\, m / 2 \rfloor` of the :math:`m`
    edges are new (fewer where no swap is possible, as in a complete graph). Weights and edge features
    move with the first end.

    Args:
        share: Fraction :math:`s` of the edges that move.
        compat: ``"gtaxogym"`` refuses nothing, as the paper's code does, so that edges may meet and become loops. Its
            graphs keep both; here edges that meet become one with their summed weight, and loops go.

    References:
        Liu et al., *Taxonomy of Benchmarks in Graph Representation Learning*, LoG 2022, Section 2.2.
        Maslov and Sneppen, *Specificity and Stability in Topology of Protein Networks*, Science 2002.
    """

    share: float = 0.5
    compat: Compat = None
    title = "RandRewire"

    def __post_init__(self) -> None:
        check_fraction(self.share, "share")
        check_compat(self.compat)

    def __call__(self, graph: Graph, generator: torch.Generator | None = None) -> Graph:
        """Return the graph with randomly swapped edges."""
        edges = Edges.of(graph)
        swaps = np.floor(self.share * edges.counts / 2 + 1e-9).astype(np.int64)
        streams = Streams.draw(generator)
        if self.compat:
            return _merged(edges, _swapped(edges, swaps, streams))
        return edges.replaced(_Rewiring(edges, swaps, streams).run(), edges.weights, edges.features)

    def remarks(self, graph: Graph, rewired: Graph) -> list[str]:
        """Return a sentence if fewer edges moved than asked for, as in dense graphs, where few swaps are possible."""
        if self.compat:
            return []
        before, after = Edges.of(graph), Edges.of(rewired)
        wanted = int(2 * np.floor(self.share * before.counts / 2 + 1e-9).sum())
        moved = int((~_among(after.keys, before.keys)).sum())
        if moved >= wanted:
            return []
        total = max(int(before.counts.sum()), 1)
        return [
            f"RandRewire moved {moved} of {total} edges ({100 * moved / total:.1f} %) instead of {wanted}: in graphs this "
            "dense no more can move while every degree stays"
        ]


def _pairs(owner: Integers, position: Integers, swaps: Integers, streams: Streams, salt: int) -> Integers:
    """Disjoint random pairs of elements of the same owner, as many per owner as asked for or as there are, [2, p]."""
    order, rank = ranks(owner, streams.uniform(owner, position, salt))
    there = np.minimum(swaps, np.bincount(owner, minlength=len(swaps)) // 2)
    chosen = order[rank < 2 * there[owner[order]]]
    return np.stack([chosen[0::2], chosen[1::2]])


def _some_pairs(owner: Integers, position: Integers, swaps: Integers, streams: Streams, salt: int) -> Integers:
    """The same where only few of the elements are asked for: drawn with replacement, without pairs that meet an earlier one."""
    counts = np.bincount(owner, minlength=len(swaps))
    graph = np.repeat(np.arange(len(swaps)), swaps)
    number = np.arange(len(graph)) - (np.cumsum(swaps) - swaps)[graph]
    starts = (np.cumsum(counts) - counts)[graph]
    drawn = [starts + (streams.uniform(graph, number, salt + i) * counts[graph]).astype(np.int64) for i in (0, 1)]
    pairs = np.stack(drawn)[:, drawn[0] != drawn[1]]
    once = np.zeros(pairs.size, dtype=bool)
    once[np.unique(pairs.T.ravel(), return_index=True)[1]] = True
    return pairs[:, once.reshape(-1, 2).all(1)]


def _ends(first: Integers, second: Integers, crossed: NDArray[np.bool_]) -> tuple[Integers, Integers]:
    """The new edges of swaps between edges [2, p]: (a, d), (c, b), or (a, c), (b, d) where crossed; smaller node first."""
    a, b = first
    c, d = np.where(crossed, second[::-1], second)
    ones, others = np.stack([a, d]), np.stack([c, b])
    return np.sort(ones, axis=0), np.sort(others, axis=0)


class _Rewiring:
    """Swaps in rounds: all pairs of a round are drawn at once, and those that fit together are made."""

    def __init__(self, edges: Edges, swaps: Integers, streams: Streams) -> None:
        self.edges, self.streams = edges, streams
        self.ends = edges.ends.copy()
        self.need = swaps.copy()
        self.old = edges.keys  # of the edges at the start, ascending
        self.new = np.zeros(0, dtype=np.int64)  # and of those that came, ascending
        self.untouched = np.ones(len(edges.owner), dtype=bool)

    def run(self) -> Integers:
        """The new edges, [2, m]."""
        stale = np.zeros(len(self.need), dtype=np.int64)
        salt = 0
        while True:
            active = np.where(stale < PATIENCE, self.need, 0)
            pool = np.flatnonzero(self.untouched & (active > 0)[self.edges.owner])
            if not len(pool):
                break
            draw = _pairs if 8 * active.sum() > len(pool) else _some_pairs
            pairs = draw(self.edges.owner[pool], self.edges.position[pool], active, self.streams, 3 * salt)
            made = self._try(pool[pairs], 3 * salt + 2)
            stale = np.where(made > 0, 0, stale + 1)
            salt += 1
        for graph in np.flatnonzero(self.need):
            self._search(int(graph), 3 * salt)
        return self.ends

    def _try(self, pairs: Integers, salt: int) -> Integers:
        """Make those swaps that keep the graph simple, and count them by graph."""
        owner = self.edges.owner[pairs[0]]
        coins = self.streams.uniform(owner, self.edges.position[pairs[0]], salt) < 0.5
        self._make(pairs, coins)
        # the other way round where the first one did not fit
        again = self.untouched[pairs[0]]
        self._make(pairs[:, again], ~coins[again])
        made = np.bincount(owner[~self.untouched[pairs[0]]], minlength=len(self.need))
        self.need -= made
        return made

    def _make(self, pairs: Integers, crossed: NDArray[np.bool_]) -> None:
        ones, others = _ends(self.ends[:, pairs[0]], self.ends[:, pairs[1]], crossed)
        n = self.edges.graph.n
        keys = np.concatenate([ones[0] * n + ones[1], others[0] * n + others[1]])
        loops = np.concatenate([ones[0] == ones[1], others[0] == others[1]])
        once = np.zeros(len(keys), dtype=bool)
        once[np.unique(keys, return_index=True)[1]] = True  # of two swaps that make the same edge, the first
        good = once & ~loops & ~_among(keys, self.old) & ~_among(keys, self.new)
        good = good[: len(ones[0])] & good[len(ones[0]) :]
        self.ends[:, pairs[0, good]], self.ends[:, pairs[1, good]] = ones[:, good], others[:, good]
        self.untouched[pairs[:, good]] = False
        came = np.sort(keys[np.tile(good, 2)])
        self.new = np.insert(self.new, np.searchsorted(self.new, came), came)

    def _search(self, graph: int, salt: int) -> None:
        """Every pair of the untouched edges of one graph in random order, if they are few."""
        stop = int(self.edges.counts[: graph + 1].sum())
        own = np.arange(stop - self.edges.counts[graph], stop)
        left = own[self.untouched[own]]
        if not 2 <= len(left) <= FEW:
            return
        taken = {(u, v) for u, v in np.concatenate([self.ends[:, own], self.edges.ends[:, own]], axis=1).T.tolist()}
        pairs = np.stack(np.triu_indices(len(left), 1))
        numbers = self.streams.uniform(np.full(pairs.shape[1], graph), np.arange(pairs.shape[1]), salt)
        for first, second in left[pairs[:, np.argsort(numbers)]].T.tolist():
            if self.need[graph] and self.untouched[first] and self.untouched[second]:
                (a, b), (c, d) = self.ends[:, first].tolist(), self.ends[:, second].tolist()
                for one, other in (((a, d), (c, b)), ((a, c), (b, d))):
                    one, other = (min(one), max(one)), (min(other), max(other))
                    if one[0] != one[1] and other[0] != other[1] and one != other and not {one, other} & taken:
                        taken |= {one, other}
                        self.ends[:, first], self.ends[:, second] = one, other
                        self.untouched[[first, second]] = False
                        self.need[graph] -= 1
                        break


def _among(keys: Integers, known: Integers) -> NDArray[np.bool_]:
    """Whether each key is one of the known ones, which are ascending."""
    if not len(known):
        return np.zeros(len(keys), dtype=bool)
    positions = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.asarray(known[positions] == keys)


def _swapped(edges: Edges, swaps: Integers, streams: Streams) -> Integers:
    """All swaps made, whatever comes out, [2, m]; the random numbers are those of the first graph in every graph."""
    order, rank = ranks(edges.owner, streams.uniform(np.zeros_like(edges.owner), edges.position))
    chosen = order[rank < 2 * swaps[edges.owner[order]]]
    pairs = np.stack([chosen[0::2], chosen[1::2]])
    coins = streams.uniform(np.zeros(pairs.shape[1], dtype=np.int64), edges.position[pairs[0]], 1) < 0.5
    ends = edges.ends.copy()
    ends[:, pairs[0]], ends[:, pairs[1]] = _ends(ends[:, pairs[0]], ends[:, pairs[1]], coins)
    return ends


def _merged(edges: Edges, ends: Integers) -> Graph:
    """A simple graph from edges that may be loops or doubled."""
    weights = np.ones(ends.shape[1], dtype=np.float32) if edges.weights is None else edges.weights
    proper = ends[0] != ends[1]
    keys, position = np.unique(ends[0, proper] * edges.graph.n + ends[1, proper], return_inverse=True)
    summed = np.bincount(position, weights[proper], minlength=len(keys)).astype(np.float32)
    unweighted = bool((summed == 1).all())
    pairs = np.stack(np.divmod(keys, max(edges.graph.n, 1)))
    features = None
    if edges.features is not None:
        features = mean_rows(edges.features[proper], position, len(keys))
    return edges.replaced(pairs, None if unweighted else summed, features)
