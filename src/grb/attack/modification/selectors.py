"""Which pairs are flipped, given their scores: all at once, in rounds with fresh scores, or from random blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from grb.attack.modification.base import PairScores, Score, SearchState
from grb.attack.modification.pairs import contains, ordered

# scores of this number of pairs are processed together
BLOCK = 2**21
# the search ends after this number of random pairs without a single allowed one
LARGEST = 2**24
NEVER = -math.inf


@dataclass(frozen=True, eq=False)
class Ranking:
    """Pairs in the order in which they should be flipped.

    Args:
        pairs: [2, m].
        scores: Descending, [m].
    """

    pairs: Tensor
    scores: Tensor


@dataclass(frozen=True)
class TopK:
    """Scores once, then the best pairs.

    Args:
        pool: Absent pairs that are looked at; where there are more, this number is drawn at random.
    """

    pool: int = 2**24

    def __call__(self, state: SearchState, score: Score, generator: torch.Generator) -> SearchState:
        """Flip the pairs with the highest scores."""
        return Greedy(refresh=max(state.left, 1), pool=self.pool)(state, score, generator)


@dataclass(frozen=True)
class Greedy:
    """The best pairs again and again, with fresh scores after every few flips.

    Args:
        refresh: Flips between two computations of the scores; 1 is the exact greedy choice.
        pool: Absent pairs that are looked at; where there are more, this number is drawn at random in every round.
        above: Only pairs whose score is larger are flipped.
        disjoint: No node twice between two computations: the scores of a node's other pairs are out of date most.
    """

    refresh: int = 1
    pool: int = 2**24
    above: float = NEVER
    disjoint: bool = False

    def __call__(self, state: SearchState, score: Score, generator: torch.Generator) -> SearchState:
        """Flip pairs in rounds, with new scores in each."""
        salt = int(torch.randint(2**62, (1,), generator=generator))
        while state.left > 0:
            wanted = min(self.refresh, state.left)
            kept = 64 * wanted if self.disjoint and wanted > 1 else _spare(state, wanted)
            found = best(state, score(state), kept, self.pool, self.above, salt, generator)
            chosen = accept(state, found.pairs, wanted, disjoint=self.disjoint)
            if not chosen.shape[1]:
                break
            state = state.flip(chosen)
        return state


@dataclass(frozen=True)
class RandomBlocks:
    """The best pairs of a fresh random block in every round, an equal fraction of the budget in each.

    Args:
        rounds: How many; one flip per round at least.
        block: Pairs in a block.
        above: Only pairs whose score is larger are flipped; what a round leaves over goes to the next ones.
    """

    rounds: int
    block: int
    above: float = NEVER

    def __call__(self, state: SearchState, score: Score, generator: torch.Generator) -> SearchState:
        """Flip the best pairs of random blocks."""
        salt = int(torch.randint(2**62, (1,), generator=generator))
        rounds = min(self.rounds, state.left)
        for position in range(rounds):
            wanted = math.ceil(state.left / (rounds - position))
            if wanted == 0:
                break
            scores = score(state)
            numbers = state.space.draw(self.block, generator)
            drops = _among(state, numbers)
            parts = [Ranking(drops, scores.drops(drops)), *_added(state, scores, numbers)]
            found = _merged(parts, _spare(state, wanted), self.above, state.clean.n, salt)
            state = state.flip(accept(state, found.pairs, wanted))
        return state


@dataclass(frozen=True)
class Uniform:
    """Any pairs with a finite score, uniformly at random.

    Args:
        count: Flips at most; the whole budget if not given.
    """

    count: int | None = None

    def __call__(self, state: SearchState, score: Score, generator: torch.Generator) -> SearchState:
        """Flip random pairs among those with a finite score."""
        wanted = state.left if self.count is None else min(self.count, state.left)
        salt = int(torch.randint(2**62, (1,), generator=generator))
        block = max(4 * wanted, 2**10)
        scores = score(state)
        while wanted > 0:
            numbers = state.space.draw(block, generator)
            drops = _among(state, numbers)
            parts = [Ranking(drops, scores.drops(drops)), *_added(state, scores, numbers)]
            found = _merged(parts, sum(len(part.scores) for part in parts), NEVER, state.clean.n, salt)
            chosen = accept(state, found.pairs, wanted)
            if not chosen.shape[1] and (not state.may_add or block >= min(state.space.count, LARGEST)):
                break
            state, wanted = state.flip(chosen), wanted - chosen.shape[1]
            block *= 4 if chosen.shape[1] == 0 else 1
        return state


def best(
    state: SearchState,
    scores: PairScores,
    count: int,
    pool: int,
    above: float,
    salt: int,
    generator: torch.Generator,
) -> Ranking:
    """The ``count`` best pairs that may be flipped one by one, by score, ties by a seeded shuffle.

    Absent pairs are looked at exhaustively if there are at most ``pool`` of them. Memory is that of a block.
    """
    drops = state.drops
    parts = [Ranking(drops, scores.drops(drops))]
    if state.may_add:
        if state.space.count <= pool:
            parts += _exhaustive(state, scores, count, above, salt)
        else:
            parts += _added(state, scores, state.space.draw(pool, generator))
    return _merged(parts, count, above, state.clean.n, salt)


def accept(state: SearchState, pairs: Tensor, count: int, *, disjoint: bool = False) -> Tensor:
    """The first ``count`` pairs, in order, that may be flipped together; equal to trying them one after the other.

    In every round those are taken whose ends have room even if all open pairs before them are taken; those with an end
    that has none left are given up. The first open pair is always one or the other.
    """
    limits = _limits(state, pairs)
    if disjoint:
        limits.append((torch.ones(state.clean.n, dtype=torch.int64), torch.ones(pairs.shape[1], dtype=torch.bool)))
    if not limits:
        return pairs[:, :count]
    taken = torch.zeros(pairs.shape[1], dtype=torch.bool)
    waiting = torch.arange(pairs.shape[1])
    while len(waiting) and int(taken[: waiting[0]].sum()) < count:
        fits, stuck = torch.ones_like(waiting, dtype=torch.bool), torch.zeros_like(waiting, dtype=torch.bool)
        for limit, counted in limits:
            room = limit - torch.bincount(pairs[:, taken & counted].flatten(), minlength=len(limit))
            ends, counts = pairs[:, waiting], counted[waiting]
            fits &= ~counts | (earlier(ends, counts) < room[ends]).all(0)
            stuck |= counts & (room[ends] <= 0).any(0)
        taken[waiting[fits]] = True
        waiting = waiting[~(fits | stuck)]
    return pairs[:, taken.nonzero().flatten()[:count]]


def _limits(state: SearchState, pairs: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Limits of the nodes, each with the pairs that count against it."""
    found = []
    if state.room is not None:
        found.append((state.room, torch.ones(pairs.shape[1], dtype=torch.bool)))
    if state.spare is not None:
        found.append((state.spare, state.clean.adj.has(pairs)))
    return found


