r"""The exact outcome of many alternative flips of one graph, each recomputed only where it changes anything.

A flip of the pair :math:`(u, v)` moves the rows of both ends and, where weights depend on degrees, those of their
neighbours; every further propagation widens that by one hop. All other rows are what they were, so they are read from the
activations of the current graph. Thousands of flips are evaluated side by side as one sparse product: a row of it is a node
of one alternative, its columns are rows of the current graph or rows that the same alternative changed before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from grb.attack.base import AttackContext
from grb.attack.losses import Loss
from grb.attack.modification.gradient import Victim
from grb.attack.modification.low_rank_gradients import Scaling, power
from grb.attack.passes import counted
from grb.graph import CSR, Adjacency, Pattern
from grb.model.base import Mix, Pool, Propagate, Rows, Stage, State

# nodes times alternatives that are marked at once
MARKS = 2**22
# a graph of at least this number of nodes is evaluated as a whole where a flip changes this fraction of a pass or more
LARGE, WIDE = 256, 0.3
# flips whose cost is measured to know
TRIED = 8
# numbers in the states of all rows that are computed at once, and the rows that one flip is taken to change
NUMBERS = 2**24
BALL = 64
# alternatives of a round that are whole passes, the fewest of them, and whole passes that a round may cost if they are local
WHOLE, FEWEST, ROUND = 64, 4, 256


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What alternatives do to the targets, as differences from the current graph.

    Args:
        kept: Targets that keep their label, [g].
        loss: Sum of the targets' losses, [g].
    """

    kept: Tensor
    loss: Tensor


class FlipEvaluator(Protocol):
    """A victim on one graph at a time, and what alternatives to that graph would do to the targets.

    ``losses`` and ``right`` are of the current graph, [t]. ``passes`` counts the graphs looked at, ``work`` what that cost in
    forward passes of the whole graph, by the entries of the operators that were multiplied; ``cost`` is that of a typical flip.
    """

    adj: Adjacency
    losses: Tensor
    right: Tensor
    passes: int
    local: bool
    cost: float

    @property
    def work(self) -> float:
        """Cost so far, in forward passes of the whole graph."""

    def outcomes(self, pairs: Tensor, groups: Tensor, count: int) -> Outcomes:
        """What ``count`` alternatives would do; ``groups`` is the alternative of every flipped pair, ascending, [p]."""

    def flip(self, pairs: Tensor) -> None:
        """Make some flips part of the current graph."""


def evaluator_of(victim: Victim, adj: Adjacency, row_loss: Loss) -> FlipEvaluator:
    """Local passes where the model allows them, else one whole forward pass per alternative.

    Args:
        victim: The model under attack.
        adj: The current edges.
        row_loss: Loss of every target by itself, [t] from [t, c] and [t].
    """
    known = not any(isinstance(stage, Pool) for stage in victim.stages) and victim.operator_scalings() is not None
    if known and victim.stages and adj.values is None:
        made = LocalEvaluator(victim, adj, row_loss)
        if adj.n < LARGE or made.cost < WIDE:
            return made
    return WholeEvaluator(victim, adj, row_loss)


def affordable(evaluator: FlipEvaluator, wanted: int) -> int:
    """How many of the alternatives wanted a round may look at: fewer where each of them costs much.

    Args:
        evaluator: Knows what an alternative costs.
        wanted: At most this number.
    """
    if not evaluator.local:
        return min(wanted, max(FEWEST, int(WHOLE / evaluator.cost)))
    return min(wanted, max(WHOLE, int(ROUND / max(evaluator.cost, 1e-9))))


def note_cost(context: AttackContext, evaluator: FlipEvaluator) -> None:
    """Leave a remark about the graphs that were looked at and what that cost in forward passes of the whole graph."""
    context.note(
        "{graphs} graphs were evaluated at the cost of {passes} forward passes",
        graphs=evaluator.passes,
        passes=math.ceil(evaluator.work),
    )


