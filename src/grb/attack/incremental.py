"""Forward passes that recompute only what an attacker can change and the loss can see.

While an injection attack looks for features, the wiring is fixed and only the injected rows vary. Going forward
through a model's stages, the rows that can vary grow by one hop at each propagation; going backward from the targets,
so do the rows that the loss can see. Rows outside either set are constants: they are computed once, and what they
contribute to a propagation is kept as a sum. What happens to a row before edges matter at all is kept even longer, for
the clean graph and for every wiring of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from grb.attack.passes import counted
from grb.attack.similarity_passes import similarity_forward
from grb.graph import CSR, Adjacency, Graph, GraphEdit, Pattern, dense
from grb.model.base import Mix, Pool, Propagate, Rows, Stage, State, evaluating, prepare
from grb.model.ours import is_ours
from grb.model.similarity import SimilarityModel

Forward = Callable[[Tensor], Tensor]


class Rewired:
    """A model on a graph that will be wired in many ways.

    Args:
        model: In evaluation mode.
        graph: The clean graph.
    """

    def __init__(self, model: nn.Module, graph: Graph) -> None:
        self.model, self.graph = model, graph
        stages_of = getattr(model, "stages", None)
        self.stages: list[Stage] | None = stages_of() if stages_of is not None else None
        self.lead: list[Rows] = []
        self.state: State = ()
        if self.stages is not None and isinstance(graph.x, Tensor):
            for stage in self.stages:
                if not isinstance(stage, Rows) or isinstance(stage, Pool):
                    break
                self.lead.append(stage)
            with evaluating(model):
                self.state = _through(self.lead, (graph.x,))
        self.similar: State = ()
        # a model of others could say that less depends on injected rows than does
        if isinstance(model, SimilarityModel) and isinstance(graph.x, Tensor) and is_ours(model):
            self.layers = model.similarity_layers()
            with evaluating(model):
                self.similar = self.layers[0].rows((graph.x,))

    def logits(self) -> Tensor:
        """Logits of all nodes of the clean graph, [n, classes]."""
        op, ops = self._operators(self.graph.adj)
        state = self.state
        with evaluating(self.model):
            if ops is None or self.stages is None:
                logits: Tensor = self.model(self.graph.x, op)
                return counted(logits)
            for stage in self.stages[len(self.lead) :]:
                state = _whole_step(stage, ops, state)
        return counted(state[0])

    def forward(self, wired: GraphEdit, targets: Tensor) -> tuple[Forward, bool]:
        """A function from the features of the nodes that ``wired`` injects to the logits of the ``targets``.

        Args:
            wired: Edges of the injected nodes; the features in it do not matter.
            targets: Ids, [t].

        Returns:
            The function, [m, d] to [t, classes], and whether it is incremental (it is if the model has stages).
        """
        adj = self.graph.adj.edited(wired.add, wired.drop, base=wired.base, n=wired.n_after)
        new = torch.arange(wired.base, wired.n_after)
        op, ops = self._operators(adj)
        if self.similar:
            with evaluating(self.model):
                return similarity_forward(self.layers, op, self.similar, new, targets), True
        if ops is None or self.stages is None:
            return full_forward(self.model, self.graph.apply(wired), new, targets, op), False
        front = _Front(adj.n, new, torch.arange(wired.base), self.state)
        with evaluating(self.model):
            return _plan(self.stages, len(self.lead), ops, front, targets), True

    def _operators(self, adj: Adjacency) -> tuple[Any, Sequence[CSR] | None]:
        """What the model prepares of these edges, and its operators if the stages can be run with them."""
        op = prepare(self.model, adj)
        ops = op if isinstance(op, Sequence) else [op]
        return op, ops if self.state and all(isinstance(part, CSR) for part in ops) else None


def forward_of_features(model: nn.Module, graph: Graph, varying: Tensor, targets: Tensor) -> tuple[Forward, bool]:
    """A function from the features of some nodes of a graph to the logits of others.

    Args:
        model: In evaluation mode.
        graph: With all edges in place; the stored features of the varying nodes do not matter.
        varying: Ids, ascending, [v].
        targets: Ids, [t].

    Returns:
        The function, [v, d] to [t, classes], and whether it is incremental (it is if the model has stages).
    """
    rewired = Rewired(model, graph)
    op, ops = rewired._operators(graph.adj)
    if ops is None or rewired.stages is None:
        return full_forward(model, graph, varying, targets, op), False
    constant = (_numbering(graph.n, varying) < 0).nonzero().flatten()
    front = _Front(graph.n, varying, constant, tuple(values[constant] for values in rewired.state))
    with evaluating(model):
        return _plan(rewired.stages, len(rewired.lead), ops, front, targets), True


def full_forward(model: nn.Module, attacked: Graph, varying: Tensor, targets: Tensor, op: Any = None) -> Forward:
    """The same function by whole forward passes; for models without stages, and to compare with.

    Args:
        op: What the model prepares of the attacked graph's edges, if that is known already.
    """
    op = prepare(model, attacked.adj) if op is None else op
    x = dense(attacked.x)

    def forward(features: Tensor) -> Tensor:
        logits: Tensor = model(x.index_copy(0, varying, features), op)
        return counted(logits[targets])

    return forward


def _through(stages: Sequence[Rows], state: State) -> State:
    for stage in stages:
        state = stage.apply(state)
    return state


def _whole_step(stage: Stage, ops: Sequence[CSR], state: State) -> State:
    if isinstance(stage, Rows):
        return stage.apply(state)
    if isinstance(stage, Mix):
        return stage.apply(ops[stage.op], state, state)
    return _replaced(state, stage.slot, ops[stage.op] @ state[stage.slot])


def _replaced(state: State, slot: int, value: Tensor) -> State:
    return (*state[:slot], value, *state[slot + 1 :])


@dataclass(frozen=True, eq=False)
class _Joined:
    """Wanted rows from the varying ones and from constants, in one order."""

    constants: Tensor  # [wanted, width]; rows that vary are zero
    positions: Tensor  # where varying rows go
    taken: Tensor | None  # which of the varying rows are wanted; None: all

    def __call__(self, rows: Tensor) -> Tensor:
        return self.constants.index_copy(0, self.positions, rows if self.taken is None else rows[self.taken])


@dataclass(frozen=True, eq=False)
class _Propagated:
    """One propagation restricted to rows that vary: block times varying rows plus what the constants contribute."""

    block: CSR
    constants: Tensor
    slot: int
    others: tuple[_Joined | None, ...]

    def __call__(self, state: State) -> State:
        moved = (self.block @ state[self.slot]).add_(self.constants)
        return tuple(moved if joined is None else joined(rows) for joined, rows in zip(self.others, state, strict=True))


@dataclass(frozen=True, eq=False)
class _Mixed:
    """One feature-dependent step: all sources of the varying rows, constants included."""

    mix: Mix
    block: CSR
    sources: tuple[_Joined, ...]
    targets: tuple[_Joined, ...]

    def __call__(self, state: State) -> State:
        sources = tuple(joined(rows) for joined, rows in zip(self.sources, state, strict=True))
        targets = tuple(joined(rows) for joined, rows in zip(self.targets, state, strict=True))
        return self.mix.apply(self.block, sources, targets)


@dataclass(frozen=True, eq=False)
class _Pooled:
    """A step that sees all rows: the varying ones are put among the constants, and all of them vary afterwards."""

    pool: Pool
    rows: tuple[_Joined, ...]

    def __call__(self, state: State) -> State:
        return self.pool.apply(tuple(joined(rows) for joined, rows in zip(self.rows, state, strict=True)))

    def nothing(self) -> State:
        """No rows, as wide as those that come out."""
        return tuple(values[:0] for values in self.pool.apply(tuple(joined.constants for joined in self.rows)))


@dataclass(frozen=True, eq=False)
class _Steps:
    """The whole restricted forward pass."""

    steps: tuple[Callable[[State], State], ...]
    last: _Joined

    def __call__(self, features: Tensor) -> Tensor:
        state: State = (features,)
        for step in self.steps:
            state = step(state)
        return counted(self.last(state[0]))


@dataclass(frozen=True, eq=False)
class _Front:
    """Where a plan stands: which rows vary, which are constant, and the constants' state."""

    n: int
    varying: Tensor  # ids, ascending
    constant: Tensor  # ids, ascending
    state: State  # of the constant rows

    def spread(self, slot: int) -> Tensor:
        """One tensor of the state with a row for every node, zero where it is not constant, [n, width]."""
        values = self.state[slot]
        return values.new_zeros(self.n, *values.shape[1:]).index_copy_(0, self.constant, values)

    def own(self, rows: Tensor) -> State:
        """The state of some of the constant rows."""
        numbers = _numbering(self.n, self.constant)[rows]
        return tuple(values[numbers] for values in self.state)

    def joined(self, wanted: Tensor, slot: int) -> _Joined:
        position = _numbering(self.n, wanted)
        positions = position[self.varying]
        taken = (positions >= 0).nonzero().flatten()
        values = self.state[slot]
        constants = values.new_zeros(len(wanted), *values.shape[1:])
        of_constants = position[self.constant]
        inside = of_constants >= 0
        constants[of_constants[inside]] = values[inside]
        return _Joined(constants, positions[taken], None if len(taken) == len(positions) else taken)


