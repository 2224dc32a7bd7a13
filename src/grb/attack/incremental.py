"""Forward passes that recompute only what an attacker can change and the loss can see.

While an injection attack looks for features, the wiring is fixed and only the injected rows vary. Going forward
through a model's stages, the rows that can vary grow by one hop at each propagation; going backward from the targets,
so do the rows that the loss can see. Rows outside either set are constants: they are computed once, and what they
contribute to a propagation is kept as a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from grb.graph import CSR, Graph
from grb.model.base import Mix, Propagate, Rows, Stage, State, evaluating, prepare

Forward = Callable[[Tensor], Tensor]


def forward_of_features(model: nn.Module, graph: Graph, varying: Tensor, targets: Tensor) -> tuple[Forward, bool]:
    """A function from the features of the ``varying`` nodes to the logits of the ``targets``.

    Args:
        model: In evaluation mode.
        graph: With all edges in place; the stored features of the varying nodes do not matter.
        varying: Ids, ascending, [v].
        targets: Ids, [t].

    Returns:
        The function, [v, d] to [t, classes], and whether it is incremental (it is if the model has stages).
    """
    stages_of = getattr(model, "stages", None)
    stages = stages_of() if stages_of is not None else None
    op = prepare(model, graph.adj)
    ops = op if isinstance(op, Sequence) else [op]
    if stages is None or not isinstance(graph.x, Tensor) or not all(isinstance(part, CSR) for part in ops):
        return _full_forward(model, graph, op, varying, targets), False
    with evaluating(model):
        steps = _plan(stages, ops, graph, varying, targets)
    return steps, True


def _full_forward(model: nn.Module, graph: Graph, op: object, varying: Tensor, targets: Tensor) -> Forward:
    x = graph.x if isinstance(graph.x, Tensor) else graph.x @ torch.eye(graph.num_features)

    def forward(features: Tensor) -> Tensor:
        logits: Tensor = model(x.index_copy(0, varying, features), op)
        return logits[targets]

    return forward


@dataclass(frozen=True, eq=False)
class _Spread:
    """Rows after a step from rows before it: those that varied already, in place among constants."""

    constants: Tensor  # [after, width]; rows that vary are zero
    places: Tensor  # where the varying rows go, among those after
    taken: Tensor | None  # which of the rows before are still needed; None: all

    def __call__(self, rows: Tensor) -> Tensor:
        return self.constants.index_copy(0, self.places, rows if self.taken is None else rows[self.taken])


@dataclass(frozen=True, eq=False)
class _Propagated:
    """One propagation restricted to rows that vary: block times varying rows plus what the constants contribute."""

    block: CSR
    constants: Tensor
    slot: int
    others: tuple[_Spread | None, ...]

    def __call__(self, state: State) -> State:
        moved = (self.block @ state[self.slot]).add_(self.constants)
        return tuple(moved if spread is None else spread(rows) for spread, rows in zip(self.others, state, strict=True))


@dataclass(frozen=True, eq=False)
class _Mixed:
    """One feature-dependent step: all sources of the varying rows, constants included."""

    mix: Mix
    block: CSR
    sources: tuple[_Spread, ...]
    targets: tuple[_Spread, ...]

    def __call__(self, state: State) -> State:
        sources = tuple(spread(rows) for spread, rows in zip(self.sources, state, strict=True))
        targets = tuple(spread(rows) for spread, rows in zip(self.targets, state, strict=True))
        return self.mix.apply(self.block, sources, targets)


@dataclass(frozen=True, eq=False)
class _Steps:
    """The whole restricted forward pass."""

    steps: tuple[Callable[[State], State], ...]
    last: _Spread

    def __call__(self, features: Tensor) -> Tensor:
        state: State = (features,)
        for step in self.steps:
            state = step(state)
        return self.last(state[0])


def _plan(stages: Sequence[Stage], ops: Sequence[CSR], graph: Graph, varying: Tensor, targets: Tensor) -> _Steps:
    needed = _needed_rows(stages, ops, graph.n, targets)
    rows = varying
    assert isinstance(graph.x, Tensor)
    state: State = (graph.x,)
    steps: list[Callable[[State], State]] = []
    for stage, wanted in zip(stages, needed, strict=True):
        if isinstance(stage, Rows):
            steps.append(stage.apply)
            state = stage.apply(state)
            continue
        op = ops[stage.op]
        after = _neighbourhood(op, rows, graph.n) & wanted
        after_ids = after.nonzero().flatten()
        if isinstance(stage, Mix):
            steps.append(_mixed(stage, op, state, rows, after_ids))
            state = stage.apply(op, state, state)
        else:
            steps.append(_propagated(stage, op, state, rows, after_ids))
            moved = op @ state[stage.slot]
            state = (*state[: stage.slot], moved, *state[stage.slot + 1 :])
        rows = after_ids
    return _Steps(tuple(steps), _spread(state[0], rows, targets))


def _needed_rows(stages: Sequence[Stage], ops: Sequence[CSR], n: int, targets: Tensor) -> list[Tensor]:
    """For every stage, which rows of its result the targets' logits depend on."""
    mask = torch.zeros(n, dtype=torch.bool)
    mask[targets] = True
    needed = []
    for stage in reversed(stages):
        needed.append(mask)
        if not isinstance(stage, Rows):
            mask = _neighbourhood(ops[stage.op], mask.nonzero().flatten(), n)
    return needed[::-1]


