"""FGA: flip the pair with the largest gradient, again and again."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from grb.attack.base import AttackContext
from grb.attack.losses import Loss
from grb.attack.modification.base import Limits, modify
from grb.attack.modification.scores import ByGradient
from grb.attack.modification.selectors import Greedy
from grb.errors import DataError
from grb.graph import GraphEdit


@dataclass(frozen=True, kw_only=True)
class FGA(Limits):
    r"""The fast gradient attack: greedily the pair with the largest :math:`(1 - 2 a_{uv})\, \partial L / \partial a_{uv}`.

    Looked at are all pairs with an end among the targets; a pair whose flip would lower the loss is never flipped. The
    gradient is exact, degrees included, and needs no n x n matrix: :mod:`~grb.attack.modification.gradient`.

    Args:
        loss: What is raised, per target; the tanh-margin in units of the median clean margin if not given.
        refresh: Flips between two gradients. 1 is the exact greedy choice; more is as many times faster, and no node is
            flipped at twice in between.
        pool: Absent pairs that are looked at; where there are more, this number is drawn at random in every round.
        autograd_pool: The same for a model whose gradients have no closed form, if it is smaller.
        rounds: Gradients at most: ``refresh`` grows where the budget would take more of them; None for no such limit.
        judged: Weigh every target by the outputs of the model that is attacked, see
            :class:`~grb.attack.modification.scores.Judged`, in place of ``loss``: through a relaxation of it
            (``context.judge``) the gradients then do not go on where the relaxation is lost and the model is not.

    Differs from THUDM/grb, which removes edges whose removal lowers the loss and never looks at negative gradients.

    References:
        Chen et al., *Fast Gradient Attack on Network Embedding*, 2018.
    """

    loss: Loss | None = None
    refresh: int = 1
    pool: int = 2**31
    autograd_pool: int = 2**31
    rounds: int | None = None
    judged: bool = False
    version = 1

    def __post_init__(self) -> None:
        if min(self.refresh, self.pool, self.autograd_pool) < 1 or (self.rounds is not None and self.rounds < 1):
            raise DataError(
                f"refresh is {self.refresh}, pool {self.pool}, autograd_pool {self.autograd_pool} and rounds {self.rounds}, "
                "but all must be at least 1"
            )

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Flip pairs greedily by their gradients."""
        if self.judged and self.loss is not None:
            raise DataError("loss was given together with judged, which has a loss of its own; give one of them")
        score = ByGradient(context, self.loss, judged=self.judged)
        pool, refresh = self.pool, self.refresh
        if self.autograd_pool < pool and not score.victim.closed_form:
            pool = self.autograd_pool
        if self.rounds is not None:
            refresh = max(refresh, math.ceil(int(context.modification.budget(context.graph)) / self.rounds))
        pick = Greedy(refresh=refresh, pool=pool, above=0.0, disjoint=True)
        return modify(context, score=score, pick=pick, generator=generator)
