"""An evolutionary search without gradients that evaluates mutations where they change something."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from grb.attack.base import AttackContext
from grb.attack.modification.base import SearchState
from grb.attack.modification.exchange import ExchangeAttack
from grb.attack.modification.local import FlipEvaluator, affordable
from grb.attack.modification.pairs import PairSpace
from grb.attack.modification.scores import victim_of
from grb.attack.setting_checks import at_least
from grb.graph import GraphEdit


@dataclass(frozen=True, kw_only=True)
class EvAPlus(ExchangeAttack):
    """One set of flips and its mutations, each evaluated exactly; what was learnt about a target is remembered.

    As EvA it asks for outputs of the model alone, aims at accuracy, and mutates towards targets that are not lost yet. Other
    than there,

    - a mutation is a single flip on top of the current set, recomputed only where it changes anything, and all mutations
      of a generation that help and share no node are made at once, in place of a crossover;
    - no pair stands twice in the set;
    - the best partners of every target are remembered, and tried for other targets of the same label;
    - flips that turn out to matter least are exchanged for others, and the set only gets better.

    Args:
        candidates: Mutations of a generation.
        refresh: Flips that a generation makes at most.
        rounds: Exchanges after the budget is spent.
        share: Fraction of the flips that the first exchange takes back.
        memory: Partners remembered for every target.
        start: An attack whose edges are the first flips; the search starts from the clean graph if not given.

    References:
        Ours, after Akhondzadeh et al., *EvA: Evolutionary Attacks on Graphs*, ICLR 2026.
    """

    candidates: int = 2048
    memory: int = 8
    version = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, candidates=self.candidates, memory=self.memory)

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Mutate and exchange flips by their exact outcomes."""
        state = SearchState.of(context)
        if state.left <= 0 or state.space.count == 0:
            return state.edit
        victim = victim_of(context, gradients=False)
        propose = Mutations(context.targets, victim.labels, state.space, self.candidates, self.memory, generator)
        return self.exchanged(context, victim, propose, generator)


@dataclass(eq=False)
class Mutations:
    """Random pairs at targets that still keep their label, and those that were good before.

    Args:
        targets: Ids of the attacked nodes, [t].
        labels: Their labels, [t].
        space: The pairs with an end among the targets.
        count: Pairs proposed at once.
        memory: Partners remembered for every target.
        generator: The only source of randomness.
    """

    targets: Tensor
    labels: Tensor
    space: PairSpace
    count: int
    memory: int
    generator: torch.Generator
    partners: Tensor = field(init=False)
    gains: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.partners = torch.full((len(self.targets), self.memory), -1)
        self.gains = torch.full((len(self.targets), self.memory), -torch.inf, dtype=torch.float64)
        self.position = torch.full((self.space.n,), -1)
        self.position[self.targets] = torch.arange(len(self.targets))

    def __call__(self, state: SearchState, evaluator: FlipEvaluator) -> Tensor:
        """Pairs that may be flipped one by one, [2, p]."""
        count = affordable(evaluator, self.count)
        if self.space.count <= count:
            numbers = torch.arange(self.space.count)
        else:
            standing = evaluator.right.nonzero().flatten()
            standing = standing if len(standing) else torch.arange(len(self.targets))
            known = self._known(standing, count // 4)
            similar = self._similar(standing, count // 2)
            fresh = self._fresh(standing, count - known.shape[1] - similar.shape[1])
            numbers = self.space.numbers(torch.cat([known, similar, fresh], dim=1)).unique()
        pairs = state.absent(numbers)
        if not state.may_drop:
            return pairs
        drops = state.drops
        some = torch.randperm(drops.shape[1], generator=self.generator)[: max(count // 8, count - pairs.shape[1])]
        return torch.cat([pairs, drops[:, some]], dim=1)

    def _known(self, standing: Tensor, count: int) -> Tensor:
        """The best pairs remembered at targets that keep their label, [2, p]."""
        gains = self.gains[standing].flatten()
        best = gains.topk(min(count, len(gains))).indices
        best = best[gains[best] > -torch.inf]
        rows = standing[best // self.memory]
        return torch.stack([self.targets[rows], self.partners[standing].flatten()[best]])

    def _similar(self, standing: Tensor, count: int) -> Tensor:
        """Targets with partners that were good for another target of the same label, [2, p]."""
        known = (self.gains > 0).nonzero()
        if not len(known):
            return self.targets.new_empty(2, 0)
        rows = standing[torch.randint(len(standing), (count,), generator=self.generator)]
        chosen = known[torch.randint(len(known), (count,), generator=self.generator)]
        alike = self.labels[rows] == self.labels[chosen[:, 0]]
        pairs = torch.stack([self.targets[rows], self.partners[chosen[:, 0], chosen[:, 1]]])[:, alike]
        return pairs[:, pairs[0] != pairs[1]]

    def _fresh(self, standing: Tensor, count: int) -> Tensor:
        """Targets that keep their label with any node, [2, p]."""
        rows = standing[torch.randint(len(standing), (count,), generator=self.generator)]
        pairs = torch.stack([self.targets[rows], torch.randint(self.space.n, (count,), generator=self.generator)])
        return pairs[:, pairs[0] != pairs[1]]

    def observe(self, pairs: Tensor, gains: Tensor) -> None:
        """Remember the best partners of every target."""
        rows = torch.cat([self.position[pairs[0]], self.position[pairs[1]]])
        others, both = torch.cat([pairs[1], pairs[0]]), gains.repeat(2)
        known = rows >= 0
        order = torch.argsort(both[known], descending=True, stable=True)
        rows, others, both = rows[known][order], others[known][order], both[known][order]
        order = torch.argsort(rows, stable=True)
        rows, others, both = rows[order], others[order], both[order]
        first = torch.searchsorted(rows, rows)
        place = torch.arange(len(rows)) - first
        kept = place < self.memory
        new = torch.full((len(self.targets), self.memory), -torch.inf, dtype=torch.float64)
        who = torch.full((len(self.targets), self.memory), -1)
        new[rows[kept], place[kept]], who[rows[kept], place[kept]] = both[kept], others[kept]
        all_gains, all_who = torch.cat([new, self.gains], dim=1), torch.cat([who, self.partners], dim=1)
        # a pair that is known already counts with its newest gain
        again = (all_who[:, self.memory :].unsqueeze(2) == who.unsqueeze(1)).any(2)
        all_gains[:, self.memory :][again] = -torch.inf
        self.gains, best = all_gains.topk(self.memory, dim=1)
        self.partners = all_who.gather(1, best)
