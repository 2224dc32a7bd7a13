r"""The closed form of gradients with respect to edges: one inner product per pair.

For a model that propagates by :math:`y_l = P z_l` with :math:`P_{uv} = d_u^a\, \tilde A_{uv}\, d_v^b`, let
:math:`g_l = \partial L / \partial y_l` and :math:`G_{uv} = \sum_l \langle g_{l,u}, z_{l,v} \rangle`. An undirected pair
changes two entries and the degrees of both ends:

.. math:: \frac{\partial L}{\partial a_{uv}} = d_u^a d_v^b G_{uv} + d_v^a d_u^b G_{vu} + c_u + c_v, \qquad
          c_u = \frac1{d_u} \sum_w \left( a\, P_{uw} G_{uw} + b\, P_{wu} G_{wu} \right) .
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grb.graph import CSR, Adjacency, Pattern, adjacency_from_edges, normalise, sampled_product
from grb.graph.sparse import row_sums
from grb.model.base import Propagate, Rows, State

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
# factors are kept in one piece up to this number of entries, because one large product is faster than several small ones
ONE_PIECE = 2**25


@dataclass(frozen=True)
class Scaling:
    """How a model's operator comes from the edges: powers of the degrees left and right of it, with or without loops."""

    left: float
    right: float
    self_loops: bool

    @classmethod
    def all(cls) -> tuple[Scaling, ...]:
        """The known ones, the most usual first."""
        return tuple(cls(*known) for known in SCALINGS)

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


def probe_graph(dtype: torch.dtype) -> Adjacency:
    """A graph of five nodes whose degrees all differ, with weights: no two scalings agree on it."""
    adj, _ = adjacency_from_edges(np.array([[0, 0, 0, 0, 1, 1, 2], [1, 2, 3, 4, 2, 3, 3]]), 5)
    low, high = adj.pattern.row_ids, adj.pattern.indices
    return Adjacency(adj.pattern, 1.0 / (1 + torch.minimum(low, high) + 3 * torch.maximum(low, high)).to(dtype))


@dataclass(frozen=True, eq=False)
class Part:
    """One propagation: what happens to the rows before it, and the state after it, cut off from its history."""

    stage: Propagate
    rows: Sequence[Rows]
    after: State


@dataclass(frozen=True, eq=False)
class _Factor:
    r"""One propagation's share of a gradient: :math:`\langle l_u, r_v \rangle + \langle l_v, r_u \rangle`."""

    left: Tensor  # [n, h]
    right: Tensor  # [n, h]


def backward(
    loss: Tensor,
    start: State,
    parts: list[Part],
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
            before = through(part.rows, source)
        op, scaling, slot = ops[part.stage.op], scalings[part.stage.op], part.stage.slot
        grad, rows = grads[slot], before[slot].detach()
        pull = op.T @ grad if parts or scaling.right else None
        after = part.after[slot].detach()
        factor, own = factor_of(rows, after, grad, op, scaling, degrees[scaling.self_loops], pull)
        factors.append(factor)
        shift = shift + own
        if parts:
            assert pull is not None
            grads[slot] = pull
            grads = _pulled(before, grads, source)
    return factors, shift


def factor_of(
    rows: Tensor, after: Tensor, grad: Tensor, op: CSR, scaling: Scaling, degrees: Tensor, pull: Tensor | None = None
) -> tuple[_Factor, Tensor]:
    """One propagation's share of the gradient of pairs, and of their shift, [n].

    Args:
        rows: What was propagated, [n, h].
        after: The result, [n, h].
        grad: Gradient of the loss with respect to the result, [n, h].
        op: The operator.
        scaling: How it comes from the edges.
        degrees: With or without self-loops as the scaling says, [n].
        pull: The gradient pulled back through the operator, if that is known already.
    """
    own = _rowdot(grad, after) * scaling.left
    if scaling.right:
        own = own + _rowdot(rows, op.T @ grad if pull is None else pull) * scaling.right
    factor = _Factor(_scaled(grad, degrees, scaling.left), _scaled(rows, degrees, scaling.right))
    return factor, own * power(degrees, -1.0)


def _pulled(ends: Sequence[Tensor], cotangent: Sequence[Tensor] | None, source: State) -> list[Tensor]:
    """Gradients with respect to a state, zero where an end does not depend on it."""
    live = [position for position, end in enumerate(ends) if end.requires_grad]
    if not live:
        return [torch.zeros_like(x) for x in source]
    found: tuple[Tensor | None, ...] = torch.autograd.grad(
        [ends[position] for position in live],
        source,
        None if cotangent is None else [cotangent[position] for position in live],
        allow_unused=True,
    )
    return [torch.zeros_like(x) if g is None else g for g, x in zip(found, source)]


@dataclass(frozen=True, eq=False)
class ByFactors:
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
        """Gradients of some pairs, [p] from [2, p]."""
        found = torch.zeros(pairs.shape[1], dtype=self.shift.dtype)
        if not self._merged:
            found += self.shift[pairs].sum(0)
        for a, b in self._sides:
            found += _inner(a, b, pairs)
        return found

    def block(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Gradients of the pairs of some nodes with others, [r, c]."""
        found = None if self._merged else self.shift[rows].unsqueeze(1) + self.shift[columns]
        for a, b in self._sides:
            right = b[columns].T
            found = a[rows] @ right if found is None else found.addmm_(a[rows], right)
        assert found is not None
        return found


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


def through(stages: Sequence[Rows], state: State) -> State:
    """The state after some row-wise stages."""
    for stage in stages:
        state = stage.apply(state)
    return state


def degrees_of(adj: Adjacency, self_loops: bool, dtype: torch.dtype) -> Tensor:
    """Weighted degree of every node, [n], plus one with self-loops."""
    values = None if adj.values is None else adj.values.detach()
    return row_sums(adj.pattern, values).to(dtype) + float(self_loops)


def power(degrees: Tensor, exponent: float) -> Tensor:
    """As the normalisations do it: a power of zero counts as zero."""
    positive = degrees > 0
    return torch.where(positive, torch.where(positive, degrees, 1.0) ** exponent, 0.0)


def _scaled(rows: Tensor, degrees: Tensor, exponent: float) -> Tensor:
    return rows if exponent == 0 else rows * power(degrees, exponent).unsqueeze(1)


def _rowdot(a: Tensor, b: Tensor) -> Tensor:
    return torch.einsum("ij,ij->i", a, b)