def earlier(ends: Tensor, counted: Tensor) -> Tensor:
    """For both ends of every pair, how many counted pairs before it have the same end, [2, p]."""
    p = ends.shape[1]
    nodes = ends.T.flatten()  # u0 v0 u1 v1 ...: in the order of the pairs
    order = torch.argsort(nodes, stable=True)
    weights = counted.long().repeat_interleave(2)[order]
    running = weights.cumsum(0) - weights
    sorted_nodes = nodes[order]
    first = torch.ones(2 * p, dtype=torch.bool)
    first[1:] = sorted_nodes[1:] != sorted_nodes[:-1]
    starts = torch.where(first, torch.arange(2 * p), 0).cummax(0).values
    before = torch.empty(2 * p, dtype=torch.int64)
    before[order] = running - running[starts]
    return before.view(p, 2).T


def _spare(state: SearchState, count: int) -> int:
    """How many of the best pairs to keep: more than wanted where some of them exclude each other."""
    return count if state.room is None and state.spare is None else max(4 * count, 256)


def _among(state: SearchState, numbers: Tensor) -> Tensor:
    """Edges that may go: those in an ascending list of numbers, or all where nothing may be added, [2, r]."""
    drops = state.drops
    return drops[:, contains(numbers, state.space.numbers(drops))] if state.may_add else drops


