"""Flips as numbers between 0 and 1: projections onto the budget, and the search of PR-BCD and of topology PGD."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

from grb.attack.base import AttackContext
from grb.attack.losses import Loss, masked_cross_entropy, tanh_margin
from grb.attack.modification.base import SearchState, finished
from grb.attack.modification.gradient import Gradient, Victim
from grb.attack.modification.pairs import PairSpace, contains, positions_of, without
from grb.attack.modification.scores import GradientScores, victim_of, weights
from grb.attack.modification.selectors import BLOCK, accept
from grb.attack.modification.selectors import best as ranked
from grb.attack.setting_checks import at_least, fractions, positive
from grb.graph import Adjacency, GraphEdit

BISECTIONS = 40
# fraction of the flips that the first refinement exchanges
REFINED = 0.5
# absent pairs whose gradients a refinement looks at: by the closed form, and by autograd
POOL, AUTOGRAD_POOL = 2**22, 2**16


def project(weights: Tensor, budget: float) -> Tensor:
    r"""The nearest point of :math:`\{0 \le s \le 1,\ \sum s \le B\}`.

    It is :math:`\mathrm{clip}(s - \mu, 0, 1)` with the smallest :math:`\mu \ge 0` that keeps the budget, found by bisection.

    References:
        Xu et al., *Topology Attack and Defense for Graph Neural Networks*, IJCAI 2019.

    >>> [round(float(s), 2) for s in project(torch.tensor([0.9, 0.8, 0.3]), 1)]
    [0.55, 0.45, 0.0]
    """
    clipped = weights.clamp(0.0, 1.0)
    if float(clipped.sum(dtype=torch.float64)) <= budget:
        return clipped
    low, high = max(0.0, float(weights.min()) - 1), float(weights.max())
    up = weights
    for step in range(BISECTIONS):
        if step % 4 == 0:
            up = up[up > low]  # the others will be zero
        middle = (low + high) / 2
        if float((up - middle).clamp_(0.0, 1.0).sum(dtype=torch.float64)) > budget:
            low = middle
        else:
            high = middle
    return (weights - high).clamp_(0.0, 1.0)


def project_locally(weights: Tensor, pairs: Tensor, limits: Tensor, budget: float) -> Tensor:
    """A point within the global budget and those of the nodes: the largest weights are served first.

    A pair gets the least of its weight, what is left of the budget and what is left at both of its ends. As in
    :func:`~grb.attack.modification.selectors.accept`, each round decides many pairs, with the same result as one by one.

    Args:
        weights: [p].
        pairs: [2, p].
        limits: Limits of the nodes, [n].
        budget: Limit of all pairs together.

    References:
        Gosch et al., *Adversarial Training for Graph Neural Networks: Pitfalls, Solutions, and New Directions*,
        NeurIPS 2023.
    """
    order = torch.argsort(weights, descending=True, stable=True)
    wanted, ends = weights[order].clamp(0.0, 1.0).double(), pairs[:, order]
    given = torch.zeros_like(wanted)
    room = limits.double()
    waiting = (wanted > 0).nonzero().flatten()
    while len(waiting):
        own, nodes = wanted[waiting], ends[:, waiting]
        before, first = sums_before(nodes, own)
        fits = (before + own <= room[nodes]).all(0)
        undisputed = first.all(0)  # no open pair before it has one of its ends
        served = torch.where(fits, own, torch.minimum(own, room[nodes].min(0).values).clamp_min(0.0))
        decided = fits | undisputed
        given[waiting[decided]] = served[decided]
        room = room - torch.zeros_like(room).index_add_(0, nodes[:, decided].flatten(), served[decided].repeat(2))
        stuck = (room[nodes] <= 1e-12).any(0)
        waiting = waiting[~(decided | stuck)]
    before = given.cumsum(0) - given
    result = torch.empty_like(weights)
    result[order] = torch.minimum(given, (budget - before).clamp_min(0.0)).to(weights.dtype)
    return result


def sums_before(nodes: Tensor, amounts: Tensor) -> tuple[Tensor, Tensor]:
    """For both ends of every pair, the sum over earlier pairs with that end, and whether there are none, [2, p] each."""
    p = nodes.shape[1]
    flat = nodes.T.flatten()
    order = torch.argsort(flat, stable=True)
    sorted_nodes, sorted_amounts = flat[order], amounts.repeat_interleave(2)[order]
    start = torch.ones(2 * p, dtype=torch.bool)
    start[1:] = sorted_nodes[1:] != sorted_nodes[:-1]
    starts = torch.where(start, torch.arange(2 * p), 0).cummax(0).values
    running = sorted_amounts.cumsum(0) - sorted_amounts
    before, first = torch.empty(2 * p, dtype=amounts.dtype), torch.empty(2 * p, dtype=torch.bool)
    before[order], first[order] = running - running[starts], start
    return before.view(p, 2).T, first.view(p, 2).T


@dataclass(frozen=True, eq=False)
class Block:
    """Some pairs and how far each is flipped.

    Args:
        numbers: Numbers of the pairs, ascending, [b].
        weights: 0 to 1, [b].
        scores: Change of the loss by a full flip, to first order, when last looked at, [b].
    """

    numbers: Tensor
    weights: Tensor
    scores: Tensor

    @classmethod
    def fresh(cls, numbers: Tensor) -> Block:
        """A block of pairs whose weights are all zero."""
        zeros = torch.zeros(len(numbers))
        return cls(numbers, zeros, zeros)


@dataclass(frozen=True, kw_only=True)
class Relaxation:
    """Settings of an attack that rounds weights of pairs to whole flips.

    Args:
        max_final_samples: Roundings at the end, the heaviest pairs among them.
        refinements: Exchanges of whole flips by gradients after the rounding (:func:`refined`); 0 for none, as in the papers.
        pool: Absent pairs whose gradients every exchange looks at.
        loss: What is raised, per target; the tanh-margin in units of the median clean margin if None.
        refined_by: Losses that the exchanges raise in turn; the loss of the search alone if empty.
    """

    max_final_samples: int = 20
    refinements: int = 16
    pool: int = POOL
    loss: Loss | None = None
    refined_by: Sequence[Loss] = (masked_cross_entropy, tanh_margin)
    constants: ClassVar[Mapping[str, Any]] = {"refinements": 0}
    """Those of the paper."""

    @classmethod
    def paper(cls: type[_Relaxation], **changes: Any) -> _Relaxation:
        """The attack with the constants of its paper: no refinement among them."""
        return cls(**{**cls.constants, **changes})

    def searched(
        self,
        context: AttackContext,
        state: SearchState,
        size: int,
        steps: int,
        rate: Callable[[int], float],
        generator: torch.Generator,
        resample: int = 0,
    ) -> GraphEdit:
        """The edit that a :class:`Search` with these settings finds."""
        victim = victim_of(context, self.loss)
        refining = tuple(victim_of(context, loss) for loss in self.refined_by) or (victim,)
        rounding = self.max_final_samples, generator, self.refinements, self.pool, refining
        return Search(context, victim, state, size, steps, resample, rate, *rounding)()


_Relaxation = TypeVar("_Relaxation", bound=Relaxation)


@dataclass(frozen=True, kw_only=True)
class BlockSteps:
    """Settings of gradient steps on a random block of pairs, as PR-BCD makes them.

    Args:
        search_space_size: Pairs in the block; at least four times the budget is used.
        n_epoch_resampling: Fraction of the steps in which the block changes.
        lr_factor: Step size of the weights; it is scaled by budget / nodes and falls once the block is kept.
    """

    search_space_size: int = 500_000
    n_epoch_resampling: float = 0.75
    lr_factor: float = 100.0

    def check_blocks(self) -> None:
        """Refuse what no search takes."""
        at_least(1, search_space_size=self.search_space_size)
        positive(lr_factor=self.lr_factor)
        fractions(n_epoch_resampling=self.n_epoch_resampling)

    def schedule(self, state: SearchState, size: int, steps: int) -> tuple[int, Callable[[int], float]]:
        """Number of first steps in which the block changes, and the step size in each epoch.

        Args:
            state: The clean graph and the budget.
            size: Pairs in the block.
            steps: Number of steps.
        """
        resample = math.ceil(self.n_epoch_resampling * steps)
        spread = max(math.log2(state.space.count / size), 1.0)
        base = state.left / state.clean.n / 2 * self.lr_factor * spread
        return resample, lambda epoch: base / math.sqrt(max(0, epoch - resample) + 1)


@dataclass(frozen=True, eq=False)
class Search:
    """Projected gradient ascent on the weights of a block of pairs; every so often its lower half is drawn anew.

    Args:
        context: With a model.
        victim: That model.
        state: The clean graph.
        size: Pairs in the block; all there are if there are no more.
        epochs: Steps.
        resample: Number of first steps in which the lower half of the block is replaced after each step.
        rate: Step size in each epoch, for gradients of the mean loss.
        samples: Roundings that are tried at the end.
        generator: The only source of randomness.
        refinements: Exchanges of whole flips after that, see :func:`refined`.
        pool: Absent pairs that each of these looks at.
        refining: The model with the losses that these raise in turn; with the loss of the search if empty.
    """

    context: AttackContext
    victim: Victim
    state: SearchState
    size: int
    epochs: int
    resample: int
    rate: Callable[[int], float]
    samples: int
    generator: torch.Generator
    refinements: int = 0
    pool: int = POOL
    refining: tuple[Victim, ...] = ()

    def __call__(self) -> GraphEdit:
        """Run the search and round its weights to an edit."""
        block = Block.fresh(self._draw(self.size, None))
        if not len(block.numbers):
            return finished(self.context, self.state)
        whole = len(block.numbers) < self.size or len(block.numbers) == self._free
        best = _Best()
        for epoch in range(self.epochs):
            if epoch == self.resample and best.block is not None:
                block = best.block
            block = self._step(block, self.rate(epoch))
            rounded = self._rounded(block)
            self._judge(rounded, block, best)
            if epoch + 1 < self.resample and not whole:
                block = self._resampled(block)
        if best.block is not None:
            self._sample(best.block, best)
        if self.refinements:
            victims = self.refining or (self.victim,)
            found = best.state or self.state
            return finished(
                self.context,
                refined(self.context, self.victim, victims, found, self.refinements, self.generator, self.pool),
            )
        return finished(self.context, best.state or self.state)

    @property
    def _free(self) -> int:
        return self.state.space.count if self.state.may_add else len(self.state.edges)

    def _draw(self, count: int, apart_from: Tensor | None) -> Tensor:
        state = self.state
        if state.may_add:
            numbers = state.space.draw(count, self.generator, apart_from)
            return numbers if state.may_drop else without(numbers, state.edges)
        edges = state.edges if apart_from is None else without(state.edges, apart_from)
        chosen = torch.randperm(len(edges), generator=self.generator)[:count]
        return edges[chosen.sort().values]

    def _step(self, block: Block, rate: float) -> Block:
        gradient = self.victim.gradient(relaxed(self.state, block))
        scores = of_numbers(gradient, self.state.space, block.numbers)
        positions = positions_of(block.numbers, self.state.edges)
        scores[positions] *= -1.0
        if self.state.clean.adj.values is not None:
            scores[positions] *= weights(self.state.clean, self.state.space.pairs(block.numbers[positions]))
        moved = block.weights + rate * scores
        budget = self.state.left
        limits = self.state.room
        if limits is None:
            return Block(block.numbers, project(moved, budget), scores)
        # only what is above zero can be served, so the rest need not be sorted
        up = (moved > 0).nonzero().flatten()
        projected = torch.zeros_like(moved)
        pairs = self.state.space.pairs(block.numbers[up])
        projected[up] = project_locally(moved[up], pairs, limits, budget)
        return Block(block.numbers, projected, scores)

    def _rounded(self, block: Block, chosen: Tensor | None = None) -> SearchState:
        """The heaviest pairs as full flips, ``chosen`` ones first. A pair whose flip would lower the loss is none."""
        positions = (block.weights > 0).nonzero().flatten()
        keys = block.weights[positions]
        if chosen is not None:
            keys = keys + chosen
        wanted = self.state.left if self.state.room is None and self.state.spare is None else 8 * self.state.left
        if len(positions) < wanted:  # where weights are zero, gradients decide
            rest = torch.where(block.weights > 0, 0.0, block.scores)
            more = rest.topk(min(wanted - len(positions), len(rest))).indices
            more = more[rest[more] > 0]
            positions, keys = torch.cat([positions, more]), torch.cat([keys, rest[more] - rest.max() - 1])
        top = keys.topk(min(wanted, len(keys)), sorted=False).indices
        top = top[torch.argsort(keys[top], descending=True, stable=True)]
        pairs = self.state.space.pairs(block.numbers[positions[top]])
        return self.state.flip(accept(self.state, pairs, self.state.left))

    def _judge(self, rounded: SearchState, block: Block, best: _Best) -> None:
        loss, kept = self.victim.judge(rounded.adj)
        self.context.report(loss, kept)
        best.update(rounded, block, loss, kept)

    def _resampled(self, block: Block) -> Block:
        """The upper half of the block, and new pairs in place of the lower one."""
        half = len(block.numbers) - len(block.numbers) // 2
        active = block.weights > 0
        if int(active.sum()) > half:
            least = block.weights.topk(half, sorted=False).values.min()
            active = block.weights >= least
        stay = active.nonzero().flatten()
        kept = block.numbers[stay]
        fresh = self._draw(self.size - len(kept), kept)
        numbers, order = torch.cat([kept, fresh]).sort()
        zeros = torch.zeros(len(fresh))
        return Block(
            numbers,
            torch.cat([block.weights[stay], zeros])[order],
            torch.cat([block.scores[stay], zeros])[order],
        )

    def _sample(self, block: Block, best: _Best) -> None:
        """Random roundings by the weights; what one leaves of the budget goes to the heaviest other pairs."""
        weights = block.weights[block.weights > 0]
        for _ in range(self.samples - 1):
            coins = torch.rand(len(weights), generator=self.generator) < weights
            if int(coins.sum()) <= self.state.left:
                self._judge(self._rounded(block, coins.to(weights.dtype)), block, best)


def refined(
    context: AttackContext,
    judge: Victim,
    victims: Sequence[Victim],
    state: SearchState,
    rounds: int,
    generator: torch.Generator,
    pool: int = POOL,
) -> SearchState:
    r"""Exchange whole flips by their gradients: weights between 0 and 1 are worth less once they are rounded.

    In every round the gradient at the rounded graph says what each flip is worth; those of least worth are taken back, and
    the budget is spent on the pairs with the largest gradient. The set only gets better: a round in vain is undone, and the
    next one with that loss exchanges fewer. Losses take turns to propose, because a set that no exchange by one of them
    improves is often improved by another; one of them judges what equally many labels survive.

    Args:
        context: For reports.
        judge: The model under attack, with the loss that judges.
        victims: The model under attack, once with each loss that proposes.
        state: The flips so far.
        rounds: How many.
        generator: The only source of randomness.
        pool: Absent pairs that a round looks at; fewer where gradients have no closed form.
    """
    loss, kept = judge.judge(state.adj)
    shares = [REFINED] * len(victims)
    for number in range(rounds):
        turn = number % len(victims)
        tried = _exchanged(victims[turn], state, shares[turn], generator, pool)
        new_loss, new_kept = judge.judge(tried.adj)
        if (new_kept, -new_loss) < (kept, -loss):
            state, loss, kept = tried, new_loss, new_kept
        else:
            shares[turn] = max(shares[turn] / 2, 1e-9)
        context.report(loss, kept)
    return state


def _exchanged(victim: Victim, state: SearchState, share: float, generator: torch.Generator, pool: int) -> SearchState:
    pairs = state.pairs
    count = pairs.shape[1]
    if count:
        own = GradientScores(victim.gradient(state.adj), state.clean).gradient.of(pairs)
        worth = torch.where(state.clean.adj.has(pairs), -own, own)
        gone = torch.zeros(count, dtype=torch.bool)
        gone[torch.argsort(worth, stable=True)[: max(1, int(share * count))]] = True
        if state.spare is not None:  # a node must not lose its last neighbour
            gone[: state.edit.add.shape[1]] = False
        state = state.undo(gone)
    salt = int(torch.randint(2**62, (1,), generator=generator))
    while state.left > 0:
        wanted = max(1, math.ceil(state.left / 2))
        scores = GradientScores(victim.gradient(state.adj), state.clean)
        looked_at = pool if victim.closed_form else min(pool, AUTOGRAD_POOL)
        listed = ranked(state, scores, 64 * wanted if wanted > 1 else 1, looked_at, 0.0, salt, generator)
        chosen = accept(state, listed.pairs, wanted, disjoint=True)
        if not chosen.shape[1]:
            break
        state = state.flip(chosen)
    return state


@dataclass
class _Best:
    """The rounded graph with the lowest fraction of kept labels, then the highest loss."""

    state: SearchState | None = None
    block: Block | None = None
    loss: float = -torch.inf
    kept: float = torch.inf

    def update(self, state: SearchState, block: Block, loss: float, kept: float) -> None:
        if (kept, -loss) < (self.kept, -self.loss):
            self.state, self.block, self.loss, self.kept = state, block, loss, kept


def relaxed(state: SearchState, block: Block) -> Adjacency:
    """The clean graph with the pairs of a block flipped as far as their weights say; weights of zero cost nothing."""
    active = (block.weights > 0).nonzero().flatten()
    numbers, shares = block.numbers[active], block.weights[active]
    pairs = state.space.pairs(numbers)
    present = contains(state.edges, numbers)
    clean, n = state.clean.adj, state.clean.n
    wide = clean.edited(pairs[:, ~present], pairs[:, :0], base=n, n=n)
    values = torch.ones(wide.pattern.entries) if wide.values is None else wide.values.clone()
    full = values[torch.searchsorted(wide.keys, pairs[0] * n + pairs[1])]
    flipped = torch.where(present, full * (1 - shares), shares)
    for a, b in (pairs, pairs.flip(0)):
        values[torch.searchsorted(wide.keys, a * n + b)] = flipped
    return Adjacency(wide.pattern, values)


def of_numbers(gradient: Gradient, space: PairSpace, numbers: Tensor) -> Tensor:
    """Gradients of many pairs, [b]; by whole blocks of rows where the pairs are dense enough for that to be cheaper."""
    if len(numbers) * 3 < space.count:
        parts = [gradient.of(space.pairs(some)) for some in numbers.split(BLOCK)]
        return torch.cat(parts) if parts else torch.zeros(0)
    found = torch.empty(len(numbers), dtype=torch.get_default_dtype())
    step = max(1, BLOCK // max(space.n, 1))
    for first in range(0, space.ends, step):
        last = min(first + step, space.ends)
        start, stop = torch.searchsorted(numbers, torch.tensor([space.start(first), space.start(last)])).tolist()
        if start < stop:
            block = gradient.block(space.order[first:last], space.order[first:])
            rows, columns = space.cells(numbers[start:stop]) - first
            found[start:stop] = block.view(-1)[rows * block.shape[1] + columns]
    return found
