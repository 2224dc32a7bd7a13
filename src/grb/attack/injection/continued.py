"""Continue from an edit that is there: exchange its edges and raise its features further."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from grb.attack.base import AttackContext
from grb.attack.injection.base import InjectionProblem
from grb.attack.injection.composed import ComposedInjection
from grb.attack.injection.rewiring import rewire
from grb.errors import DataError
from grb.graph import GraphEdit


@dataclass(frozen=True, kw_only=True)
class ContinuedInjection:
    """Rewire an injection, round after round, with the loss and the optimiser of a composition; never weaker than its start.

    Args:
        edit: Where to begin; legal, with at least one injected node.
        parts: Its loss, optimiser, way of rewiring, and steps after each exchange.
        rounds: Rounds in which edges are exchanged, for every share.
        shares: Fractions of the edges that the first round of each run exchanges.
    """

    edit: GraphEdit
    parts: ComposedInjection
    rounds: int = 15
    shares: tuple[float, ...] = (0.3, 0.1)
    version = 1

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """The edit after the exchanges that helped."""
        if not self.edit.num_new or not self.edit.add.numel():
            raise DataError("there is nothing to continue: the edit injects no nodes with edges")
        problem, found = InjectionProblem(context), self.edit
        for share in self.shares:
            found = rewire(
                problem,
                found,
                rounds=self.rounds,
                features=self.parts.optimiser_of(self.parts.refine),
                loss=self.parts.loss_of(problem),
                share=share,
                generator=generator,
                by=self.parts.rewire_by,
                homophily_weight=self.parts.homophily,
            ).edit
        return found