def _plan(stages: Sequence[Stage], lead: int, ops: Sequence[CSR], front: _Front, targets: Tensor) -> _Steps:
    """Restrict the stages; the first ``lead`` of them are behind the front's constants already."""
    n = front.n
    steps: list[Callable[[State], State]] = [stage.apply for stage in stages[:lead] if isinstance(stage, Rows)]
    stages = stages[lead:]
    needed = _needed_rows(stages, ops, n, targets)
    for stage, wanted in zip(stages, needed, strict=True):
        if isinstance(stage, Pool):
            pooled = _Pooled(stage, tuple(front.joined(torch.arange(n), slot) for slot in range(len(front.state))))
            steps.append(pooled)
            front = _Front(n, torch.arange(n), torch.arange(0), pooled.nothing())
            continue
        if isinstance(stage, Rows):
            steps.append(stage.apply)
            front = _Front(n, front.varying, front.constant, stage.apply(front.state))
            continue
        op = ops[stage.op]
        # whoever hears a varying row varies; in a directed pattern that is not whom the row hears
        hearers = op.pattern if op.pattern.symmetric else op.pattern.transposed[0]
        varies = _neighbourhood(hearers, front.varying, n) & wanted
        after, constant = varies.nonzero().flatten(), (wanted & ~varies).nonzero().flatten()
        step: Callable[[State], State]
        if isinstance(stage, Mix):
            step, state = _mixed(stage, op, front, after, constant)
        else:
            step, state = _propagated(stage, op, front, after, constant)
        steps.append(step)
        front = _Front(n, after, constant, state)
    return _Steps(tuple(steps), front.joined(targets, 0))


