"""Meta-PGD: projected gradient ascent on edges through the training of a surrogate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, cast

import torch

from grb.attack.base import AttackContext, accepts_paper_names
from grb.attack.losses import Loss, tanh_margin
from grb.attack.modification.base import Limits, SearchState
from grb.attack.modification.gradient import Gradient, Victim
from grb.attack.modification.metattack import Goal, Metattack, surrogate_score
from grb.attack.modification.relaxation import Search
from grb.attack.setting_checks import at_least, fractions, positive
from grb.graph import Adjacency, GraphEdit


@accepts_paper_names
@dataclass(frozen=True, kw_only=True)
class MetaPGD(Limits):
    r"""Poisoning by projected meta-gradients on random blocks of pairs.

    As PR-BCD, with another loss: that of a linear surrogate :math:`Z = \hat A^2 X W` which is trained from zero on the relaxed
    graph, unrolled as in :class:`~grb.attack.modification.metattack.Metattack`. In every step the weights of all pairs of the
    block ascend, are projected onto the budget, and pairs with small weights make room for random others. Every rounded graph
    is judged by a surrogate trained on it, and the best one is returned.

    Args:
        steps: Number of steps.
        training_steps: Number of training steps of the surrogate.
        lr: Learning rate of that training.
        momentum: Momentum of that training.
        goal: Whose loss is raised, as in Metattack.
        search_space_size: Pairs in the block; at least four times the budget is used.
        n_epoch_resampling: Fraction of the steps in which the block changes.
        lr_factor: Step size of the weights; it is scaled by budget / nodes and falls once the block is kept.
        max_final_samples: Roundings at the end, the heaviest pairs among them.
        loss: What is raised, per node.

    References:
        Mujkanovic et al., *Are Defenses for Graph Neural Networks Robust?*, NeurIPS 2022. Theirs moves all pairs at once and
        unrolls the training of a GCN by Adam; here blocks and a linear surrogate keep it free of an n x n matrix.
    """

    steps: int = 60
    training_steps: int = 100
    lr: float = 0.1
    momentum: float = 0.9
    goal: Goal = "self"
    search_space_size: int = 500_000
    n_epoch_resampling: float = 0.75
    lr_factor: float = 100.0
    max_final_samples: int = 5
    loss: Loss = tanh_margin
    version = 1
    needs_model = False
    objective: ClassVar[str] = "poisoning"

    def __post_init__(self) -> None:
        self.training()  # refuses what a training does not take
        at_least(
            1, steps=self.steps, search_space_size=self.search_space_size, max_final_samples=self.max_final_samples
        )
        positive(lr_factor=self.lr_factor)
        fractions(n_epoch_resampling=self.n_epoch_resampling)

    def training(self) -> Metattack:
        """The surrogate's training as Metattack has it."""
        return Metattack(steps=self.training_steps, lr=self.lr, momentum=self.momentum, goal=self.goal, loss=self.loss)

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Optimise the weights of blocks of pairs through the training and round them."""
        state = SearchState.of(context, everywhere=True)
        if state.left <= 0 or state.space.count == 0:
            return state.edit
        size = min(state.space.count, max(self.search_space_size, 4 * state.left))
        resample = math.ceil(self.n_epoch_resampling * self.steps)
        spread = max(math.log2(state.space.count / size), 1.0)
        base = state.left / state.clean.n / 2 * self.lr_factor * spread

        def rate(epoch: int) -> float:
            return base / math.sqrt(max(0, epoch - resample) + 1)

        trained = cast(Victim, _Trained(self.training(), context))
        search = Search(context, trained, state, size, self.steps, resample, rate, self.max_final_samples, generator)
        return search()


class _Trained:
    """A surrogate that is trained on every graph that it is asked about; a victim as far as a search asks."""

    def __init__(self, attack: Metattack, context: AttackContext) -> None:
        self.score = surrogate_score(attack, context)
        self.score.judged(context.graph.adj)  # the clean graph decides on the labels

    def gradient(self, adj: Adjacency) -> Gradient:
        return self.score.gradient(adj)

    def judge(self, adj: Adjacency) -> tuple[float, float]:
        return self.score.judged(adj)
