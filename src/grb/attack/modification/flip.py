"""FLIP: edges by the centrality of their ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from grb.attack.base import AttackContext
from grb.attack.modification.base import Limits, SearchState, finished
from grb.attack.modification.centrality import betweenness, degree, eigenvector, exact_betweenness
from grb.attack.modification.scores import Central
from grb.attack.modification.selectors import TopK
from grb.errors import DataError
from grb.graph import Graph, GraphEdit

Kind = Literal["deg", "bet", "bet-exact", "eigen"]
CENTRALITIES: dict[Kind, Callable[[Graph], Tensor]] = {
    "deg": degree,
    "bet": betweenness,
    "bet-exact": exact_betweenness,
    "eigen": eigenvector,
}


@dataclass(frozen=True, kw_only=True)
class FLIP(Limits):
    """Edges at the targets go in the order of their ends' centralities added up. Needs no model.

    Where no edge is left to drop or none may be dropped, absent pairs come, in the order that the complement of the
    graph would give: least central first where the most central edges went first.

    Args:
        flip_type: Centrality: ``deg`` degree, ``bet`` betweenness (estimated above 5,000 nodes; ``bet-exact`` is not, and
            needs the extra igraph), ``eigen`` eigenvector.
        mode: ``ascend``: the least central edges first, as GRB's paper says; ``descend``: the most central first, as in its
            configurations.

    References:
        Bojchevski and Günnemann, *Adversarial Attacks on Node Embeddings via Graph Poisoning*, ICML 2019.
    """

    flip_type: Kind = "deg"
    mode: Literal["descend", "ascend"] = "ascend"
    version = 2
    needs_model = False

    def __post_init__(self) -> None:
        if self.flip_type not in CENTRALITIES or self.mode not in ("descend", "ascend"):
            raise DataError(
                f"flip_type is {self.flip_type!r} and mode is {self.mode!r}, but one of "
                f"{', '.join(map(repr, get_args(Kind)))} and 'descend' or 'ascend' are needed"
            )

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Flip pairs in the order of their centrality."""
        state = SearchState.of(context)
        if state.left <= 0 or state.space.count == 0:
            return state.edit
        values = CENTRALITIES[self.flip_type](state.clean)
        score = Central(values if self.mode == "descend" else -values)
        left = math.inf
        while 0 < state.left < left:  # an added edge may let another one go, where no node may be isolated
            left = state.left
            state = TopK()(state.only("drop"), score, generator)
            state = TopK()(state.only("add"), score, generator)
        return finished(context, state)