class WholeEvaluator:
    """One forward pass of the whole graph for every alternative; for models without stages.

    Args:
        victim: The model under attack.
        adj: The current edges.
        row_loss: Loss of every target by itself.
    """

    local = False

    def __init__(self, victim: Victim, adj: Adjacency, row_loss: Loss) -> None:
        self.victim, self.adj, self.row_loss, self.passes = victim, adj, row_loss, 0
        self.cost = max(1.0, float(getattr(victim.model, "operator_cost", 1)))
        self.losses, self.right = self._judged(adj)

    @property
    def work(self) -> float:
        """Cost so far, in forward passes of the whole graph."""
        return float(self.passes)

    def _judged(self, adj: Adjacency) -> tuple[Tensor, Tensor]:
        self.passes += 1
        logits, labels = self.victim.logits(adj)[self.victim.targets], self.victim.labels
        return self.row_loss(logits, labels).double(), logits.argmax(1) == labels

    def outcomes(self, pairs: Tensor, groups: Tensor, count: int) -> Outcomes:
        """What some alternatives would do to the targets, see :class:`FlipEvaluator`."""
        found = Outcomes(torch.zeros(count, dtype=torch.int64), torch.zeros(count, dtype=torch.float64))
        for number, own in enumerate(pairs.split(torch.bincount(groups, minlength=count).tolist(), dim=1)):
            losses, right = self._judged(flipped(self.adj, own))
            found.kept[number] = right.sum() - self.right.sum()
            found.loss[number] = losses.sum() - self.losses.sum()
        return found

    def flip(self, pairs: Tensor) -> None:
        """Make some flips part of the current graph."""
        self.adj = flipped(self.adj, pairs)
        self.losses, self.right = self._judged(self.adj)


def flipped(adj: Adjacency, pairs: Tensor) -> Adjacency:
    """Edges with some pairs flipped: those present go, those absent come."""
    present = adj.has(pairs)
    return adj.edited(pairs[:, ~present], pairs[:, present], base=adj.n, n=adj.n)


# propagations of different parts of a state that need not wait for each other, or one mix
Step = tuple[Propagate | Mix, ...]


def _grouped(stages: Sequence[Stage]) -> list[Rows | Step]:
    """Stages, with neighbouring propagations of different slots as one step: rows that change grow by one hop, not by two."""
    steps: list[Rows | Step] = []
    for stage in stages:
        before = steps[-1] if steps else ()
        if isinstance(stage, Rows):
            steps.append(stage)
        elif (
            isinstance(stage, Propagate)
            and isinstance(before, tuple)
            and all(isinstance(each, Propagate) and each.slot != stage.slot for each in before)
            and before
        ):
            steps[-1] = (*before, stage)
        else:
            steps.append((stage,))
    return steps


@dataclass(frozen=True, eq=False)
class _Changed:
    """Rows that alternatives change: ``alternative * n + node`` of each, ascending, and their state."""

    keys: Tensor
    state: State


class _Flips:
    """The flips of some alternatives, by both directions."""

    def __init__(self, adj: Adjacency, pairs: Tensor, groups: Tensor, count: int) -> None:
        n = adj.n
        self.n, self.count = n, count
        rows = torch.cat([groups * n + pairs[0], groups * n + pairs[1]])
        columns = torch.cat([pairs[1], pairs[0]])
        sign = torch.where(adj.has(pairs), -1, 1).repeat(2)
        order = torch.argsort(rows * n + columns)
        rows, columns, sign = rows[order], columns[order], sign[order]
        self.shift = torch.zeros(count * n, dtype=torch.int32).index_add_(0, rows, sign.int())
        self.ends = torch.zeros(count * n, dtype=torch.bool)
        self.ends[rows] = True
        self.added_rows, self.added_columns = rows[sign > 0], columns[sign > 0]
        self.dropped = rows[sign < 0] * n + columns[sign < 0]


