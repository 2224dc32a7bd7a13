r"""The one sparse kernel: :math:`y_i = \sum_{e \in \mathrm{row}(i)} w_e\, x_{\mathrm{col}(e)}` and its adjoints.

Everything in grb that moves values along edges goes through two functions that are each other's
derivative, so that gradients of any order exist for features and for edge values alike:

* the product ``y = S(w) x``, computed by :func:`torch.nn.functional.embedding_bag` straight from the CSR arrays
  (no message tensor, parallel over rows, the same bits every time for one number of threads);
* the sampled product ``g_e = <a_row(e), b_col(e)>``, one inner product for every stored entry.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from grb.errors import DataError


@runtime_checkable
class Op(Protocol):
    """A linear map over nodes: ``op @ x`` with ``x`` [columns, d], its transpose, and blocks of its rows."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    def T(self) -> Op:  # noqa: N802
        """The transpose."""

    def __matmul__(self, x: Tensor) -> Tensor: ...
    def rows(self, ids: Tensor) -> Op:
        """The block of some rows."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """Where the entries of a sparse matrix are: CSR arrays without values.

    Args:
        indptr: Start of every row in ``indices``, [rows + 1].
        indices: Column of every entry, [entries].
        columns: Number of columns.
        symmetric: The pattern equals its transpose and the columns of every row are ascending.
    """

    indptr: Tensor
    indices: Tensor
    columns: int
    symmetric: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.indptr.shape[0] - 1, self.columns  # not len(): torch's is a Python function, and this a hot path

    @property
    def entries(self) -> int:
        """Number of stored entries."""
        return self.indices.shape[0]

    @property
    def device(self) -> torch.device:
        """Device of the indices."""
        return self.indptr.device

    def separate(self, *, copy: bool = False) -> Pattern:
        """A value of its own, without what is kept about this one; with ``copy`` it shares no array either."""
        indptr, indices = (part.clone() if copy else part for part in (self.indptr, self.indices))
        return Pattern(indptr, indices, self.columns, self.symmetric)

    @cached_property
    def counts(self) -> Tensor:
        """Entries in every row, [rows]."""
        return self.indptr.diff()

    @cached_property
    def row_ids(self) -> Tensor:
        """Row of every entry, [entries]."""
        rows = torch.arange(self.shape[0], dtype=self.indices.dtype, device=self.device)
        return torch.repeat_interleave(rows, self.counts, output_size=self.entries)

    @property
    def transposed(self) -> tuple[Pattern, Tensor]:
        """The transposed pattern and, for each of its entries, the position of that entry here."""
        # a value that held itself would stay in memory until the garbage of all values is looked for
        return (self, self._order) if self.symmetric else self._flipped

    @cached_property
    def _order(self) -> Tensor:
        return _by_columns(self)[2]

    @cached_property
    def _flipped(self) -> tuple[Pattern, Tensor]:
        indptr, indices, order = _by_columns(self)
        flipped = Pattern(indptr, indices, self.shape[0])
        # the way back: where each entry of this pattern stands in the transposed one
        back = torch.empty_like(order)
        back.scatter_(0, order, torch.arange(len(order), dtype=order.dtype, device=order.device))
        object.__setattr__(flipped, "_flipped", (Pattern(self.indptr, self.indices, self.columns), back))
        return flipped, order

    @cached_property
    def row_entries(self) -> Pattern:
        """Which entries each row has: [rows, entries]."""
        return Pattern(
            self.indptr, torch.arange(self.entries, dtype=self.indices.dtype, device=self.device), self.entries
        )

    @cached_property
    def column_entries(self) -> Pattern:
        """Which entries each column has: [columns, entries]."""
        flipped, order = self.transposed
        return Pattern(flipped.indptr, order.to(self.indices.dtype), self.entries)

    @cached_property
    def _headed(self) -> dict[int, tuple[Pattern, Tensor, Tensor]]:
        return {}

    def headed(self, heads: int) -> tuple[Pattern, Tensor, Tensor]:
        """The pattern of several heads in one product, and where entries of [entries, heads] stand in it and the way back.

        Row ``i * heads + h`` has an entry at ``j * heads + h`` for every entry (i, j): one product with [columns * heads, d]
        is that of every head with its own slice of [columns, heads, d], without copies of slices.
        """
        if heads not in self._headed:
            self._headed[heads] = _headed(self, heads)
        return self._headed[heads]

    def rows(self, ids: Tensor) -> tuple[Pattern, Tensor]:
        """Some rows as a pattern of their own, and the position here of each of its entries."""
        ids = ids.to(self.device)
        counts = self.counts.index_select(0, ids)
        indptr = counts.new_zeros(len(ids) + 1)
        torch.cumsum(counts, 0, dtype=counts.dtype, out=indptr[1:])
        total = int(indptr[-1])
        shift = self.indptr.index_select(0, ids) - indptr[:-1]
        positions = torch.repeat_interleave(shift, counts, output_size=total)
        positions += torch.arange(total, dtype=positions.dtype, device=self.device)
        return Pattern(indptr, self.indices.index_select(0, positions), self.columns), positions

    def to(self, device: torch.device | str) -> Pattern:
        """The same pattern on another device."""
        if torch.device(device) == self.device:
            return self
        return Pattern(self.indptr.to(device), self.indices.to(device), self.columns, self.symmetric)


def _headed(pattern: Pattern, heads: int) -> tuple[Pattern, Tensor, Tensor]:
    kind = pattern.indices.dtype if pattern.entries * heads < 2**31 else torch.int64
    head = torch.arange(heads, dtype=kind, device=pattern.device)
    counts, starts = pattern.counts.to(kind), pattern.indptr.to(kind)
    indptr = torch.cat([(starts[:-1, None] * heads + counts[:, None] * head).flatten(), starts[-1:] * heads])
    entries = torch.arange(pattern.entries, dtype=kind, device=pattern.device)
    first, within = starts[pattern.row_ids], counts[pattern.row_ids]
    # entry e of head h: behind all entries of rows before and the same row's of the heads before
    place = (first * heads + entries - first)[:, None] + within[:, None] * head
    place = place.flatten()
    origin = torch.empty_like(place)
    origin[place.long()] = torch.arange(len(place), dtype=kind, device=pattern.device)
    indices = (pattern.indices.to(kind)[:, None] * heads + head).flatten().index_select(0, origin)
    return Pattern(indptr, indices, pattern.columns * heads, pattern.symmetric), place, origin


def _by_columns(pattern: Pattern) -> tuple[Tensor, Tensor, Tensor]:
    """CSR arrays of the transpose, and for each of its entries the position of that entry in the pattern."""
    if pattern.device.type == "cpu":
        from scipy.sparse import csr_array

        entries = np.arange(pattern.entries, dtype=np.int64)
        matrix = csr_array((entries, pattern.indices.numpy(), pattern.indptr.numpy()), shape=pattern.shape).tocsc()
        starts, rows = (torch.from_numpy(part).to(pattern.indices.dtype) for part in (matrix.indptr, matrix.indices))
        return starts, rows, torch.from_numpy(matrix.data)
    order = torch.argsort(pattern.indices, stable=True)
    counts = torch.bincount(pattern.indices.long(), minlength=pattern.columns)
    starts = functional.pad(counts.cumsum(0), (1, 0)).to(pattern.indptr.dtype)
    return starts, pattern.row_ids[order], order


@dataclass
class _Kept:
    """A constant, and an operator's product with it once that is known."""

    x: Tensor
    product: Tensor | None = None
    versions: tuple[int, int] = (-1, -1)


