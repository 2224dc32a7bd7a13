"""STACK: flips that change the graph filter most, without model, labels or queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from grb.attack.base import AttackContext
from grb.attack.modification.base import Limits, modify
from grb.attack.modification.selectors import Greedy
from grb.attack.modification.spectrum import FilterChange
from grb.errors import DataError
from grb.graph import GraphEdit


@dataclass(frozen=True, kw_only=True)
class STACK(Limits):
    """Pairs at the targets whose flip changes the spectrum of the graph filter most; needs no model.

    Args:
        estimate: ``exact`` change of the spectrum's square sum, or its ``first_order``.
        self_loops: Whether the filter is that of the graph with self-loops.
        refresh: Flips between two computations of the scores; all at once if not given.
        pool: Absent pairs that are looked at; where there are more, this number is drawn at random.

    Differs from THUDM/grb, which only deletes, solves a dense eigenproblem and flips edges back.

    References:
        Xu et al., *Blindfolded Attackers Still Threatening: Strict Black-Box Adversarial Attacks on Graphs*, AAAI 2022.
    """

    estimate: Literal["exact", "first_order"] = "exact"
    self_loops: bool = False
    refresh: int | None = None
    pool: int = 2**24
    version = 1
    needs_model = False

    def __post_init__(self) -> None:
        if self.estimate not in ("exact", "first_order"):
            raise DataError(f"estimate is {self.estimate!r}, but 'exact' or 'first_order' is needed")
        if self.refresh is not None and self.refresh < 1:
            raise DataError(f"refresh is {self.refresh}, but at least 1 is needed")

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Flip the pairs that change the graph filter most."""
        pick = Greedy(refresh=self.refresh or 2**62, pool=self.pool)
        return modify(context, score=FilterChange(self.estimate, self.self_loops), pick=pick, generator=generator)
