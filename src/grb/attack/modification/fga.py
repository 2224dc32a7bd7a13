"""FGA: flip the pair with the largest gradient, again and again."""

from __future__ import annotations

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

    Differs from THUDM/grb, which removes edges whose removal lowers the loss and never looks at negative gradients.

    References:
        Chen et al., *Fast Gradient Attack on Network Embedding*, 2018.
    """

    loss: Loss | None = None
    refresh: int = 1
    pool: int = 2**31
    version = 1

    def __post_init__(self) -> None:
        if self.refresh < 1 or self.pool < 1:
            raise DataError(f"refresh is {self.refresh} and pool is {self.pool}, but both must be at least 1")

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Flip pairs greedily by their gradients."""
        pick = Greedy(refresh=self.refresh, pool=self.pool, above=0.0, disjoint=True)
        return modify(context, score=ByGradient(context, self.loss), pick=pick, generator=generator)