@dataclass(frozen=True, eq=False)
class CSR:
    """A sparse matrix as a linear operator, differentiable in what it multiplies and in its values.

    Args:
        pattern: Where the entries are.
        values: Value of every entry, [entries]; None means that all are one.
        symmetric: The matrix equals its transpose, so that one object serves both directions.

    >>> pattern = Pattern(torch.tensor([0, 1, 3]), torch.tensor([1, 0, 1]), columns=2)
    >>> CSR(pattern, torch.tensor([2.0, 3.0, 4.0])).dense()
    tensor([[0., 2.],
            [3., 4.]])
    """

    pattern: Pattern
    values: Tensor | None = None
    symmetric: bool = False
    _kept: _Kept | None = field(default=None, repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.pattern.shape

    @property
    def device(self) -> torch.device:
        """Device of the pattern."""
        return self.pattern.device

    @property
    def T(self) -> CSR:  # noqa: N802
        """The transpose, which is the matrix itself if it is symmetric."""
        return self if self.symmetric else self._flipped

    @cached_property
    def _flipped(self) -> CSR:
        flipped, order = self.pattern.transposed
        return CSR(flipped, None if self.values is None else self.values.index_select(0, order))

    def __matmul__(self, x: Tensor) -> Tensor:
        if x.shape[0] != self.pattern.columns:
            raise DataError(f"a {list(self.shape)} matrix cannot multiply {list(x.shape)}: sizes differ")
        if x.dim() == 1:
            return (self @ x.unsqueeze(1)).squeeze(1)
        if not torch.is_grad_enabled():
            return gather_sum(self.pattern, self.values, x)
        product: Tensor = _Product.apply(self, self.values, x)  # type: ignore[no-untyped-call]
        return product

    def separate(self, *, copy: bool = False) -> CSR:
        """A value of its own, without what is kept about this one; with ``copy`` it shares no array either."""
        values = self.values.detach().clone() if copy and self.values is not None else self.values
        return CSR(self.pattern.separate(copy=copy), values, self.symmetric)

    def rows(self, ids: Tensor) -> CSR:
        """The rows ``ids`` as a [len(ids), columns] operator."""
        block, positions = self.pattern.rows(ids)
        return CSR(block, None if self.values is None else self.values.index_select(0, positions))

    def dense(self) -> Tensor:
        """All entries as a dense matrix, differentiable in the values, [rows, columns]: for features, never for a graph."""
        n, d = self.shape
        positions = self.pattern.row_ids.long() * d + self.pattern.indices
        values = torch.ones(len(positions), device=self.device) if self.values is None else self.values
        return values.new_zeros(n * d).index_add(0, positions, values).view(n, d)

    def remembering(self, x: Tensor) -> CSR:
        """The same operator, which computes its product with the constant ``x`` once and keeps it.

        Features do not change while a model trains, so the first layer's product is the same in every epoch.
        """
        return CSR(self.pattern, self.values, self.symmetric, _Kept(x))

    def known_product(self, x: Tensor) -> Tensor | None:
        """``self @ x`` if this operator remembers ``x`` and nothing has changed since, else None."""
        kept = self._kept
        if kept is None or kept.x is not x or x.requires_grad:
            return None
        if self.values is not None and self.values.requires_grad:
            return None
        versions = (x._version, 0 if self.values is None else self.values._version)
        if kept.product is None or kept.versions != versions:
            with torch.no_grad():
                kept.product, kept.versions = self @ x, versions
        return kept.product

    def to(self, device: torch.device | str) -> CSR:
        """The same matrix on another device."""
        if torch.device(device) == self.device:
            return self
        values = None if self.values is None else self.values.to(device)
        return CSR(self.pattern.to(device), values, self.symmetric)


def dense(x: Tensor | CSR) -> Tensor:
    """Features as a dense tensor, whatever they are kept as."""
    return x.dense() if isinstance(x, CSR) else x


def sampled_product(pattern: Pattern, a: Tensor, b: Tensor) -> Tensor:
    r"""Inner product :math:`\langle a_i, b_j \rangle` for every entry (i, j) of a pattern.

    Args:
        pattern: Where to compute, [rows, columns].
        a: [rows, d].
        b: [columns, d].

    Returns:
        [entries], differentiable in ``a`` and ``b``.
    """
    sampled: Tensor = _Sampled.apply(pattern, a, b)  # type: ignore[no-untyped-call]
    return sampled


def row_sums(pattern: Pattern, values: Tensor | None) -> Tensor:
    """Sum of the values of every row, [rows] from [entries] or [rows, h] from [entries, h]; differentiable in the values."""
    if values is None:
        return pattern.counts.to(torch.get_default_dtype())
    sums: Tensor = _RowSums.apply(pattern, values)  # type: ignore[no-untyped-call]
    return sums


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, op: CSR, values: Tensor | None, x: Tensor) -> Tensor:
        ctx.op = op
        ctx.save_for_backward(values, x if values is not None and values.requires_grad else None)
        return gather_sum(op.pattern, values, x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        values, x = ctx.saved_tensors
        grad = grad.contiguous()
        grad_x = _transposed(ctx.op, values) @ grad if ctx.needs_input_grad[2] else None
        grad_values = sampled_product(ctx.op.pattern, grad, x) if ctx.needs_input_grad[1] else None
        return None, grad_values, grad_x


def _transposed(op: CSR, values: Tensor | None) -> CSR:
    """The transpose, kept with the operator unless its values are being differentiated."""
    if values is None or not values.requires_grad:
        return op.T
    return CSR(op.pattern, values, op.symmetric).T


class _Sampled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, a: Tensor, b: Tensor) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(a, b)
        return _inner_products(pattern, a, b)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor | None, Tensor | None]:
        a, b = ctx.saved_tensors
        weighted = CSR(ctx.pattern, grad.contiguous())
        grad_a = weighted @ b if ctx.needs_input_grad[1] else None
        grad_b = weighted.T @ a if ctx.needs_input_grad[2] else None
        return None, grad_a, grad_b


