"""Continue from an edit that is there: exchange its edges and raise its features further."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from grb.attack.base import AttackContext
from grb.attack.injection.base import InjectionProblem
from grb.attack.injection.composed import ComposedInjection
from grb.attack.injection.random_search import InjectionRandomSearch, Search
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
        features_of(self.edit)
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


@dataclass(frozen=True, kw_only=True)
class ContinuedSearch:
    """Random search that begins at an injection: what is left to gain where gradients mislead; never weaker than its start.

    Args:
        edit: Where to begin; legal, with at least one injected node. Edges to other nodes than targets are left out.
        steps: Number of proposals.
        share: Fraction of the injected nodes that the first proposals change.
    """

    edit: GraphEdit
    steps: int = 300
    share: float = 0.2
    version = 1

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """The edit after the proposals that helped."""
        x, search = features_of(self.edit), Search(context)
        by = InjectionRandomSearch(steps=self.steps, share=self.share)
        return by.improve(search, search.aims_of(self.edit, generator), x, generator)


def features_of(edit: GraphEdit) -> Tensor:
    """Features of the injected nodes, [m, d]; an edit without such nodes, or without edges, is refused."""
    if edit.new_x is None or not edit.num_new or not edit.add.numel():
        raise DataError("there is nothing to continue: the edit injects no nodes with edges")
    return edit.new_x
