r"""Gradients of a loss with respect to edges, for pairs that exist and for pairs that do not, without an n x n matrix.

For a model that propagates by :math:`y_l = P z_l` with :math:`P_{uv} = d_u^a\, \tilde A_{uv}\, d_v^b`, let
:math:`g_l = \partial L / \partial y_l` and :math:`G_{uv} = \sum_l \langle g_{l,u}, z_{l,v} \rangle`. An undirected pair
changes two entries and the degrees of both ends:

.. math:: \frac{\partial L}{\partial a_{uv}} = d_u^a d_v^b G_{uv} + d_v^a d_u^b G_{vu} + c_u + c_v, \qquad
          c_u = \frac1{d_u} \sum_w \left( a\, P_{uw} G_{uw} + b\, P_{wu} G_{wu} \right) .

So one backward pass gives the gradient of any pair for an inner product. Models with weights along edges that depend on
the rows, such as attention, get the pairs as entries of weight zero instead, and autograd does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from grb.attack.incremental import Rewired
from grb.attack.losses import Loss, tanh_margin, typical_margin
from grb.errors import DataError
from grb.graph import CSR, Adjacency, Graph, Pattern, adjacency_from_edges, normalise, sampled_product
from grb.graph.sparse import row_sums
from grb.model.base import Propagate, Rows, Stage, State, prepare

# exponents of the degrees left and right, and whether self-loops are added: what models of ours do with a graph
SCALINGS = (
    (-0.5, -0.5, True),
    (-1.0, 0.0, True),
    (-1.0, -1.0, True),
    (0.0, 0.0, False),
    (-1.0, 0.0, False),
    (-0.5, -0.5, False),
    (0.0, 0.0, True),
)
# pairs whose gradients are computed at once
PAIRS_AT_ONCE = 2**16
# factors are kept in one piece up to so many numbers, because one large product is faster than several small ones
ONE_PIECE = 2**25


class Gradient(Protocol):
    """Derivatives of one loss on one graph."""

    @property
    def loss(self) -> float: ...

    @property
    def kept(self) -> float: ...

    def of(self, pairs: Tensor) -> Tensor:
        """Of undirected pairs, [p] from [2, p]."""

    def block(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Of the pairs of some nodes with others, [r, c]; on the diagonal it means nothing."""


@dataclass(frozen=True)
class Scaling:
    """How a model's operator comes from the edges: powers of the degrees left and right of it, with or without loops."""

    left: float
    right: float
    self_loops: bool

    @classmethod
    def of(cls, op: Any, adj: Adjacency) -> Scaling | None:
        """The scaling that makes ``op`` of the edges, found by comparing values; None if it is none of the known."""
        if not isinstance(op, CSR):
            return None
        for known in SCALINGS:
            own = normalise.scaled(adj, left=known[0], right=known[1], self_loops=known[2])
            if not torch.equal(own.pattern.indices, op.pattern.indices) or own.values is None or op.values is None:
                continue
            if torch.allclose(own.values, op.values.to(own.values.dtype), rtol=1e-5, atol=0.0):
                return cls(*known)
        return None


def _probe(dtype: torch.dtype) -> Adjacency:
    """A graph of five nodes whose degrees all differ, with weights: no two scalings agree on it."""
    adj, _ = adjacency_from_edges(np.array([[0, 0, 0, 0, 1, 1, 2], [1, 2, 3, 4, 2, 3, 3]]), 5)
    low, high = adj.pattern.row_ids, adj.pattern.indices
    return Adjacency(adj.pattern, 1.0 / (1 + torch.minimum(low, high) + 3 * torch.maximum(low, high)).to(dtype))


