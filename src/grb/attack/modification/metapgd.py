"""Meta-PGD: projected gradient ascent on edges through the training of a surrogate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch

from grb.attack.base import AttackContext, accepts_paper_names
from grb.attack.losses import Loss, tanh_margin
from grb.attack.modification.base import SearchState
from grb.attack.modification.gradient import Gradient, Victim
from grb.attack.modification.metattack import Metattack, SurrogateTraining, surrogate_score
from grb.attack.modification.relaxation import BlockSteps, Search
from grb.attack.setting_checks import at_least
from grb.graph import Adjacency, GraphEdit


@accepts_paper_names
@dataclass(frozen=True, kw_only=True)
class MetaPGD(BlockSteps, SurrogateTraining):
    r"""Poisoning by projected meta-gradients on random blocks of pairs.

    As PR-BCD, with another loss: that of a linear surrogate :math:`Z = \hat A^2 X W` which is trained from zero on the relaxed
    graph, unrolled as in :class:`~grb.attack.modification.metattack.Metattack`. In every step the weights of all pairs of the
    block ascend, are projected onto the budget, and pairs with small weights make room for random others. Every rounded graph
    is judged by a surrogate trained on it, and the best one is returned.

    Args:
        steps: Number of steps.
        training_steps: Number of training steps of the surrogate.
        max_final_samples: Roundings at the end, the heaviest pairs among them.
        loss: What is raised, per node.

    References:
        Mujkanovic et al., *Are Defenses for Graph Neural Networks Robust?*, NeurIPS 2022. Theirs moves all pairs at once and
        unrolls the training of a GCN by Adam; here blocks and a linear surrogate keep it free of an n x n matrix.
    """

    steps: int = 60
    training_steps: int = 100
    max_final_samples: int = 5
    loss: Loss = tanh_margin
    version = 1

    def __post_init__(self) -> None:
        self.training()  # refuses what a training does not take
        at_least(1, steps=self.steps, max_final_samples=self.max_final_samples)
        self.check_blocks()

    def training(self) -> Metattack:
        """The surrogate's training as Metattack has it."""
        return Metattack(steps=self.training_steps, lr=self.lr, momentum=self.momentum, goal=self.goal, loss=self.loss)

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Optimise the weights of blocks of pairs through the training and round them."""
        state = SearchState.of(context, everywhere=True)
        if state.left <= 0 or state.space.count == 0:
            return state.edit
        size = min(state.space.count, max(self.search_space_size, 4 * state.left))
        resample, rate = self.schedule(state, size, self.steps)
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
