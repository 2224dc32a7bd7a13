"""DICE: delete internally, connect externally."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from grb.attack.base import AttackContext
from grb.attack.modification.base import Limits, SearchState, finished
from grb.attack.modification.scores import Labels, known_labels
from grb.attack.modification.selectors import Uniform
from grb.errors import DataError
from grb.graph import GraphEdit


@dataclass(frozen=True, kw_only=True)
class DICE(Limits):
    """Random edges inside a class go, random pairs between classes come; each has an end among the targets.

    Labels are the visible ones and, where hidden, what the model predicts on the clean graph; without a model they are
    passed on along the edges. Where one of both pools runs dry, the other one gets the rest of the budget.

    Args:
        ratio_delete: Fraction of the budget that is deleted, rounded down.

    Differs from THUDM/grb, which reads the labels of test nodes and joins the k-th target with node k alone.

    References:
        Waniek et al., *Hiding Individuals and Communities in a Social Network*, Nature Human Behaviour 2018.
    """

    ratio_delete: float = 0.6
    version = 1

    def __post_init__(self) -> None:
        if not 0 <= self.ratio_delete <= 1:
            raise DataError(f"ratio_delete is {self.ratio_delete}, but 0 to 1 is needed")

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Drop edges inside classes and add pairs between them."""
        state = SearchState.of(context)
        if state.left <= 0 or state.space.count == 0:
            return state.edit
        labels = Labels(known_labels(context))
        deleted = math.floor(self.ratio_delete * state.left + 1e-9)
        state = Uniform(deleted)(state.only("drop"), labels, generator)
        missing = deleted - state.edit.drop.shape[1]
        state = Uniform()(state.only("add"), labels, generator)
        if state.left:  # also where edges were missing: an added one may let another go, where no node may be isolated
            missing = missing or -state.left
            state = Uniform()(state.only("drop"), labels, generator)
        if missing:
            dry = "edges inside a class" if missing > 0 else "pairs between classes"
            context.note(f"{{count}} changes went to the other kind: there were too few {dry}", count=abs(missing))
        return finished(context, state)
