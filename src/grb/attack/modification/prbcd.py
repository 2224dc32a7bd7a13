"""PR-BCD and GR-BCD: gradients on random blocks of pairs, for graphs of any size."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from grb.attack.base import AttackContext, accepts_paper_names
from grb.attack.losses import Loss, masked_cross_entropy
from grb.attack.modification.base import Limits, SearchState, finished
from grb.attack.modification.relaxation import POOL, Search
from grb.attack.modification.scores import ByGradient, victim_of
from grb.attack.modification.selectors import RandomBlocks
from grb.attack.setting_checks import check_rounding
from grb.errors import DataError
from grb.graph import GraphEdit


@dataclass(frozen=True, kw_only=True)
class _Blocks(Limits):
    """What both have in common.

    Args:
        steps: Number of steps or rounds.
        search_space_size: Pairs in a block; at least four times the budget is used.
        loss: What is raised, per target; the tanh-margin in units of the median clean margin if not given.
        everywhere: Look at all pairs, not only at those with an end among the targets.
    """

    steps: int = 125
    search_space_size: int = 500_000
    loss: Loss | None = None
    everywhere: bool = False

    def __post_init__(self) -> None:
        if self.steps < 1 or self.search_space_size < 1:
            raise DataError(
                f"steps is {self.steps} and search_space_size is {self.search_space_size}, but must be at least 1"
            )

    def _size(self, context: AttackContext, state: SearchState) -> int:
        size = max(self.search_space_size, 4 * state.left)
        if size > self.search_space_size:
            context.note("the block was enlarged to {size} pairs, four times the budget", size=size)
        return size


@accepts_paper_names
@dataclass(frozen=True, kw_only=True)
class PRBCD(_Blocks):
    r"""Projected randomised block coordinate descent.

    Every pair of a random block has a weight :math:`p` in [0, 1]. Each epoch takes a gradient step on the weights of the
    whole block, projects them onto the budget, and replaces the lower half of the block by new random pairs; the last
    epochs keep the best block. What counts is always the rounded graph, the heaviest pairs as full flips; at the end
    random roundings are tried too. A limit per node is kept by a projection of its own (LR-BCD).

    Only pairs of positive weight enter the forward pass, gradients of all others come from the closed form: memory is
    :math:`O(E + \text{block})` beside the model's own.

    Args:
        steps: Number of steps.
        n_epoch_resampling: Fraction of the steps in which the block changes.
        search_space_size: Pairs in the block; at least four times the budget is used.
        lr_factor: Step size; it is scaled by budget / nodes and falls once the block is kept.
        max_final_samples: Roundings at the end, the heaviest pairs among them.
        refinements: Exchanges of whole flips by gradients after the rounding
            (:func:`~grb.attack.modification.relaxation.refined`); 0 for none, as in the paper.
        pool: Absent pairs whose gradients every exchange looks at.
        loss: What is raised, per target; the tanh-margin in units of the median clean margin if None.
        everywhere: Look at all pairs, not only at those with an end among the targets.

    Differs from the paper, whose constants :meth:`paper` gives: the loss is the masked cross-entropy, steps are ten times as
    large, and the rounded flips are refined. With the paper's constants it leaves more than greedy gradients (FGA) do
    (``benchmarks/relaxed_edges.py``).

    References:
        Geisler et al., *Robustness of Graph Neural Networks at Scale*, NeurIPS 2021.
        Gosch et al., *Adversarial Training for Graph Neural Networks*, NeurIPS 2023 (limits per node).
    """

    n_epoch_resampling: float = 0.75
    lr_factor: float = 1000.0
    max_final_samples: int = 20
    refinements: int = 16
    pool: int = POOL
    loss: Loss | None = masked_cross_entropy
    version = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.n_epoch_resampling <= 1 or not self.lr_factor > 0:
            raise DataError(
                f"n_epoch_resampling is {self.n_epoch_resampling} and lr_factor {self.lr_factor}, but 0 to 1 and a positive "
                "number are needed"
            )
        check_rounding(self.max_final_samples, self.refinements)
        if self.pool < 1:
            raise DataError(f"pool is {self.pool}, but at least one pair must be looked at")

    @classmethod
    def paper(cls, **changes: Any) -> PRBCD:
        """The constants of Geisler et al.: tanh-margin, a step size factor of 100, no refinement."""
        return cls(**{"lr_factor": 100.0, "refinements": 0, "loss": None, **changes})

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Optimise the weights of blocks of pairs and round them."""
        state = SearchState.of(context, everywhere=self.everywhere)
        if state.left <= 0 or state.space.count == 0:
            return state.edit
        size = self._size(context, state)
        resample = math.ceil(self.n_epoch_resampling * self.steps)
        spread = max(math.log2(state.space.count / size), 1.0)
        base = state.left / state.clean.n / 2 * self.lr_factor * spread

        def rate(epoch: int) -> float:
            return base / math.sqrt(max(0, epoch - resample) + 1)

        victim = victim_of(context, self.loss)
        search = Search(
            context,
            victim,
            state,
            size,
            self.steps,
            resample,
            rate,
            self.max_final_samples,
            generator,
            self.refinements,
            self.pool,
        )
        return search()


@accepts_paper_names
@dataclass(frozen=True, kw_only=True)
class GRBCD(_Blocks):
    """Greedy randomised block coordinate descent: in every round the best pairs of a fresh random block are flipped.

    Args:
        steps: Number of rounds; each flips an equal fraction of the budget, at least one pair.
        search_space_size: Pairs in a block; at least four times the budget is used.
        loss: What is raised, per target; the tanh-margin in units of the median clean margin if not given.
        everywhere: Look at all pairs, not only at those with an end among the targets.

    References:
        Geisler et al., *Robustness of Graph Neural Networks at Scale*, NeurIPS 2021.
    """

    version = 1

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Flip the best pairs of a new block in every round."""
        state = SearchState.of(context, everywhere=self.everywhere)
        if state.left <= 0 or state.space.count == 0:
            return state.edit
        pick = RandomBlocks(rounds=self.steps, block=self._size(context, state), above=0.0)
        return finished(context, pick(state, ByGradient(context, self.loss), generator))