class LocalEvaluator:
    """A victim on one graph at a time, whose flips are evaluated where they change something.

    Args:
        victim: With stages whose operators all come from the edges by a known scaling.
        adj: The current edges, without weights.
        row_loss: Loss of every target by itself.
    """

    local = True

    def __init__(self, victim: Victim, adj: Adjacency, row_loss: Loss) -> None:
        self.victim, self.adj, self.row_loss = victim, adj, row_loss
        self.seen = victim.seen(adj)
        self.stages: Sequence[Stage] = victim.stages
        scalings = victim.operator_scalings()
        assert scalings is not None, "a victim without known scalings has no local passes"
        self.scalings = scalings
        self.steps = _grouped(self.stages)
        self.last = max((k for k, stage in enumerate(self.steps) if isinstance(stage, tuple)), default=-1)
        self.position = torch.full((adj.n,), -1)
        self.position[victim.targets] = torch.arange(len(victim.targets))
        self.passes = self.entries = 0
        self._start()
        self.cost = self._typical_cost() if len(victim.targets) and adj.n > 1 else 1.0

    def _start(self) -> None:
        """Activations of the current graph before every step along edges."""
        ops, state = self.victim.operators(self.adj), self.victim.state
        self.before: dict[int, State] = {}
        with torch.no_grad():
            for number, step in enumerate(self.steps):
                if isinstance(step, Rows):
                    state = step.apply(state)
                    continue
                self.before[number] = tuple(each.clone() for each in state)
                for stage in step:
                    self.entries += ops[stage.op].pattern.entries
                    if isinstance(stage, Mix):
                        state = stage.apply(ops[stage.op], state, state)
                    else:
                        moved = ops[stage.op] @ state[stage.slot]
                        state = (*state[: stage.slot], moved, *state[stage.slot + 1 :])
        self.whole = max(self.entries, 1)
        logits = counted(state[0][self.victim.targets])
        self.losses, self.right = self._judged(logits, self.victim.labels)
        self.passes += 1

    @property
    def work(self) -> float:
        """Cost so far, in forward passes of the whole graph: entries multiplied, over those of one pass."""
        return self.entries / self.whole

    def _typical_cost(self) -> float:
        """Cost of a flip at a target, in whole passes; measured for a few spread over the targets and nodes."""
        before = self.entries
        targets = self.victim.targets
        first = targets[torch.linspace(0, len(targets) - 1, TRIED).long()]
        second = torch.linspace(0, self.adj.n - 1, TRIED).long()
        second = torch.where(first == second, (second + 1) % self.adj.n, second)
        flips = _Flips(self.seen, torch.stack([first, second]), torch.arange(TRIED), TRIED)
        self._passed(flips, None)
        spent, self.entries = self.entries - before, before
        return spent / TRIED / self.whole

    def _judged(self, logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        return self.row_loss(logits, labels).double(), logits.argmax(1) == labels

    def outcomes(self, pairs: Tensor, groups: Tensor, count: int) -> Outcomes:
        """What some alternatives would do to the targets.

        Args:
            pairs: Pairs that are flipped, [2, p]; edges go and absent pairs come.
            groups: The alternative of every pair, ascending, [p].
            count: Number of alternatives.
        """
        kept, loss = torch.zeros(count, dtype=torch.int64), torch.zeros(count, dtype=torch.float64)
        self.passes += count
        if self.victim.mask is not None:
            visible = self.victim.mask.of(pairs)
            pairs, groups = pairs[:, visible], groups[visible]
        for first, last in self._chunks(torch.bincount(groups, minlength=count)):
            start, stop = torch.searchsorted(groups, torch.tensor([first, last])).tolist()
            flips = _Flips(self.seen, pairs[:, start:stop], groups[start:stop] - first, last - first)
            changed = self._passed(flips, None)
            owner, at = changed.keys // self.adj.n, self.position[changed.keys % self.adj.n]
            losses, right = self._judged(counted(changed.state[0], last - first), self.victim.labels[at])
            kept[first:last].index_add_(0, owner, right.long() - self.right[at].long())
            loss[first:last].index_add_(0, owner, losses - self.losses[at])
        return Outcomes(kept, loss)

    def _chunks(self, flips: Tensor) -> list[tuple[int, int]]:
        """Ranges of alternatives that are evaluated at once, so that memory stays bounded."""
        n, count = max(self.adj.n, 1), len(flips)
        rows = (flips * BALL).clamp(1, n).cumsum(0)
        width = max(
            (sum(each[0].numel() for each in state) for state in self.before.values() if len(state[0])), default=1
        )
        part = torch.maximum(rows * width // NUMBERS, torch.arange(count) * n // MARKS)
        bounds = [0, *(part.diff().nonzero().flatten() + 1).tolist(), count]
        return [(first, last) for first, last in zip(bounds, bounds[1:], strict=False) if first < last]

    def flip(self, pairs: Tensor) -> None:
        """Make some flips part of the current graph."""
        written: dict[int, _Changed] = {}
        self.adj = flipped(self.adj, pairs)
        if self.victim.mask is not None:
            pairs = pairs[:, self.victim.mask.of(pairs)]
        flips = _Flips(self.seen, pairs, torch.zeros(pairs.shape[1], dtype=torch.int64), 1)
        changed = self._passed(flips, written)
        for number, rows in written.items():
            for stored, new in zip(self.before[number], rows.state, strict=True):
                stored[rows.keys] = new
        self.passes += 1
        at = self.position[changed.keys]
        self.losses[at], self.right[at] = self._judged(counted(changed.state[0]), self.victim.labels[at])
        self.seen = flipped(self.seen, pairs)

    def _passed(self, flips: _Flips, written: dict[int, _Changed] | None) -> _Changed:
        """Rows of targets that the alternatives change, and their logits."""
        changed = _Changed(torch.empty(0, dtype=torch.int64), tuple(each[:0] for each in self.victim.state))
        with torch.no_grad():
            for number, step in enumerate(self.steps):
                if isinstance(step, Rows):
                    changed = _Changed(changed.keys, step.apply(changed.state))
                    continue
                if written is not None:
                    written[number] = changed
                changed = self._moved(number, step, flips, changed)
        return changed

    def _moved(self, number: int, step: Step, flips: _Flips, changed: _Changed) -> _Changed:
        base = self.before[number]
        right = any(self.scalings[stage.op].right for stage in step)
        keys = self._rows(flips, changed, right, last=number == self.last)
        sources = tuple(torch.cat([own, new]) for own, new in zip(base, changed.state, strict=True))
        position = self._numbers(flips, changed.keys)
        at = position[keys].long()
        old = torch.where(at < 0, keys % flips.n, at + flips.n)
        state = [each.index_select(0, old) for each in sources]
        for stage in step:
            block = self._block(flips, changed, keys, self.scalings[stage.op])
            self.entries += block.pattern.entries
            if isinstance(stage, Mix):
                return _Changed(keys, stage.apply(block, sources, tuple(state)))
            state[stage.slot] = block @ sources[stage.slot]
        return _Changed(keys, tuple(state))

    def _rows(self, flips: _Flips, changed: _Changed, right: bool, *, last: bool) -> Tensor:
        """Keys of the rows that change in a step along edges; of the last one only targets matter."""
        marks = flips.ends.clone()
        seeds = changed.keys
        if right:
            seeds = torch.cat([seeds, flips.ends.nonzero().flatten()])
        marks[changed.keys] = True
        nodes, owners = seeds % flips.n, seeds - seeds % flips.n
        block, _ = self.seen.pattern.rows(nodes)
        marks[block.indices.long() + owners.repeat_interleave(block.counts.long())] = True
        if last:
            marks.view(flips.count, flips.n)[:, self.position < 0] = False
        return marks.nonzero().flatten()

    def _numbers(self, flips: _Flips, keys: Tensor) -> Tensor:
        numbers = torch.full((flips.count * flips.n,), -1, dtype=torch.int32)
        numbers[keys] = torch.arange(len(keys), dtype=torch.int32)
        return numbers

    def _block(self, flips: _Flips, changed: _Changed, keys: Tensor, scaling: Scaling) -> CSR:
        """Rows of the alternatives' operators over the rows of the current graph and those changed before."""
        n, nodes = flips.n, keys % flips.n
        own, _ = self.seen.pattern.rows(nodes)
        rows = torch.arange(len(keys)).repeat_interleave(own.counts.long())
        columns = own.indices.long()
        if len(flips.dropped):
            entries = keys[rows] * n + columns
            at = torch.searchsorted(flips.dropped, entries).clamp_(max=len(flips.dropped) - 1)
            stay = flips.dropped[at] != entries
            rows, columns = rows[stay], columns[stay]
        number = self._numbers(flips, keys)
        added = number[flips.added_rows].long()
        wanted = added >= 0
        parts = [(rows, columns), (added[wanted], flips.added_columns[wanted])]
        if scaling.self_loops:
            parts.append((torch.arange(len(keys)), nodes))
        rows, columns = _by_rows(parts, len(keys))
        sources = keys[rows] - nodes[rows] + columns
        at = self._numbers(flips, changed.keys)[sources].long()
        values = self._values(flips, keys[rows], sources, scaling)
        indptr = functional.pad(torch.bincount(rows, minlength=len(keys)).cumsum(0), (1, 0))
        indices = torch.where(at < 0, columns, at + n)
        return CSR(Pattern(indptr, indices, n + len(changed.keys)), values)

    def _values(self, flips: _Flips, rows: Tensor, columns: Tensor, scaling: Scaling) -> Tensor:
        dtype = self.victim.state[0].dtype
        values = torch.ones(len(rows), dtype=dtype)
        for keys, exponent in ((rows, scaling.left), (columns, scaling.right)):
            if exponent:
                degrees = self.seen.degrees[keys % flips.n].to(dtype) + flips.shift[keys].to(dtype)
                values = values * power(degrees + float(scaling.self_loops), exponent)
        return values


def _by_rows(parts: list[tuple[Tensor, Tensor]], count: int) -> tuple[Tensor, Tensor]:
    """Entries of several lists, each ascending by row, as one list ascending by row; without sorting."""
    counts = [torch.bincount(rows, minlength=count) for rows, _ in parts]
    starts = functional.pad(torch.stack(counts).sum(0).cumsum(0), (1, 0))[:-1]
    total = sum(len(rows) for rows, _ in parts)
    all_rows, all_columns = torch.empty(total, dtype=torch.int64), torch.empty(total, dtype=torch.int64)
    for own, (rows, columns) in zip(counts, parts, strict=True):
        within = torch.arange(len(rows)) - (own.cumsum(0) - own)[rows]
        at = starts[rows] + within
        all_rows[at], all_columns[at] = rows, columns
        starts = starts + own
    return all_rows, all_columns