def _neighbourhood(op: CSR, rows: Tensor, n: int) -> Tensor:
    """The rows and everything joined with them; patterns of ours are symmetric, so both directions agree."""
    mask = torch.zeros(n, dtype=torch.bool)
    mask[rows] = True
    mask[op.pattern.rows(rows)[0].indices.long()] = True
    return mask


def _propagated(stage: Propagate, op: CSR, state: State, before: Tensor, after: Tensor) -> _Propagated:
    rows = op.rows(after)
    block = _columns(rows, before)
    source = state[stage.slot]
    # what the constants contribute: the whole product without what the varying rows had in it
    constants = rows @ source.index_fill(0, before, 0.0)
    others = tuple(None if slot == stage.slot else _spread(values, before, after) for slot, values in enumerate(state))
    return _Propagated(block, constants, stage.slot, others)


def _mixed(stage: Mix, op: CSR, state: State, before: Tensor, after: Tensor) -> _Mixed:
    rows = op.rows(after)
    sources = rows.pattern.indices.long().unique()
    block = _columns(rows, sources)
    return _Mixed(
        stage,
        block,
        tuple(_spread(values, before, sources) for values in state),
        tuple(_spread(values, before, after) for values in state),
    )


def _spread(values: Tensor, before: Tensor, after: Tensor) -> _Spread:
    """Constants of the rows ``after``, and where the varying rows ``before`` stand among them."""
    n = len(values)
    place = torch.full((n,), -1, dtype=torch.int64)
    place[after] = torch.arange(len(after))
    places = place[before]
    taken = (places >= 0).nonzero().flatten()
    constants = values.index_fill(0, before, 0.0)[after] if len(before) else values[after]
    return _Spread(constants, places[taken], None if len(taken) == len(before) else taken)


def _columns(rows: CSR, columns: Tensor) -> CSR:
    """Only some columns of a block of rows, renumbered in their order."""
    pattern = rows.pattern
    new_id = torch.full((pattern.columns,), -1, dtype=torch.int64)
    new_id[columns] = torch.arange(len(columns))
    renumbered = new_id[pattern.indices.long()]
    keep = renumbered >= 0
    counts = torch.bincount(pattern.row_ids.long()[keep], minlength=pattern.shape[0])
    indptr = torch.nn.functional.pad(counts.cumsum(0), (1, 0)).to(pattern.indptr.dtype)
    block = type(pattern)(indptr, renumbered[keep].to(pattern.indices.dtype), len(columns))
    return CSR(block, None if rows.values is None else rows.values[keep])