class _RowSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: Pattern, values: Tensor) -> Tensor:
        ctx.pattern = pattern
        if values.dim() > 1:
            return gather_sum(pattern.row_entries, None, values)
        ones = torch.ones(pattern.columns, 1, dtype=values.dtype, device=values.device)
        return gather_sum(pattern, values, ones).squeeze(1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        pattern = ctx.pattern
        return None, torch.repeat_interleave(grad, pattern.counts, dim=0, output_size=pattern.entries)


def gather_sum(pattern: Pattern, values: Tensor | None, x: Tensor) -> Tensor:
    """Weighted sums of the rows of ``x`` that every row of a pattern names, [rows, d]."""
    rows = pattern.shape[0]
    if rows == 0 or pattern.entries == 0 or x.shape[1] == 0:
        return x.new_zeros(rows, x.shape[1])
    if x.stride(1) != 1:
        x = x.contiguous()
    weights = None if values is None else values.detach().to(x.dtype)
    # torch's own function, because the checks of functional.embedding_bag take as long as a small product
    table = x.detach()
    sums: Tensor = torch.embedding_bag(table, pattern.indices, pattern.indptr, False, 0, False, weights, True)[0]
    return sums


def _inner_products(pattern: Pattern, a: Tensor, b: Tensor) -> Tensor:
    if pattern.entries == 0 or a.shape[1] == 0:
        return a.new_zeros(pattern.entries)
    _silence_beta_warning()
    zeros = a.new_zeros(pattern.entries)
    where = torch.sparse_csr_tensor(pattern.indptr, pattern.indices, zeros, pattern.shape, check_invariants=False)
    return torch.sparse.sampled_addmm(where, a.contiguous(), b.contiguous().T, beta=0.0).values()


@lru_cache(maxsize=1)
def _silence_beta_warning() -> None:
    """torch says once per process that CSR tensors are in beta; our use is covered by tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), (1, 1), check_invariants=True)
