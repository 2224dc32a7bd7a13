"""LR-BCD: PR-BCD within a global budget and a budget of every node."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from grb.attack.base import AttackContext, accepts_paper_names
from grb.attack.losses import Loss, tanh_margin
from grb.attack.modification.base import Limits, SearchState, finished
from grb.attack.modification.gradient import Victim
from grb.attack.modification.pairs import positions_of
from grb.attack.modification.relaxation import Block, of_numbers, relaxed, sums_before
from grb.attack.modification.scores import victim_of
from grb.attack.modification.scores import weights as weights_of
from grb.attack.modification.selectors import accept
from grb.attack.setting_checks import at_least, positive
from grb.errors import DataError
from grb.graph import GraphEdit

# weights up to this one are none
NOTHING = 1e-7
# where the kept costs exceed the budget, they are cut off this far below it
SLACK = 0.01


def greedy_projection(weights: Tensor, costs: Tensor, pairs: Tensor, limits: Tensor, budget: float) -> Tensor:
    """Weights within the global budget and those of the nodes, in descending order and all or nothing.

    Pairs at nodes whose costs exceed their budget are looked at one after the other: one that does not fit what is left at
    both of its ends is set to zero, and the first whose cost exceeds what is left of the global budget ends the list. All
    other pairs pass. If what is kept still costs more than the global budget, it is cut off in order. Each round of the
    computation decides many pairs, with the same result as one by one.

    Args:
        weights: Not negative, [p].
        costs: What a pair takes of a budget, [p]: its weight clipped to 1, or one flip.
        pairs: [2, p].
        limits: Budgets of the nodes, [n].
        budget: Budget of all pairs together.

    References:
        Gosch et al., *Adversarial Training for Graph Neural Networks: Pitfalls, Solutions, and New Directions*,
        NeurIPS 2023.

    >>> ends = torch.tensor([[0, 0, 2], [1, 2, 3]])
    >>> p = torch.tensor([0.9, 0.8, 0.7])
    >>> [round(float(w), 1) for w in greedy_projection(p, p, ends, torch.tensor([1, 9, 9, 9]), 2)]
    [0.9, 0.0, 0.7]
    """
    order = torch.argsort(weights, descending=True, stable=True)
    cost, ends = costs[order].double(), pairs[:, order]
    spent = torch.zeros(len(limits), dtype=torch.float64).index_add_(0, ends.flatten(), cost.repeat(2))
    examined = (spent > limits)[ends].any(0)
    kept = ~examined
    kept[examined.nonzero().flatten()] = _fitting(cost[examined], ends[:, examined], limits.double())
    paid = torch.where(kept, cost, 0.0)
    rest = budget - (paid.cumsum(0) - paid)
    beyond = (examined & (rest < cost)).nonzero().flatten()
    if len(beyond):
        kept[beyond[0] :] = False
    paid = torch.where(kept, cost, 0.0).cumsum(0)
    if len(paid) and paid[-1] > budget:
        kept &= paid < budget - SLACK
    result = torch.zeros_like(weights)
    result[order[kept]] = weights[order[kept]].clamp(0.0, 1.0)
    return result


def _fitting(costs: Tensor, ends: Tensor, room: Tensor) -> Tensor:
    """Which pairs fit what those before them leave at both ends, in order, [p]."""
    taken = torch.zeros(len(costs), dtype=torch.bool)
    waiting = torch.arange(len(costs))
    while len(waiting):
        own, nodes = costs[waiting], ends[:, waiting]
        before, _ = sums_before(nodes, own)
        fits = (before + own <= room[nodes]).all(0)
        stuck = (own > room[nodes]).any(0)
        taken[waiting[fits]] = True
        room = room - torch.zeros_like(room).index_add_(0, nodes[:, fits].flatten(), own[fits].repeat(2))
        waiting = waiting[~(fits | stuck)]
    return taken


@accepts_paper_names
@dataclass(frozen=True, kw_only=True)
class LRBCD(Limits):
    r"""Locally constrained randomised block coordinate descent.

    .. math:: \max_P L(A \oplus P) \quad \text{with} \quad \sum P \le \Delta, \quad
              \sum_v P_{uv} \le \Delta_u = \lfloor f d_u \rfloor

    Gradient ascent on the weights of a random block of pairs, whose lower half is drawn anew after every step, with the
    greedy projection in each; at the end the greedy flips and random roundings within all budgets. A node of degree one has
    no budget at :math:`f = 1/2` and stays as it is. The smaller of this limit and the threat model's own counts.

    Args:
        steps: Number of steps.
        search_space_size: Pairs in the block.
        lr: Step size, a plain constant.
        local_fraction: :math:`f`, the fraction of its degree that may change at a node.
        max_final_samples: Roundings at the end, the greedy one among them.
        loss: What is raised, per target.
        everywhere: Look at all pairs, not only at those with an end among the targets.

    Differs from the authors' code: weights of :math:`10^{-7}` count as zero in the forward pass, so that its cost does not
    depend on the block; and pairs have an end among the targets unless ``everywhere`` is given.

    References:
        Gosch et al., *Adversarial Training for Graph Neural Networks: Pitfalls, Solutions, and New Directions*,
        NeurIPS 2023.
    """

    steps: int = 400
    search_space_size: int = 500_000
    lr: float = 100.0
    local_fraction: float = 0.5
    max_final_samples: int = 20
    loss: Loss = tanh_margin
    everywhere: bool = False
    version = 1

    def __post_init__(self) -> None:
        at_least(1, steps=self.steps, search_space_size=self.search_space_size)
        at_least(1, max_final_samples=self.max_final_samples)
        positive(lr=self.lr)
        if not self.local_fraction >= 0:
            raise DataError(f"local_fraction is {self.local_fraction}, but must not be negative")

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Optimise the weights of blocks of pairs within all budgets and round them."""
        state = SearchState.of(context, everywhere=self.everywhere)
        if state.left <= 0 or state.space.count == 0:
            return state.edit
        limits = replace(context.modification, per_node=self.local_fraction).node_limits(context.graph)
        assert limits is not None
        if state.room is not None:
            limits = torch.minimum(limits, state.room)
        victim = victim_of(context, self.loss)
        return finished(context, _Search(self, context, victim, state, limits, generator)())


