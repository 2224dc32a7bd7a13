"""Random search on sets of flips: the Square attack's schedule, for edges."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from grb.attack.base import AttackContext
from grb.attack.modification.base import Limits, SearchState, finished
from grb.attack.modification.local import note_cost
from grb.attack.modification.pairs import without
from grb.attack.modification.queried import search_evaluator
from grb.attack.modification.selectors import accept
from grb.attack.square import SquareSchedule, shrunk
from grb.graph import GraphEdit


@dataclass(frozen=True, kw_only=True)
class RandomSearch(SquareSchedule, Limits):
    """Replace some flips by random ones, and keep the change if it helps; outputs of the model are all it asks for.

    The state is a set of flips that spends the budget. A proposal takes back a random fraction of them, half at first and
    one at the end, and puts random pairs with an end among the targets that still keep their label in their place. It is
    accepted if fewer targets keep their label or as many with a larger loss. One proposal is one query. With an oracle
    (``knowledge="query"``) it proposes until the queries are spent; where the answers are labels, a proposal that changes
    nothing is accepted by the toss of a coin.

    Args:
        share: Fraction of the flips that the first proposals replace.

    References:
        After Andriushchenko et al., *Square Attack: a query-efficient black-box adversarial attack via random search*,
        ECCV 2020.
    """

    version = 1

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Exchange random flips for random others."""
        state = SearchState.of(context)
        if state.left <= 0 or state.space.count == 0:
            return state.edit
        first = drawn_flips(state, context.targets, state.left, generator)
        oracle = context.oracle
        if oracle is not None and oracle.left < 2:  # too few to learn anything
            return finished(context, state.flip(first))
        evaluator = search_evaluator(context)
        evaluator.flip(first)
        state = state.flip(first)
        steps = self.steps if oracle is None else oracle.left
        for step in range(steps):
            gone = self._taken_back(state, step, steps, generator)
            rest = state.undo(gone)
            ends = context.targets[evaluator.right] if evaluator.right.any() else context.targets
            new = drawn_flips(rest, ends, rest.left, generator)
            change = torch.cat([state.pairs[:, gone], new], dim=1)
            if change.shape[1]:
                found = evaluator.outcomes(change, torch.zeros(change.shape[1], dtype=torch.int64), 1)
                gain = (-int(found.kept[0]), float(found.loss[0]))
                tied = oracle is not None and oracle.answers == "labels" and gain[0] == 0
                if gain > (0, 0.0) or (tied and bool(torch.rand((), generator=generator) < 0.5)):
                    evaluator.flip(change)
                    state = rest.flip(new)
            t = len(evaluator.right)
            context.report(float(evaluator.losses.sum()) / t, float(evaluator.right.sum()) / t)
        note_cost(context, evaluator)
        return finished(context, state)

    def _taken_back(self, state: SearchState, step: int, steps: int, generator: torch.Generator) -> Tensor:
        """Which flips a proposal replaces, [p]; added edges stay where a node may not lose its last neighbour."""
        count = state.pairs.shape[1]
        replaced = max(1, round(count * shrunk(self.share, step, steps)))
        gone = torch.zeros(count, dtype=torch.bool)
        gone[torch.randperm(count, generator=generator)[:replaced]] = True
        if state.spare is not None:
            gone[: state.edit.add.shape[1]] = False
        return gone


def drawn_flips(state: SearchState, ends: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Random pairs with an end among some nodes that may be flipped together, [2, p] with p up to ``count``."""
    if not state.may_add:
        edges = state.drops
        return accept(state, edges[:, torch.randperm(edges.shape[1], generator=generator)], count)
    wanted = 4 * count + 16
    first = ends[torch.randint(len(ends), (wanted,), generator=generator)]
    second = torch.randint(state.clean.n, (wanted,), generator=generator)
    pairs = torch.stack([first, second])[:, first != second]
    numbers = without(state.space.numbers(pairs).unique(), state.flipped)
    numbers = numbers[torch.randperm(len(numbers), generator=generator)]
    pairs = state.space.pairs(numbers)
    present = state.clean.adj.has(pairs)
    pairs = pairs[:, (present & state.may_drop) | (~present & state.may_add)]
    return accept(state, pairs, count)
