"""Attention along edges on the sparse kernel: no message tensor, gradients by sampled products."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from grb.graph.sparse import CSR, Pattern, gather_sum


def gather_rows(pattern: Pattern, a: Tensor) -> Tensor:
    """``a[row(e)]`` for every entry, [entries, h] from [rows, h]."""
    gathered: Tensor = _Gather.apply(pattern, a, True)  # type: ignore[no-untyped-call]
    return gathered


def gather_columns(pattern: Pattern, b: Tensor) -> Tensor:
    """``b[column(e)]`` for every entry, [entries, h] from [columns, h]."""
    gathered: Tensor = _Gather.apply(pattern, b, False)  # type: ignore[no-untyped-call]
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
    heads, width = alpha.shape[1], x.shape[2]
    if heads == 1:
        return (CSR(pattern, alpha.flatten()) @ x[:, 0]).unsqueeze(1)
    wide, place, origin = pattern.headed(heads)
    values: Tensor = _Moved.apply(alpha.flatten(), origin, place)  # type: ignore[no-untyped-call]
    return (CSR(wide, values) @ x.reshape(-1, width)).view(-1, heads, width)


class _Gather(torch.autograd.Function):
    """Rows of a tensor for every entry of a pattern, by the entry's row or by its column."""

    @staticmethod
    def forward(ctx: Any, pattern: Pattern, x: Tensor, by_row: bool) -> Tensor:
        ctx.pattern, ctx.by_row = pattern, by_row
        return x.index_select(0, pattern.row_ids if by_row else pattern.indices)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, None]:
        entries = ctx.pattern.row_entries if ctx.by_row else ctx.pattern.column_entries
        return None, CSR(entries) @ grad, None


class _Moved(torch.autograd.Function):
    """A tensor in another order: ``x[origin]``, with ``place`` as the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, origin: Tensor, place: Tensor) -> Tensor:
        ctx.origin, ctx.place = origin, place
        return x.index_select(0, origin)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _Moved.apply(grad, ctx.place, ctx.origin), None, None  # type: ignore[no-untyped-call]


class _EdgeSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, scores: Tensor) -> Tensor:
        ctx.pattern = pattern
        highest = _row_maximum(pattern, scores)
        alpha = (scores - highest.index_select(0, pattern.row_ids)).exp_()
        total = gather_sum(pattern.row_entries, None, alpha)
        alpha /= total.index_select(0, pattern.row_ids)
        ctx.save_for_backward(alpha)
        return alpha

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        (alpha,) = ctx.saved_tensors
        weighted = alpha * grad
        total = CSR(ctx.pattern.row_entries) @ weighted
        return None, weighted - alpha * gather_rows(ctx.pattern, total)


def _row_maximum(pattern: Pattern, scores: Tensor) -> Tensor:
    """Largest score of every row; what an empty row gets is never read."""
    if pattern.entries == 0:
        return scores.new_zeros(pattern.shape[0], scores.shape[1])
    return torch.segment_reduce(scores, "max", offsets=pattern.indptr.long(), axis=0, unsafe=True)
