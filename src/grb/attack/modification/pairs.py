"""Pairs of nodes by number, so that no attack has to list them all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from grb.graph import Adjacency

# up to this number of pairs, each gets a random key when some are drawn
SHUFFLED = 2**20
# where the pairs are at most this multiple of those drawn, drawn ones are marked instead of sorted
MARKED = 32


@dataclass(frozen=True, eq=False)
class PairSpace:
    r"""The undirected pairs with at least one end among some nodes, each once, numbered 0 to ``count`` - 1.

    In an order of the nodes that has those ends first, they are the first rows of an upper triangle, read row by row:
    row :math:`i` starts at number :math:`i (2n - i - 1) / 2`.

    Args:
        order: All nodes, the ends first, [n].
        ends: How many of them are ends.

    >>> space = PairSpace.touching(4, torch.tensor([2]))
    >>> space.pairs(torch.arange(space.count)).tolist()
    [[2, 2, 2], [0, 1, 3]]
    """

    order: Tensor
    ends: int

    @classmethod
    def touching(cls, n: int, nodes: Tensor) -> PairSpace:
        """Pairs with an end among ``nodes``."""
        others = torch.ones(n, dtype=torch.bool)
        others[nodes] = False
        return cls(torch.cat([nodes.long(), others.nonzero().flatten()]), len(nodes))

    @classmethod
    def everywhere(cls, n: int) -> PairSpace:
        """All pairs of a graph with n nodes."""
        return cls(torch.arange(n), n)

    @property
    def n(self) -> int:
        """Number of nodes."""
        return len(self.order)

    @property
    def count(self) -> int:
        """Number of pairs."""
        return self.start(self.ends)

    @cached_property
    def positions(self) -> Tensor:
        """Where every node stands in the order, [n]."""
        positions = torch.empty_like(self.order)
        positions[self.order] = torch.arange(self.n)
        return positions

    def start(self, row: int) -> int:
        """Number of the first pair of a row."""
        return row * (2 * self.n - row - 1) // 2

    def _starts(self, rows: Tensor) -> Tensor:
        return rows * (2 * self.n - 1 - rows) >> 1

    def cells(self, numbers: Tensor) -> Tensor:
        """Row and column in the triangle, [2, p]: positions in the order, the lower one first."""
        if len(numbers) > 8 * self.ends and bool((numbers.diff() >= 0).all()):
            # many numbers in ascending order: looking up the rows in them is cheaper than the other way round
            bounds = torch.searchsorted(numbers, self._starts(torch.arange(self.ends + 1)))
            rows = torch.repeat_interleave(torch.arange(self.ends), bounds.diff(), output_size=len(numbers))
        else:
            half = self.n - 0.5
            root = torch.sqrt((half * half - 2.0 * numbers.double()).clamp_min_(0.0))
            rows = (half - root).long().clamp_(0, max(self.n - 1, 0))
            # the root of a number beyond 2^53 may be off by one
            rows -= (self._starts(rows) > numbers).long()
            rows += (self._starts(rows + 1) <= numbers).long()
        return torch.stack([rows, numbers - self._starts(rows) + rows + 1])

    def pairs(self, numbers: Tensor) -> Tensor:
        """One of the ends and its partner, [2, p]."""
        return self.order[self.cells(numbers)]

    def numbers(self, pairs: Tensor) -> Tensor:
        """The number of every pair, [p]; -1 for one without an end among the ends."""
        cells = ordered(self.positions[pairs])
        found = self._starts(cells[0]) + cells[1] - cells[0] - 1
        return torch.where(cells[0] < self.ends, found, -1)

    def edges(self, adj: Adjacency) -> Tensor:
        """Ascending numbers of the edges of a graph that belong to this space."""
        found = self.numbers(adj.edges())
        return found[found >= 0].sort().values

    def draw(self, count: int, generator: torch.Generator, apart_from: Tensor | None = None) -> Tensor:
        """Distinct numbers, uniformly at random, ascending; all there are if there are no more.

        Args:
            count: How many.
            generator: The only source of randomness.
            apart_from: Ascending numbers that are not to be drawn.
        """
        taken = torch.empty(0, dtype=torch.int64) if apart_from is None else apart_from
        free = self.count - len(taken)
        count = min(count, free)
        if count == 0:
            return taken[:0]
        if self.count <= SHUFFLED or 2 * count > free:
            return self._draw_most(count, taken, generator)
        if self.count <= MARKED * count:
            return self._draw_marking(count, taken, generator)
        drawn = taken[:0]
        while len(drawn) < count:
            # as many as are missing: never too many, so none has to be thrown away and all sets are equally likely
            fresh = torch.randint(self.count, (count - len(drawn),), generator=generator)
            drawn = torch.unique(torch.cat([drawn, fresh[~contains(taken, fresh)]]))
        return drawn

    def _draw_marking(self, count: int, taken: Tensor, generator: torch.Generator) -> Tensor:
        """The same draws with a mark for every number there is: no sorting, and memory of the order of the draw."""
        closed, drawn = (torch.zeros(self.count, dtype=torch.bool) for _ in range(2))
        closed[taken] = True
        missing = count
        while missing:
            fresh = torch.randint(self.count, (missing,), generator=generator)
            drawn[fresh[~closed[fresh]]] = True
            missing = count - int(torch.count_nonzero(drawn))  # a sum would make numbers of them first
        return drawn.nonzero().flatten()

    def _draw_most(self, count: int, taken: Tensor, generator: torch.Generator) -> Tensor:
        """A random key for every number, and those with the smallest keys: no numbers have to be sorted."""
        keys = torch.empty(self.count, dtype=torch.int64).random_(generator=generator)
        keys[taken] = torch.iinfo(torch.int64).max
        least = keys.kthvalue(count).values
        return (keys <= least).nonzero().flatten()[:count]


def ordered(pairs: Tensor) -> Tensor:
    """The lower of both ids first."""
    return torch.stack([pairs.min(0).values, pairs.max(0).values])


def first_places(numbers: Tensor) -> Tensor:
    """Where every distinct number stands for the first time, ascending.

    >>> first_places(torch.tensor([7, 3, 7, 5])).tolist()
    [0, 1, 3]
    """
    _, back = numbers.unique(return_inverse=True)
    end = len(numbers)
    first = torch.full((end + 1,), end).scatter_reduce(0, back, torch.arange(end), "amin")
    return first[first < end].sort().values


def contains(ascending: Tensor, numbers: Tensor) -> Tensor:
    """Which of the numbers are in an ascending list, [p]."""
    if not len(ascending):
        return torch.zeros_like(numbers, dtype=torch.bool)
    position = torch.searchsorted(ascending, numbers).clamp_(max=len(ascending) - 1)
    return ascending[position] == numbers


def positions_of(ascending: Tensor, numbers: Tensor) -> Tensor:
    """Where those of the numbers that are in an ascending list stand in it."""
    return torch.searchsorted(ascending, numbers[contains(ascending, numbers)])


def without(ascending: Tensor, numbers: Tensor) -> Tensor:
    """An ascending list without some numbers."""
    keep = torch.ones_like(ascending, dtype=torch.bool)
    keep[positions_of(ascending, numbers)] = False
    return ascending[keep]
