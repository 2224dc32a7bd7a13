"""Operators that are not stored as sparse rows: dense, low rank, and complete graphs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

from grb.errors import DataError
from grb.graph.sparse import CSR, Pattern


@dataclass(frozen=True, eq=False)
class Dense:
    """A matrix with all its entries, for defenses of small graphs that give every pair a weight.

    Args:
        matrix: [n, m].
    """

    matrix: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.matrix.shape[0], self.matrix.shape[1]

    @property
    def T(self) -> Dense:  # noqa: N802
        """The transpose."""
        return Dense(self.matrix.T)

    def __matmul__(self, x: Tensor) -> Tensor:
        return self.matrix @ x

    def rows(self, ids: Tensor) -> Dense:
        """The block of some rows."""
        return Dense(self.matrix[ids])


@dataclass(frozen=True, eq=False)
class LowRank:
    r"""The matrix :math:`L R^T + \mathrm{diag}(c)` kept as its factors: a product costs :math:`O((n + m)\, k\, d)`.

    Args:
        left: [n, k].
        right: [m, k].
        diagonal: :math:`c`, [n]; None for none, and only where n = m.

    >>> LowRank(torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0], [4.0]])) @ torch.eye(2)
    tensor([[3., 4.],
            [6., 8.]])
    """

    left: Tensor
    right: Tensor
    diagonal: Tensor | None = None

    def __post_init__(self) -> None:
        if self.left.dim() != 2 or self.right.dim() != 2 or self.left.shape[1] != self.right.shape[1]:
            raise DataError(
                f"factors have shapes {list(self.left.shape)} and {list(self.right.shape)}, not [n, k] and [m, k]"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.left), len(self.right)

    @property
    def T(self) -> LowRank:  # noqa: N802
        """The transpose."""
        return LowRank(self.right, self.left, self.diagonal)

    def __matmul__(self, x: Tensor) -> Tensor:
        product = self.left @ (self.right.T @ x)
        if self.diagonal is None:
            return product
        return product + (self.diagonal if x.dim() == 1 else self.diagonal.unsqueeze(1)) * x

    def rows(self, ids: Tensor) -> LowRank:
        """The block of some rows."""
        if self.diagonal is not None:
            raise DataError("a low-rank matrix with a diagonal has no block of rows of the same kind")
        return LowRank(self.left[ids], self.right)


@dataclass(frozen=True, eq=False)
class FeaturedEdges:
    """Edges with what they carry, for convolutions that look at every edge.

    Args:
        pattern: Both directions of every edge, [n, n].
        features: Features of every entry, [entries, f]; None where edges have none.
    """

    pattern: Pattern
    features: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Complete:
    r"""Every node joined with every other node of its graph, by sums per graph: :math:`O(n d)` instead of :math:`O(n^2 d)`.

    .. math:: y_i = s_{g(i)} \sum_{j \in g(i)} x_j + o_{g(i)}\, x_i

    ``scale`` 1 and ``own`` -1 is the adjacency of the complete graph; ``scale`` 1/size and ``own`` 0 its
    GCN normalisation, whose entries are all equal.

    Args:
        ptr: First node of every graph of the collection and, last, n: [graphs + 1].
        scale: Factor of every graph's sum, [graphs].
        own: Factor of a node's own row; one number, or one per graph, [graphs].
    """

    ptr: Tensor
    scale: Tensor
    own: float | Tensor = 0.0

    @classmethod
    def adjacency(cls, ptr: Tensor) -> Complete:
        """The adjacency of complete graphs without self-loops."""
        return cls(ptr, torch.ones(len(ptr) - 1), own=-1.0)

    @classmethod
    def gcn(cls, ptr: Tensor) -> Complete:
        """Normalised with self-loops, as GCN does it."""
        return cls(ptr, 1 / ptr.diff().clamp(min=1).to(torch.get_default_dtype()))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        n = int(self.ptr[-1])
        return n, n

    @property
    def T(self) -> Complete:  # noqa: N802
        """The transpose, which is the operator itself."""
        return self

    @cached_property
    def _members(self) -> CSR:
        """Sums over the nodes of every graph, [graphs, n]."""
        n = int(self.ptr[-1])
        return CSR(Pattern(self.ptr.long(), torch.arange(n, device=self.ptr.device), n))

    @cached_property
    def _owns(self) -> Tensor:
        """The factor of every node's own row, [n, 1]."""
        factors = torch.as_tensor(self.own, dtype=self.scale.dtype, device=self.ptr.device).expand(len(self.scale))
        return torch.repeat_interleave(factors, self.ptr.diff()).unsqueeze(1)

    def __matmul__(self, x: Tensor) -> Tensor:
        if len(x) != self.shape[1]:
            raise DataError(f"a {list(self.shape)} matrix cannot multiply {list(x.shape)}: sizes differ")
        if x.dim() == 1:
            return (self @ x.unsqueeze(1)).squeeze(1)
        sums = (self._members @ x) * self.scale.unsqueeze(1).to(x.dtype)
        spread = torch.repeat_interleave(sums, self.ptr.diff(), dim=0, output_size=len(x))
        if isinstance(self.own, Tensor):
            return spread + self._owns.to(x.dtype) * x
        return spread + self.own * x if self.own else spread

    def rows(self, ids: Tensor) -> CSR:
        """Some rows, stored entry by entry: their number times the size of their graphs."""
        graph = torch.searchsorted(self.ptr, ids, right=True) - 1
        sizes = self.ptr.diff()[graph]
        indptr = functional.pad(sizes.cumsum(0), (1, 0))
        total = int(indptr[-1])
        shift = torch.repeat_interleave(self.ptr[graph] - indptr[:-1], sizes, output_size=total)
        columns = torch.arange(total, device=ids.device) + shift
        values = torch.repeat_interleave(self.scale[graph], sizes, output_size=total)
        own = columns == torch.repeat_interleave(ids, sizes, output_size=total)
        factors = torch.repeat_interleave(self._owns[ids].squeeze(1), sizes, output_size=total)
        return CSR(Pattern(indptr, columns, self.shape[1]), values + factors * own)

    def to(self, device: torch.device | str) -> Complete:
        """The same operator on another device."""
        own = self.own.to(device) if isinstance(self.own, Tensor) else self.own
        return Complete(self.ptr.to(device), self.scale.to(device), own)