class Victim:
    """A model on one set of features whose edges vary: logits and gradients for any edges.

    Args:
        model: In evaluation mode.
        graph: The clean graph.
        targets: Nodes that the loss sees, [t].
        loss: What is raised, per target; the tanh-margin in units of the median clean margin if not given.
        labels: Labels that the loss compares with, [t]; what the model says on the clean graph if not given.
    """

    def __init__(
        self,
        model: nn.Module,
        graph: Graph,
        targets: Tensor,
        loss: Loss | None = None,
        labels: Tensor | None = None,
    ) -> None:
        self.model, self.graph, self.targets = model, graph, targets
        rewired = Rewired(model, graph)
        self.stages: Sequence[Stage] = (rewired.stages or [])[len(rewired.lead) :]
        self.state = rewired.state
        self.scalings = self._scalings() if self.state else None
        if labels is None or loss is None:
            clean = self.logits(graph.adj)[targets]
            labels = clean.argmax(1) if labels is None else labels
            loss = loss or partial(tanh_margin, scale=typical_margin(clean, labels))
        self.labels, self.loss_of = labels, loss

    def _scalings(self) -> list[Scaling] | None:
        """How every operator comes from the edges; None if gradients have no closed form."""
        if not all(isinstance(stage, Rows | Propagate) for stage in self.stages):
            return None
        probe = _probe(self.state[0].dtype)
        found = [Scaling.of(op, probe) for op in _listed(prepare(self.model, probe))]
        known = [each for each in found if each is not None]
        return known if len(known) == len(found) else None

    @property
    def closed_form(self) -> bool:
        return self.scalings is not None

    def logits(self, adj: Adjacency) -> Tensor:
        """Of all nodes, [n, classes], without gradients."""
        with torch.no_grad():
            if self.scalings is None:
                return self.model(self.graph.x, prepare(self.model, adj))
            ops, state = _listed(prepare(self.model, adj)), self.state
            for stage in self.stages:
                state = stage.apply(state) if isinstance(stage, Rows) else _moved(_propagate(stage), ops, state)
            return state[0]

    def judge(self, adj: Adjacency) -> tuple[float, float]:
        """Loss, and share of the targets that keep their label."""
        logits = self.logits(adj)[self.targets]
        return float(self.loss_of(logits, self.labels).mean()), self._kept(logits)

    def _kept(self, logits: Tensor) -> float:
        return float((logits.detach().argmax(1) == self.labels).float().mean())

    def gradient(self, adj: Adjacency) -> Gradient:
        """Derivatives of the mean loss of the targets with respect to edges, at these edges and weights."""
        if self.scalings is None:
            return _ByAutograd(self, adj)
        return self._closed_form(adj, self.scalings)

    def _closed_form(self, adj: Adjacency, scalings: Sequence[Scaling]) -> Gradient:
        ops = _listed(prepare(self.model, adj))
        degrees = {loops: _degrees(adj, loops, self.state[0].dtype) for loops in {each.self_loops for each in scalings}}
        parts: list[_Part] = []
        start = state = tuple(each.detach() for each in self.state)
        rows: list[Rows] = []
        for stage in self.stages:
            if isinstance(stage, Rows):
                rows.append(stage)
            else:
                with torch.no_grad():
                    state = _moved(_propagate(stage), ops, _through(rows, state))
                state = tuple(each.detach().requires_grad_() for each in state)
                parts.append(_Part(_propagate(stage), rows, state))
                rows = []
        with torch.enable_grad():
            logits = _through(rows, state)[0][self.targets]
            loss = self.loss_of(logits, self.labels).mean()
        value, kept = float(loss.detach()), self._kept(logits)
        factors, shift = _backward(loss, start, parts, ops, scalings, degrees)
        return _ByFactors(factors, shift, value, kept)


@dataclass(frozen=True, eq=False)
class _Part:
    """One propagation: what happens to the rows before it, and the state after it, cut off from its history."""

    stage: Propagate
    rows: Sequence[Rows]
    after: State


@dataclass(frozen=True, eq=False)
class _Factor:
    r"""One propagation's share of a gradient: :math:`\langle l_u, r_v \rangle + \langle l_v, r_u \rangle`."""

    left: Tensor  # [n, h]
    right: Tensor  # [n, h]


def _backward(
    loss: Tensor,
    start: State,
    parts: list[_Part],
    ops: Sequence[CSR],
    scalings: Sequence[Scaling],
    degrees: dict[bool, Tensor],
) -> tuple[list[_Factor], Tensor]:
    """Back through the propagations one by one.

    What happens to rows between two of them is computed again, so that memory is that of the states after propagations
    and of the factors, whatever a model does in between.
    """
    shift = torch.zeros_like(next(iter(degrees.values())))
    factors: list[_Factor] = []
    grads = _pulled([loss], None, parts[-1].after) if parts else []
    while parts:
        part = parts.pop()
        source = parts[-1].after if parts else start
        with torch.set_grad_enabled(bool(parts)):
            before = _through(part.rows, source)
        op, scaling, slot = ops[part.stage.op], scalings[part.stage.op], part.stage.slot
        grad, rows = grads[slot], before[slot].detach()
        pull = op.T @ grad if parts or scaling.right else None
        d = degrees[scaling.self_loops]
        own = _rowdot(grad, part.after[slot].detach()) * scaling.left
        if pull is not None and scaling.right:
            own = own + _rowdot(rows, pull) * scaling.right
        shift = shift + own * _power(d, -1.0)
        factors.append(_Factor(_scaled(grad, d, scaling.left), _scaled(rows, d, scaling.right)))
        if parts:
            assert pull is not None
            grads[slot] = pull
            grads = _pulled(before, grads, source)
    return factors, shift


