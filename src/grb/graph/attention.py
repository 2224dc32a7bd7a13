"""Attention along edges on the sparse kernel: no message tensor, gradients by sampled products."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from grb.graph.sparse import CSR, Pattern, gather_sum


def gather_rows(pattern: Pattern, a: Tensor) -> Tensor:
    """``a[row(e)]`` for every entry, [entries, h] from [rows, h]."""
    gathered: Tensor = _GatherRows.apply(pattern, a)  # type: ignore[no-untyped-call]
    return gathered


def gather_columns(pattern: Pattern, b: Tensor) -> Tensor:
    """``b[column(e)]`` for every entry, [entries, h] from [columns, h]."""
    gathered: Tensor = _GatherColumns.apply(pattern, b)  # type: ignore[no-untyped-call]
    return gathered


def edge_softmax(pattern: Pattern, scores: Tensor) -> Tensor:
    r"""Softmax over the entries of every row, for each head.

    .. math:: \alpha_{eh} = \exp(s_{eh} - m_{ih}) \Big/ \sum_{f \in \mathrm{row}(i)} \exp(s_{fh} - m_{ih}), \qquad
              m_{ih} = \max_{f \in \mathrm{row}(i)} s_{fh}

    Args:
        pattern: Where the entries are.
        scores: [entries, heads].

    Returns:
        [entries, heads]; differentiable.
    """
    alpha: Tensor = _EdgeSoftmax.apply(pattern, scores)  # type: ignore[no-untyped-call]
    return alpha


def attend(pattern: Pattern, alpha: Tensor, x: Tensor) -> Tensor:
    r"""Weighted sums :math:`y_{ih} = \sum_{e \in \mathrm{row}(i)} \alpha_{eh}\, x_{\mathrm{col}(e), h}` per head.

    Args:
        pattern: Where the entries are, [rows, columns].
        alpha: [entries, heads].
        x: [columns, heads, width].

    Returns:
        [rows, heads, width]; differentiable in both.
    """
    heads = [CSR(pattern, alpha[:, head].contiguous()) @ x[:, head] for head in range(alpha.shape[1])]
    return torch.stack(heads, dim=1)


def _row_entries(pattern: Pattern) -> Pattern:
    """Rows as sums over their own entries: a pattern whose columns are the entries."""
    entries = torch.arange(pattern.entries, dtype=pattern.indices.dtype, device=pattern.device)
    return Pattern(pattern.indptr, entries, pattern.entries)


def _column_entries(pattern: Pattern) -> Pattern:
    """Columns as sums over the entries that point to them."""
    flipped, order = pattern.transposed
    return Pattern(flipped.indptr, order.to(pattern.indices.dtype), pattern.entries)


class _GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, a: Tensor) -> Tensor:
        ctx.pattern = pattern
        return torch.repeat_interleave(a, pattern.counts, dim=0, output_size=pattern.entries)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, CSR(_row_entries(ctx.pattern)) @ grad


class _GatherColumns(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, b: Tensor) -> Tensor:
        ctx.pattern = pattern
        return b.index_select(0, pattern.indices)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, CSR(_column_entries(ctx.pattern)) @ grad


class _EdgeSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, scores: Tensor) -> Tensor:
        ctx.pattern = pattern
        by_row = _row_entries(pattern)
        highest = _row_maximum(by_row, scores)
        alpha = (scores - highest.index_select(0, pattern.row_ids)).exp_()
        total = gather_sum(by_row, None, alpha)
        alpha /= total.index_select(0, pattern.row_ids)
        ctx.save_for_backward(alpha)
        return alpha

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        (alpha,) = ctx.saved_tensors
        weighted = alpha * grad
        total = CSR(_row_entries(ctx.pattern)) @ weighted
        return None, weighted - alpha * gather_rows(ctx.pattern, total)


def _row_maximum(by_row: Pattern, scores: Tensor) -> Tensor:
    if by_row.entries == 0 or by_row.shape[0] == 0:
        return scores.new_zeros(by_row.shape[0], scores.shape[1])
    return functional.embedding_bag(by_row.indices, scores, by_row.indptr, mode="max", include_last_offset=True)