def _needed_rows(stages: Sequence[Stage], ops: Sequence[CSR], n: int, targets: Tensor) -> list[Tensor]:
    """For every stage, which rows of its result the targets' logits depend on."""
    mask = torch.zeros(n, dtype=torch.bool)
    mask[targets] = True
    needed = []
    for stage in reversed(stages):
        needed.append(mask)
        if isinstance(stage, Pool):
            mask = torch.ones_like(mask)
        elif not isinstance(stage, Rows) and not mask.all():
            mask = _neighbourhood(ops[stage.op].pattern, mask.nonzero().flatten(), n)
    return needed[::-1]


def _neighbourhood(pattern: Pattern, rows: Tensor, n: int) -> Tensor:
    """The rows and the columns of all their entries, [n] booleans."""
    mask = torch.zeros(n, dtype=torch.bool)
    mask[rows] = True
    mask[pattern.rows(rows)[0].indices] = True
    return mask


def _propagated(stage: Propagate, op: CSR, front: _Front, after: Tensor, constant: Tensor) -> tuple[_Propagated, State]:
    """The restricted step, and the state of the rows that stay constant; all sources of these are constant too."""
    rows, spread = op.rows(after), front.spread(stage.slot)
    slots = range(len(front.state))
    others = tuple(None if slot == stage.slot else front.joined(after, slot) for slot in slots)
    # rows that are not constant are zero in ``spread``: cheaper than taking their columns out of the block
    step = _Propagated(_columns(rows, front.varying), rows @ spread, stage.slot, others)
    return step, _replaced(front.own(constant), stage.slot, op.rows(constant) @ spread)


def _mixed(stage: Mix, op: CSR, front: _Front, after: Tensor, constant: Tensor) -> tuple[_Mixed, State]:
    """The same for a step whose weights depend on the rows."""
    rows = op.rows(after)
    seen = torch.zeros(front.n, dtype=torch.bool)
    seen[rows.pattern.indices] = True
    sources = seen.nonzero().flatten()
    slots = range(len(front.state))
    step = _Mixed(
        stage,
        _columns(rows, sources),
        tuple(front.joined(sources, slot) for slot in slots),
        tuple(front.joined(after, slot) for slot in slots),
    )
    block = _columns(op.rows(constant), front.constant)
    return step, stage.apply(block, front.state, front.own(constant))


def _numbering(n: int, ids: Tensor) -> Tensor:
    """Position of every node in ``ids``, or -1, [n]."""
    numbers = torch.full((n,), -1, dtype=torch.int64)
    numbers[ids] = torch.arange(len(ids))
    return numbers


def _columns(rows: CSR, columns: Tensor) -> CSR:
    """Only some columns of a block of rows, renumbered in their order."""
    pattern = rows.pattern
    numbers = _numbering(pattern.columns, columns).to(pattern.indices.dtype).index_select(0, pattern.indices)
    inside = numbers >= 0
    kept = inside.nonzero().flatten()
    indptr = functional.pad(inside.cumsum(0, dtype=pattern.indptr.dtype), (1, 0)).index_select(0, pattern.indptr)
    values = None if rows.values is None else rows.values.index_select(0, kept)
    return CSR(Pattern(indptr, numbers.index_select(0, kept), len(columns)), values)