def _pulled(ends: Sequence[Tensor], cotangent: Sequence[Tensor] | None, source: State) -> list[Tensor]:
    """Gradients with respect to a state, zero where an end does not depend on it."""
    live = [place for place, end in enumerate(ends) if end.requires_grad]
    if not live:
        return [torch.zeros_like(x) for x in source]
    found: tuple[Tensor | None, ...] = torch.autograd.grad(
        [ends[place] for place in live],
        source,
        None if cotangent is None else [cotangent[place] for place in live],
        allow_unused=True,
    )
    return [torch.zeros_like(x) if g is None else g for g, x in zip(found, source)]


@dataclass(frozen=True, eq=False)
class _ByFactors:
    """Gradients by inner products."""

    factors: Sequence[_Factor]
    shift: Tensor
    loss: float
    kept: float

    @cached_property
    def _sides(self) -> list[tuple[Tensor, Tensor]]:
        """Rows whose inner product is the gradient of a pair but for the shift, [n, 2h] each."""
        n = len(self.shift)
        if n * 2 * sum(each.left.shape[1] for each in self.factors) <= ONE_PIECE:
            lefts, rights = [each.left for each in self.factors], [each.right for each in self.factors]
            ones = torch.ones_like(self.shift)
            return [
                (
                    torch.cat([*lefts, *rights, torch.stack([self.shift, ones], dim=1)], dim=1),
                    torch.cat([*rights, *lefts, torch.stack([ones, self.shift], dim=1)], dim=1),
                )
            ]
        return [side for each in self.factors for side in ((each.left, each.right), (each.right, each.left))]

    @property
    def _merged(self) -> bool:
        return len(self._sides) == 1

    def of(self, pairs: Tensor) -> Tensor:
        found = torch.zeros(pairs.shape[1], dtype=self.shift.dtype)
        if not self._merged:
            found += self.shift[pairs].sum(0)
        for a, b in self._sides:
            found += _inner(a, b, pairs)
        return found

    def block(self, rows: Tensor, columns: Tensor) -> Tensor:
        found = None if self._merged else self.shift[rows].unsqueeze(1) + self.shift[columns]
        for a, b in self._sides:
            right = b[columns].T
            found = a[rows] @ right if found is None else found.addmm_(a[rows], right)
        assert found is not None
        return found


def of_propagated(adj: Adjacency, x: Tensor, times: int, judge: Callable[[Tensor], tuple[Tensor, float]]) -> Gradient:
    r"""Derivatives of any function of the propagated features :math:`\hat A^k X`, with respect to edges.

    Args:
        adj: The edges.
        x: Features, [n, d].
        times: :math:`k`, at least 1.
        judge: From the propagated features, [n, d], to what is raised and the share of kept labels.
    """
    op = normalise.gcn(adj)
    parts: list[_Part] = []
    start = state = x.detach()
    for _ in range(times):
        state = (op @ state.detach()).requires_grad_()
        parts.append(_Part(Propagate(), (), (state,)))
    with torch.enable_grad():
        loss, kept = judge(state)
    value = float(loss.detach())
    degrees = {True: _degrees(adj, True, x.dtype)}
    factors, shift = _backward(loss, (start,), parts, [op], [Scaling(-0.5, -0.5, True)], degrees)
    return _ByFactors(factors, shift, value, kept)


def _inner(a: Tensor, b: Tensor, pairs: Tensor) -> Tensor:
    """Inner products of rows of two matrices, [p]; fastest where equal first ends stand together."""
    return torch.cat([_inner_of(a, b, some) for some in pairs.split(PAIRS_AT_ONCE, dim=1)])


def _inner_of(a: Tensor, b: Tensor, pairs: Tensor) -> Tensor:
    p = pairs.shape[1]
    new = torch.ones(p, dtype=torch.bool)
    new[1:] = pairs[0, 1:] != pairs[0, :-1]
    starts = new.nonzero().flatten()
    # one row of the pattern for every run of pairs with the same first end
    pattern = Pattern(torch.cat([starts, starts.new_tensor([p])]), pairs[1].contiguous(), len(b))
    return sampled_product(pattern, a.index_select(0, pairs[0, starts]), b)