def _added(state: SearchState, scores: PairScores, numbers: Tensor) -> Iterator[Ranking]:
    for part in numbers.split(BLOCK):
        pairs = state.absent(part)
        yield Ranking(pairs, scores.adds(pairs))


def _exhaustive(state: SearchState, scores: PairScores, kept: int, above: float, salt: int) -> Iterator[Ranking]:
    """The best absent pairs of every block of rows of the triangle."""
    space = state.space
    step = max(1, BLOCK // max(space.n, 1))
    barred = space.cells(torch.cat([state.edges, state.flipped]))
    closed = None if state.room is None else state.room[space.order] <= 0
    for first in range(0, space.ends, step):
        last = min(first + step, space.ends)
        block = scores.add_block(space.order[first:last], space.order[first:])
        # every pair once: what is left of the diagonal stands in an earlier row
        below = torch.ones(last - first, last - first, dtype=torch.bool).tril_()
        block[:, : last - first].masked_fill_(below, NEVER)
        here = barred[:, (barred[0] >= first) & (barred[0] < last)] - first
        block[here[0], here[1]] = NEVER
        if closed is not None:
            block[closed[first:last]] = NEVER
            block[:, closed[first:]] = NEVER
        flat = block.flatten()
        positions = _top_positions(flat, kept, above)
        if len(positions):
            cells = torch.stack([positions // block.shape[1], positions % block.shape[1]]) + first
            part = Ranking(space.order[cells], flat[positions])
            yield _ranked(part, kept, space.n, salt)


def _top_positions(flat: Tensor, kept: int, above: float) -> Tensor:
    """Positions of the ``kept`` largest numbers and of all that equal the last of them, if they are larger than ``above``."""
    if not len(flat) or kept < 1:
        return torch.empty(0, dtype=torch.int64)
    least = flat.max() if kept == 1 else flat.topk(min(kept, len(flat)), sorted=False).values.min()
    if least <= above:
        return (flat > above).nonzero().flatten()
    return (flat >= least).nonzero().flatten()


def _merged(parts: list[Ranking], kept: int, above: float, n: int, salt: int) -> Ranking:
    pairs = torch.cat([part.pairs for part in parts], dim=1)
    scores = torch.cat([part.scores for part in parts])
    positions = _top_positions(scores, kept, above)
    return _ranked(Ranking(pairs[:, positions], scores[positions]), kept, n, salt)


def _ranked(part: Ranking, kept: int, n: int, salt: int) -> Ranking:
    """In descending order, equal ones by a seeded shuffle of all pairs."""
    low, high = ordered(part.pairs)
    turn = torch.argsort(shuffled(low * n + high, salt))
    order = turn[torch.argsort(part.scores[turn], descending=True, stable=True)][:kept]
    return Ranking(part.pairs[:, order], part.scores[order])


def shuffled(keys: Tensor, salt: int) -> Tensor:
    """A random-looking number for every key, the same for the same salt whatever else is asked for (splitmix64)."""
    mixed = keys + salt
    for shift, factor in ((30, -4658895280553007687), (27, -7723592293110705685)):
        mixed = (mixed ^ ((mixed >> shift) & ((1 << (64 - shift)) - 1))) * factor
    return mixed ^ ((mixed >> 31) & ((1 << 33) - 1))
