"""Local search over sets of flips: the best by exact evaluation, then exchanges of the worst flips for better ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from grb.attack.base import Attack, AttackContext
from grb.attack.losses import Loss, tanh_margin, typical_margin
from grb.attack.modification.base import Limits, SearchState, finished
from grb.attack.modification.gradient import Victim
from grb.attack.modification.local import FlipEvaluator, Outcomes, evaluator_of, note_cost
from grb.attack.modification.pairs import contains
from grb.attack.modification.selectors import accept, earlier
from grb.attack.setting_checks import at_least, fractions
from grb.graph import GraphEdit

# what the summed loss counts beside one target that is lost, and in the last flips of a budget
WEIGHT, LAST_WEIGHT = 0.3, 1e-3
# a loss that differs by less is the same: sums of floats depend on their order
NOISE = 1e-5
# the best this number of proposals are also tried two by two where two flips are left
JOINT = 64
# rounds in which a budget is spent at most: large budgets are spent by more flips at a time
ROUNDS = 128
# rounds of a search in which every alternative is a whole pass with a costly operator, such as personalised PageRank
COSTLY = 4


class Proposals(Protocol):
    """Which pairs may be worth a flip; learns from what came of them."""

    def __call__(self, state: SearchState, evaluator: FlipEvaluator) -> Tensor:
        """Pairs that may be flipped one by one, [2, p]."""

    def observe(self, pairs: Tensor, gains: Tensor) -> None:
        """Take note of what every proposed pair would gain, [p]."""


def smooth_count(victim: Victim, clean: Tensor) -> Loss:
    """The tanh-margin in units of the median clean margin: the loss of a search that counts lost targets first.

    Args:
        victim: The model under attack.
        clean: Logits of the targets on the clean graph, [t, c].
    """
    return partial(tanh_margin, scale=typical_margin(clean, victim.labels))


@dataclass(eq=False)
class Exchange:
    r"""A set of flips that only gets better, judged by whole flips and exact outcomes.

    A flip is worth :math:`-\Delta k + w\, \Delta \ell` with the change :math:`\Delta k` of the number of targets that keep
    their label and :math:`\Delta \ell` of their summed loss.

    Args:
        context: With a model.
        victim: That model.
        propose: Where pairs that may be worth a flip come from.
        refresh: Flips between two proposals.
        generator: The only source of randomness.
    """

    context: AttackContext
    victim: Victim
    propose: Proposals
    refresh: int
    generator: torch.Generator
    state: SearchState = field(init=False)
    evaluator: FlipEvaluator = field(init=False)

    def __post_init__(self) -> None:
        self.state = SearchState.of(self.context)
        clean = self.victim.logits(self.context.graph.adj)[self.victim.targets]
        self.evaluator = evaluator_of(self.victim, self.context.graph.adj, smooth_count(self.victim, clean))

    @property
    def value(self) -> tuple[int, float]:
        """Number of lost targets, then the summed loss: what the search raises."""
        return len(self.evaluator.right) - int(self.evaluator.right.sum()), float(self.evaluator.losses.sum())

    def start(self, pairs: Tensor) -> None:
        """Begin with some flips."""
        if pairs.shape[1]:
            self.evaluator.flip(pairs)
            self.state = self.state.flip(pairs)

    def grow(self, refresh: int | None = None) -> None:
        """Add flips as long as there are any that help, ``refresh`` at a time."""
        step = max(self.refresh if refresh is None else refresh, math.ceil(self.state.left / ROUNDS))
        rounds = 0
        while self.state.left > 0 and not (self.is_costly and rounds == COSTLY):
            if not self._add(min(step, self.state.left)):
                return
            rounds += 1
            self.report()

    @property
    def is_costly(self) -> bool:
        """Whether every alternative takes a whole pass with an operator that costs more than the rest of it."""
        return not self.evaluator.local and self.evaluator.cost > 1

    def report(self) -> None:
        """Tell whoever watches how far the search is."""
        t = max(len(self.evaluator.right), 1)
        self.context.report(float(self.evaluator.losses.sum()) / t, float(self.evaluator.right.sum()) / t)

    def _add(self, wanted: int) -> bool:
        pairs = self.propose(self.state, self.evaluator)
        count = pairs.shape[1]
        if not count:
            return False
        gain = self._gain(self.evaluator.outcomes(pairs, torch.arange(count), count), last=wanted == self.state.left)
        self.propose.observe(pairs, gain)
        order = torch.argsort(gain, descending=True, stable=True)
        chosen = accept(self.state, pairs[:, order[gain[order] > 0]], wanted, disjoint=True)
        if self.state.left == wanted == 2:
            chosen = self._joint(pairs[:, order[:JOINT]], chosen)
        if not chosen.shape[1]:
            return False
        self.evaluator.flip(chosen)
        self.state = self.state.flip(chosen)
        return True

    def _joint(self, pairs: Tensor, chosen: Tensor) -> Tensor:
        """The best two of some pairs, evaluated together, if they are better than those chosen one by one."""
        count = pairs.shape[1] * (pairs.shape[1] - 1) // 2
        if not self.evaluator.local or not count:
            return chosen
        both = torch.triu_indices(pairs.shape[1], pairs.shape[1], 1).T.flatten()  # two by two
        found = self.evaluator.outcomes(pairs[:, both], torch.arange(count).repeat_interleave(2), count)
        gain = self._gain(found, last=True)
        least = 0.0
        if chosen.shape[1]:
            own = self.evaluator.outcomes(chosen, torch.zeros(chosen.shape[1], dtype=torch.int64), 1)
            least = max(0.0, float(self._gain(own, last=True)))
        for number in torch.argsort(gain, descending=True, stable=True).tolist():
            if gain[number] <= least:
                break
            two = pairs[:, both[2 * number : 2 * number + 2]]
            if accept(self.state, two, 2).shape[1] == 2:
                return two
        return chosen

    def _gain(self, found: Outcomes, *, last: bool) -> Tensor:
        return found.loss * (LAST_WEIGHT if last else WEIGHT) - found.kept

    def exchange(self, rounds: int, share: float) -> None:
        """Take back the flips that matter least and add others, and keep the result where it is better.

        Nothing is exchanged where an alternative is costly: to know which flip matters least takes one for every flip.

        Args:
            rounds: How often.
            share: Fraction of the flips that are taken back at first; it falls whenever a round is in vain.
        """
        if self.is_costly:
            return
        number = max(1, int(share * self.state.pairs.shape[1]))
        for _ in range(rounds):
            if not self.state.pairs.shape[1]:
                return
            before, value = self.state, self.value
            self._take_back(min(number, self.state.pairs.shape[1]))
            self.grow(min(self.refresh, max(2, number // 2)))
            if self.value <= (value[0], value[1] + NOISE):
                self._return(before)
                number = max(1, int(0.9 * number))
            self.report()

    def _take_back(self, count: int) -> None:
        pairs = self.state.pairs
        found = self.evaluator.outcomes(pairs, torch.arange(pairs.shape[1]), pairs.shape[1])
        noise = WEIGHT * torch.rand(pairs.shape[1], generator=self.generator, dtype=torch.float64)
        order = torch.argsort(self._gain(found, last=False) + noise, descending=True, stable=True)
        if self.state.spare is not None:  # a node must not lose its last neighbour
            order = order[self._removable(pairs[:, order])]
        chosen = torch.zeros(pairs.shape[1], dtype=torch.bool)
        chosen[order[:count]] = True
        if chosen.any():
            self.evaluator.flip(pairs[:, chosen])
            self.state = self.state.undo(chosen)

    def _removable(self, pairs: Tensor) -> Tensor:
        """Which flips can be taken back together, in order, without leaving a node alone, [p]."""
        added = ~self.state.clean.adj.has(pairs)
        spare = self.evaluator.adj.degrees.long() - 1
        return ~added | (earlier(pairs, added) < spare[pairs]).all(0)

    def _return(self, before: SearchState) -> None:
        """Back to an earlier set."""
        space = before.space
        now, then = space.numbers(self.state.pairs), space.numbers(before.pairs)
        gone = ~contains(then.sort().values, now)
        missing = ~contains(now.sort().values, then)
        different = torch.cat([self.state.pairs[:, gone], before.pairs[:, missing]], dim=1)
        if different.shape[1]:
            self.evaluator.flip(different)
        self.state = before


@dataclass(frozen=True, kw_only=True)
class ExchangeAttack(Limits):
    """What attacks by exchanges share.

    Args:
        refresh: Flips that are made at most before pairs are proposed anew.
        rounds: Exchanges after the budget is spent.
        share: Fraction of the flips that the first exchange takes back.
        start: An attack whose edges are the first flips; the search starts from the clean graph if not given.
    """

    refresh: int = 16
    rounds: int = 20
    share: float = 0.5
    start: Attack | None = None

    def __post_init__(self) -> None:
        at_least(1, refresh=self.refresh)
        at_least(0, rounds=self.rounds)
        fractions(share=self.share)

    def exchanged(
        self, context: AttackContext, victim: Victim, propose: Proposals, generator: torch.Generator
    ) -> GraphEdit:
        """Spend the budget on proposed pairs, and exchange the flips that matter least."""
        search = Exchange(context, victim, propose, self.refresh, generator)
        if self.start is not None:
            edit = self.start(context, generator=generator)
            search.start(torch.cat([edit.add, edit.drop], dim=1))
        search.grow()
        search.exchange(self.rounds, self.share)
        note_cost(context, search.evaluator)
        return finished(context, search.state)