class _ByAutograd:
    """Gradients of entries of the adjacency itself; absent pairs become entries of weight zero."""

    def __init__(self, victim: Victim, adj: Adjacency) -> None:
        self.victim, self.adj = victim, adj
        self.loss, self.kept = victim.judge(adj)

    def of(self, pairs: Tensor) -> Tensor:
        if not pairs.shape[1]:
            return torch.zeros(0)
        return torch.cat([self._of(some) for some in pairs.split(4 * PAIRS_AT_ONCE, dim=1)])

    def _of(self, pairs: Tensor) -> Tensor:
        adj, n = self.adj, self.adj.n
        absent = pairs[:, ~adj.has(pairs)]
        wide = adj.edited(absent, absent[:, :0], base=n, n=n)
        dtype = next((p.dtype for p in self.victim.model.parameters()), torch.get_default_dtype())
        values = torch.ones(wide.pattern.entries, dtype=dtype) if wide.values is None else wide.values.clone()
        both = torch.cat([absent, absent.flip(0)], dim=1)
        values[torch.searchsorted(wide.keys, both[0] * n + both[1])] = 0.0
        leaf = values.requires_grad_()
        with torch.enable_grad():
            logits = self._logits(Adjacency(wide.pattern, leaf))
            loss = self.victim.loss_of(logits, self.victim.labels).mean()
        if not loss.requires_grad:
            raise self._no_gradients()
        found: tuple[Tensor | None, ...] = torch.autograd.grad(loss, leaf, allow_unused=True)
        gradient = found[0]
        if gradient is None:  # a model that sees no edges
            return torch.zeros(pairs.shape[1], dtype=dtype)
        keys = torch.stack([pairs[0] * n + pairs[1], pairs[1] * n + pairs[0]])
        return gradient[torch.searchsorted(wide.keys, keys)].sum(0)

    def _logits(self, adj: Adjacency) -> Tensor:
        try:
            op = prepare(self.victim.model, adj)
        except RuntimeError as error:  # a preparation outside torch cannot take weights that ask for gradients
            raise self._no_gradients() from error
        logits: Tensor = self.victim.model(self.victim.graph.x, op)
        return logits[self.victim.targets]

    def _no_gradients(self) -> DataError:
        return DataError(
            f"a {type(self.victim.model).__name__} gives no gradients for edges; "
            "attack a surrogate that does, for instance gcn, and score this model as victim"
        )

    def block(self, rows: Tensor, columns: Tensor) -> Tensor:
        pairs = torch.stack([rows.repeat_interleave(len(columns)), columns.repeat(len(rows))])
        # the diagonal is no pair, and a pair that stands there twice is asked for once
        low, high = pairs.min(0).values, pairs.max(0).values
        keys, back = torch.unique(low * self.adj.n + high, return_inverse=True)
        distinct = torch.stack([keys // self.adj.n, keys % self.adj.n])
        real = distinct[0] != distinct[1]
        gradients = self.of(distinct[:, real])
        found = gradients.new_zeros(len(keys))
        found[real] = gradients
        return found[back].view(len(rows), len(columns))


def _listed(op: Any) -> Sequence[Any]:
    return op if isinstance(op, Sequence) else [op]


def _propagate(stage: Stage) -> Propagate:
    assert isinstance(stage, Propagate), "a closed form is for rows and propagations alone"
    return stage


def _through(stages: Sequence[Rows], state: State) -> State:
    for stage in stages:
        state = stage.apply(state)
    return state


def _moved(stage: Propagate, ops: Sequence[CSR], state: State) -> State:
    moved = ops[stage.op] @ state[stage.slot]
    return (*state[: stage.slot], moved, *state[stage.slot + 1 :])


def _degrees(adj: Adjacency, self_loops: bool, dtype: torch.dtype) -> Tensor:
    values = None if adj.values is None else adj.values.detach()
    return row_sums(adj.pattern, values).to(dtype) + float(self_loops)


def _power(degrees: Tensor, exponent: float) -> Tensor:
    """As the normalisations do it: a power of zero counts as zero."""
    positive = degrees > 0
    return torch.where(positive, torch.where(positive, degrees, 1.0) ** exponent, 0.0)


def _scaled(rows: Tensor, degrees: Tensor, exponent: float) -> Tensor:
    return rows if exponent == 0 else rows * _power(degrees, exponent).unsqueeze(1)


def _rowdot(a: Tensor, b: Tensor) -> Tensor:
    return torch.einsum("ij,ij->i", a, b)
