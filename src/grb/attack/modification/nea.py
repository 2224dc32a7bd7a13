"""NEA: flips that random-walk embeddings can express least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from grb.attack.base import AttackContext
from grb.attack.modification.base import Limits, modify
from grb.attack.modification.selectors import Greedy
from grb.attack.modification.spectrum import WalkResidual
from grb.errors import DataError
from grb.graph import GraphEdit


@dataclass(frozen=True, kw_only=True)
class NEA(Limits):
    """Pairs at the targets after whose flip a low-rank factorisation of random walks fits worst; needs no model.

    Args:
        window: Length of the walks.
        dim: Rank of the factorisation.
        estimate: ``dense`` with all eigenvalues, ``fast`` without; by size if not given.
        refresh: Flips between two computations of the scores; all at once if not given.
        pool: Absent pairs that are looked at; where there are more, this number is drawn at random.

    Differs from THUDM/grb, which only deletes and flips edges back.

    References:
        Bojchevski and Günnemann, *Adversarial Attacks on Node Embeddings via Graph Poisoning*, ICML 2019.
    """

    window: int = 5
    dim: int = 32
    estimate: Literal["dense", "fast"] | None = None
    refresh: int | None = None
    pool: int = 2**22
    version = 1
    needs_model = False

    def __post_init__(self) -> None:
        if self.window < 1 or self.dim < 0 or (self.refresh is not None and self.refresh < 1):
            raise DataError(
                f"window is {self.window}, dim {self.dim} and refresh {self.refresh}, but at least 1, 0 and 1 are needed"
            )
        if self.estimate not in ("dense", "fast", None):
            raise DataError(f"estimate is {self.estimate!r}, but 'dense', 'fast' or None is needed")

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Flip the pairs with the largest estimated loss of the embedding."""
        score = WalkResidual(self.window, self.dim, self.estimate)
        pick = Greedy(refresh=self.refresh or 2**62, pool=self.pool)
        return modify(context, score=score, pick=pick, generator=generator)