@dataclass(frozen=True, eq=False)
class _Search:
    attack: LRBCD
    context: AttackContext
    victim: Victim
    state: SearchState
    limits: Tensor
    generator: torch.Generator

    def __call__(self) -> SearchState:
        empty = torch.empty(0, dtype=torch.int64)
        block = self._refilled(Block(empty, torch.zeros(0), torch.zeros(0)))
        if not len(block.numbers):
            return self.state
        for step in range(self.attack.steps):
            block = self._step(block)
            if step + 1 < self.attack.steps:
                block = self._refilled(block)
        return self._rounded(block)

    def _refilled(self, block: Block) -> Block:
        """The heavier half of the block, and new pairs whose ends both have a budget."""
        half = self.attack.search_space_size - self.attack.search_space_size // 2
        stay = block.weights.topk(min(half, len(block.weights))).indices
        stay = stay[block.weights[stay] > NOTHING].sort().values
        kept = block.numbers[stay]
        fresh = self.state.space.draw(self.attack.search_space_size - len(kept), self.generator, kept)
        fresh = fresh[self._allowed(fresh)]
        numbers, order = torch.cat([kept, fresh]).sort()
        zeros = torch.zeros(len(fresh))
        return Block(numbers, torch.cat([block.weights[stay], zeros])[order], torch.zeros(len(numbers)))

    def _allowed(self, numbers: Tensor) -> Tensor:
        pairs = self.state.space.pairs(numbers)
        allowed = (self.limits[pairs] >= 1).all(0)
        if self.state.may_add and self.state.may_drop:
            return allowed
        return allowed & (self.state.clean.adj.has(pairs) == self.state.may_drop)

    def _step(self, block: Block) -> Block:
        state = self.state
        gradient = self.victim.gradient(relaxed(state, block))
        self.context.report(gradient.loss, gradient.kept)
        scores = of_numbers(gradient, state.space, block.numbers)
        present = positions_of(block.numbers, state.edges)
        scores[present] *= -1.0 * weights_of(state.clean, state.space.pairs(block.numbers[present]))
        moved = (block.weights + self.attack.lr * scores.nan_to_num(0.0)).clamp_min(NOTHING)
        up = (moved > NOTHING).nonzero().flatten()
        weights = torch.zeros_like(moved)
        pairs = state.space.pairs(block.numbers[up])
        weights[up] = greedy_projection(moved[up], moved[up].clamp(max=1.0), pairs, self.limits, state.left)
        return Block(block.numbers, weights, scores)

    def _rounded(self, block: Block) -> SearchState:
        """The greedy flips, or the best of some random roundings that keep all budgets."""
        up = (block.weights > NOTHING).nonzero().flatten()
        weights, pairs = block.weights[up], self.state.space.pairs(block.numbers[up])
        flips = greedy_projection(weights, torch.ones_like(weights), pairs, self.limits, self.state.left) > 0
        order = torch.argsort(weights, descending=True, stable=True)
        first = pairs[:, order[flips[order]]]
        best = self.state.flip(accept(self.state, first, self.state.left))
        loss, lowest = self.victim.judge(best.adj)
        self.context.report(loss, lowest)
        for _ in range(self.attack.max_final_samples - 1):
            drawn = pairs[:, torch.rand(len(weights), generator=self.generator) < weights]
            if not self._feasible(drawn):
                continue
            rounded = self.state.flip(drawn)
            loss, kept = self.victim.judge(rounded.adj)
            self.context.report(loss, kept)
            if kept < lowest:
                best, lowest = rounded, kept
        return best

    def _feasible(self, pairs: Tensor) -> bool:
        count = pairs.shape[1]
        if count > self.state.left or accept(self.state, pairs, count).shape[1] < count:
            return False
        return bool((torch.bincount(pairs.flatten(), minlength=self.state.clean.n) <= self.limits).all())
