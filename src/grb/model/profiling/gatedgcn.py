"""The gated convolution for profiling."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from grb.graph import CSR, Adjacency, Pattern
from grb.graph.sparse import gather_sum
from grb.model.profiling.network import Conv, Dense

# entries whose gates are held at a time: 64 MB at width 128
CHUNK = 2**17


class GatedConv(Conv):
    r"""A gate on every feature of every edge: :math:`h_i W_s + \sum_j \sigma(k_i + q_j) \odot v_j + b`.

    Keys, queries and values are linear maps with bias. Gates depend on both ends, so that edges are walked one by one, also in
    a complete graph.

    References:
        Bresson and Laurent, *Residual Gated Graph ConvNets*, 2017.
    """

    def __init__(self, width: int, bias: bool, **options: Any) -> None:
        super().__init__(width, bias, **options)
        self.key, self.query, self.value = (Dense(width, width) for _ in range(3))
        self.skip = Dense(width, width, bias=False)
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    @staticmethod
    def prepare(adj: Adjacency) -> CSR:
        """The adjacency without weights."""
        return CSR(adj.pattern, symmetric=True)

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights from ``generator``, or from torch's global one."""
        for linear in (self.key, self.query, self.value, self.skip):
            linear.reset_parameters(generator)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, h: Tensor, op: CSR, first: Tensor) -> Tensor:
        """New rows, [n, out]."""
        gated: Tensor = _Gated.apply(op.pattern, self.key(h), self.query(h), self.value(h))  # type: ignore[no-untyped-call]
        out: Tensor = self.skip(h) + gated
        return out if self.bias is None else out + self.bias


class _Gated(torch.autograd.Function):
    r""":math:`y_i = \sum_j \sigma(k_i + q_j) \odot v_j` over the entries of a symmetric pattern, some rows at a time."""

    @staticmethod
    def forward(ctx: Any, pattern: Pattern, key: Tensor, query: Tensor, value: Tensor) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(key, query, value)
        out = torch.zeros_like(value)
        for rows, source, target, sums in _blocks(pattern):
            gates = torch.sigmoid_(key[target].add_(query[source]))
            out[rows] = gather_sum(sums, None, gates.mul_(value[source]))
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, Tensor, Tensor]:
        key, query, value = ctx.saved_tensors
        grads = torch.zeros_like(key), torch.zeros_like(query), torch.zeros_like(value)
        # the pattern is symmetric: for every entry (i, j) there is (j, i), so sums over rows serve both ends
        for rows, other, own, sums in _blocks(ctx.pattern):
            gates = torch.sigmoid_(key[own] + query[other])
            slope = gates * (1 - gates)
            grads[0][rows] = gather_sum(sums, None, slope.mul_(grad[own]).mul_(value[other]))
            gates = torch.sigmoid_(key[other] + query[own])
            passed = grad[other]
            grads[2][rows] = gather_sum(sums, None, gates * passed)
            slope = gates.mul_(1 - gates)
            grads[1][rows] = gather_sum(sums, None, slope.mul_(passed).mul_(value[own]))
        return None, *grads


def _blocks(pattern: Pattern) -> Any:
    """Rows whose entries fit a chunk: the slice of rows, columns and rows of their entries, and the sums over each row."""
    starts = pattern.indptr.long()
    columns, owners = pattern.indices.long(), pattern.row_ids.long()
    n, row = pattern.shape[0], 0
    while row < n:
        stop = int(torch.searchsorted(starts, starts[row] + CHUNK, right=True)) - 1
        stop = min(max(stop, row + 1), n)
        a, b = int(starts[row]), int(starts[stop])
        indptr = pattern.indptr[row : stop + 1] - pattern.indptr[row]
        sums = Pattern(indptr, torch.arange(b - a, dtype=indptr.dtype), b - a)
        yield slice(row, stop), columns[a:b], owners[a:b], sums
        row = stop
