"""RND: random edges go or come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch

from grb.attack.base import AttackContext
from grb.attack.modification.base import Limits, SearchState, finished
from grb.attack.modification.scores import Constant
from grb.attack.modification.selectors import Uniform
from grb.errors import DataError
from grb.graph import GraphEdit

Mode = Literal["drop", "add", "flip"]
KINDS: dict[Mode, tuple[Literal["add", "drop"], ...]] = {"drop": ("drop",), "add": ("add",), "flip": ("add", "drop")}


@dataclass(frozen=True, kw_only=True)
class RND(Limits):
    """The random baseline: pairs with an end among the targets, uniformly. Needs no model.

    Args:
        mode: ``drop`` edges as GRB does, ``add`` absent pairs, or ``flip`` any pair, which in a sparse graph is an
            addition nearly always.
    """

    mode: Mode = "drop"
    version = 1
    needs_model = False

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise DataError(f"mode is {self.mode!r}, but 'drop', 'add' or 'flip' is needed")

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Flip random pairs."""
        state = SearchState.of(context)
        return finished(context, Uniform()(state.only(*KINDS[self.mode]), Constant(), generator))


RAND = RND  # its name in THUDM/grb
