"""Greedy flips by exact outcomes among the pairs with the largest gradients, then exchanges."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from grb.attack.base import AttackContext
from grb.attack.losses import Loss, masked_cross_entropy
from grb.attack.modification.base import SearchState
from grb.attack.modification.eva_plus import Mutations
from grb.attack.modification.exchange import ExchangeAttack, Proposals
from grb.attack.modification.gradient import Victim
from grb.attack.modification.local import FlipEvaluator, affordable
from grb.attack.modification.scores import GradientScores, victim_of
from grb.attack.modification.selectors import NEVER, best
from grb.attack.setting_checks import at_least
from grb.graph import GraphEdit

# absent pairs whose gradients are looked at: by the closed form, and by autograd
POOL, AUTOGRAD_POOL = 2**24, 2**16
# partners remembered for every target
MEMORY = 8


@dataclass(frozen=True, kw_only=True)
class LocalSearch(ExchangeAttack):
    r"""Gradients propose, exact outcomes decide, and flips that turn out not to matter are exchanged.

    In every round the pairs with the largest :math:`(1 - 2 a_{uv})\, \partial L / \partial a_{uv}` are evaluated one by one
    as whole flips, each where it changes anything (:mod:`~grb.attack.modification.local`); those that take most targets
    their label are made. Where the budget is spent, the flips whose loss costs least are taken back and the budget is
    spent again; the set of flips only gets better.

    Args:
        loss: What the gradients raise, per target.
        candidates: Pairs with large gradients that are evaluated in a round.
        mutations: Pairs beside them that are drawn as in :class:`~grb.attack.modification.eva_plus.EvAPlus`: gradients of deep
            models say little about whole flips.
        refresh: Flips between two rounds.
        rounds: Exchanges after the budget is spent.
        share: Fraction of the flips that the first exchange takes back.
        start: An attack whose edges are the first flips; the search starts from the clean graph if not given.

    References:
        Ours. Gradients of discrete flips mislead: Geisler et al., *Robustness of Graph Neural Networks at Scale*,
        NeurIPS 2021, round at the end; Akhondzadeh et al., *EvA: Evolutionary Attacks on Graphs*, ICLR 2026,
        do without gradients.
    """

    loss: Loss = masked_cross_entropy
    candidates: int = 4096
    mutations: int = 0
    share: float = 0.2
    version = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, candidates=self.candidates)
        at_least(0, mutations=self.mutations)

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Add and exchange flips by their exact outcomes."""
        state = SearchState.of(context)
        if state.left <= 0 or state.space.count == 0:
            return state.edit
        victim = victim_of(context, self.loss)
        propose: Proposals = ByGradients(victim, self.candidates, generator)
        if self.mutations:
            drawn = Mutations(context.targets, victim.labels, state.space, self.mutations, MEMORY, generator)
            propose = Both(propose, drawn, state)
        return self.exchanged(context, victim, propose, generator)


@dataclass(frozen=True, eq=False)
class ByGradients:
    """The pairs with the largest gradients at the current graph.

    Args:
        victim: The model under attack.
        candidates: Number of pairs.
        generator: The only source of randomness, where there are too many pairs to look at all.
    """

    victim: Victim
    candidates: int
    generator: torch.Generator

    def __call__(self, state: SearchState, evaluator: FlipEvaluator) -> Tensor:
        """Pairs that may be flipped one by one, [2, p]."""
        scores = GradientScores(self.victim.gradient(state.adj), state.clean)
        count = affordable(evaluator, self.candidates)
        pool = POOL if self.victim.closed_form else AUTOGRAD_POOL
        salt = int(torch.randint(2**62, (1,), generator=self.generator))
        return best(state, scores, count, pool, NEVER, salt, self.generator).pairs

    def observe(self, pairs: Tensor, gains: Tensor) -> None:
        """Nothing to learn: the next gradients tell."""


@dataclass(frozen=True, eq=False)
class Both:
    """The pairs that two sources propose, each once.

    Args:
        first: One source.
        second: The other.
        state: Numbers the pairs.
    """

    first: Proposals
    second: Proposals
    state: SearchState

    def __call__(self, state: SearchState, evaluator: FlipEvaluator) -> Tensor:
        """Pairs that may be flipped one by one, [2, p]."""
        pairs = torch.cat([self.first(state, evaluator), self.second(state, evaluator)], dim=1)
        return self.state.space.pairs(self.state.space.numbers(pairs).unique())

    def observe(self, pairs: Tensor, gains: Tensor) -> None:
        """Tell both."""
        self.first.observe(pairs, gains)
        self.second.observe(pairs, gains)
