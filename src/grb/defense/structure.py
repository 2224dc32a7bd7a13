"""Learning the weights of a graph's pairs beside a GCN: sparse, low-rank and smooth (what Pro-GNN does to a graph)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from grb.graph import CSR, Adjacency, Pattern, dense, normalise
from grb.graph.operators import Dense
from grb.graph.sparse import row_sums

# loss of the task for an operator of the whole graph
Task = Callable[[CSR | Dense], Tensor]
MOMENTUM = 0.9
# products with random vectors before the first projection; Lanczos stalls where eigenvalues are close, as on a ring
STARTING = 12
# what the authors add to a degree before they take its root
FLOOR = 1e-3
# pairs whose products of rows are computed at once
BLOCK = 2**16


@dataclass(frozen=True)
class Weighting:
    """Strengths of what is asked of the weights, see :class:`~grb.defense.prognn.ProGNN`.

    Args:
        sparsity: Factor of their absolute values.
        low_rank: Factor of the sum of singular values.
        task: Factor of the GCN's loss.
        smoothness: Factor of the differences of features along edges.
        lr: Learning rate of the weights.
        squared: Whether the distance from the graph is squared.
    """

    sparsity: float
    low_rank: float
    task: float
    smoothness: float
    lr: float
    squared: bool = False

    def distance(self, change: Tensor) -> Tensor:
        """The Frobenius norm of a change of the matrix, or its square."""
        return change.square().sum() if self.squared else change.norm()


class Structure(Protocol):
    """The weights of a graph's pairs while they are learnt."""

    @property
    def weights(self) -> Tensor:
        """One weight per pair, [pairs]."""

    def step(self, task: Task) -> None:
        """A gradient step on all that is differentiable, then both proximal steps."""


class SparseStructure:
    r"""Weights of some pairs alone: memory is linear in their number.

    The proximal step of the nuclear norm needs all singular values. Here the ``rank`` largest ones are shrunk exactly, and all
    that the others make up is scaled as if each were as large as the last of these: :func:`shrunk`. Their eigenvectors are
    followed from step to step by one product and a Rayleigh-Ritz projection, from random ones on, so that they are those of the
    true spectrum only where it is apart from the rest.

    Args:
        pairs: [2, pairs], the lower id first, ascending.
        start: Weights that they begin with and are held to, [pairs].
        x: Features, [n, d].
        how: Strengths.
        rank: Singular values that are shrunk exactly.
    """

    def __init__(self, pairs: Tensor, start: Tensor, x: Tensor | CSR, how: Weighting, rank: int) -> None:
        n = x.shape[0]
        self.pairs, self.start, self.how, self.rank = pairs, start, how, min(rank, n)
        both = torch.cat([pairs, pairs.flip(0)], dim=1)
        order = torch.argsort(both[0] * n + both[1])
        indptr = functional.pad(both[0].bincount(minlength=n).cumsum(0), (1, 0))
        self.pattern = Pattern(indptr, both[1][order], n, symmetric=True)
        # the pair of every entry
        self.owner = torch.arange(pairs.shape[1], device=pairs.device).repeat(2)[order]
        rows = dense(x)
        self.squares = rows.square().sum(1)
        self.products = inner_products(rows, rows, pairs)
        self.weights = start.clone()
        self.velocity = torch.zeros_like(start)
        self.vectors: Tensor | None = None

    def adjacency(self, weights: Tensor) -> Adjacency:
        """The graph of some weights."""
        return Adjacency(self.pattern, weights[self.owner])

    def step(self, task: Task) -> None:
        """A gradient step on all that is differentiable, then both proximal steps."""
        leaf = self.weights.clone().requires_grad_()
        adj = self.adjacency(leaf)
        loss = self.how.distance(2**0.5 * (leaf - self.start))  # both entries of a pair count
        if self.how.task:
            loss = loss + self.how.task * task(normalise.gcn(adj))
        if self.how.smoothness:
            degrees = row_sums(self.pattern, adj.values)
            scale = (degrees + FLOOR).rsqrt()
            along = scale[self.pairs[0]] * scale[self.pairs[1]] * leaf * self.products
            loss = loss + self.how.smoothness * ((degrees * scale.square() * self.squares).sum() - 2 * along.sum())
        (slope,) = torch.autograd.grad(loss, leaf)
        with torch.no_grad():
            # of one entry of the matrix, of which a pair has two
            self.velocity.mul_(MOMENTUM).add_(slope, alpha=0.5)
            moved = self.weights - self.how.lr * self.velocity
            self.weights = boxed(self.shrunk(moved, self.how.lr * self.how.low_rank), self.how.lr * self.how.sparsity)

    def shrunk(self, weights: Tensor, threshold: float) -> Tensor:
        r"""Weights whose leading singular values are lower by a threshold.

        With :math:`\sigma_1 \ge \dots \ge \sigma_r` those of the ``rank`` leading ones, and
        :math:`\rho = \max(0, \sigma_r - t) / \sigma_r`,

        .. math:: S \leftarrow \rho S + \sum_{k \le r} (\max(0, \sigma_k - t) - \rho\, \sigma_k)\, u_k v_k^T

        on the pairs, which is the proximal step where :math:`S` has no more than r singular values.
        """
        if not threshold:
            return weights
        sizes, left, right = self._singular(self.adjacency(weights))
        last = sizes.min()
        kept = ((last - threshold) / last).clamp_min(0) if last > 0 else torch.zeros_like(last)
        change = 0.5 * ((sizes - threshold).clamp_min(0) - kept * sizes)
        both = inner_products(left * change, right, self.pairs) + inner_products(right * change, left, self.pairs)
        return kept * weights + both

    def _singular(self, adj: Adjacency) -> tuple[Tensor, Tensor, Tensor]:
        """The leading singular values, [r], and their vectors on both sides, [n, r].

        By a projection of the squared matrix: eigenvalues of one size but different sign would cancel in one of the matrix.
        """
        op = CSR(adj.pattern, adj.values, symmetric=True)
        if self.vectors is None:
            # a fixed start, so that the same graph gives the same bits
            start = torch.randn(adj.n, self.rank, generator=torch.Generator().manual_seed(0)).to(self.weights)
            for _ in range(STARTING):
                start, _ = torch.linalg.qr(op @ start)
            self.vectors = start
        basis, _ = torch.linalg.qr(op @ self.vectors)
        image = op @ basis
        squares, turn = torch.linalg.eigh(image.T @ image)
        sizes = squares.clamp_min(0).sqrt()
        self.vectors = basis @ turn
        return sizes, (image @ turn) / sizes.clamp_min(1e-12), self.vectors


class DenseStructure:
    """Weights of all pairs, as the authors have them: n x n memory, and one decomposition of the matrix per step.

    Args:
        adj: The graph that the weights begin with and are held to.
        x: Features, [n, d].
        how: Strengths.
    """

    def __init__(self, adj: Adjacency, x: Tensor | CSR, how: Weighting) -> None:
        rows = dense(x)
        self.how = how
        self.start = matrix_of(adj, rows.dtype)
        self.matrix = self.start.clone()
        self.velocity = torch.zeros_like(self.matrix)
        self.squares, self.products = rows.square().sum(1), rows @ rows.T

    @property
    def weights(self) -> Tensor:
        """One weight per pair, [pairs]."""
        return self.matrix[upper(len(self.matrix), self.matrix.device)]

    def step(self, task: Task) -> None:
        """A gradient step on all that is differentiable, then both proximal steps."""
        leaf = self.matrix.clone().requires_grad_()
        loss = self.how.distance(leaf - self.start)
        if self.how.task:
            loss = loss + self.how.task * task(normalised(leaf))
        if self.how.smoothness:
            degrees = leaf.sum(1)
            scale = (degrees + FLOOR).rsqrt()
            along = scale[:, None] * scale[None] * leaf * self.products
            loss = loss + self.how.smoothness * ((degrees * scale.square() * self.squares).sum() - along.sum())
        (slope,) = torch.autograd.grad(loss, leaf)
        with torch.no_grad():
            self.velocity.mul_(MOMENTUM).add_((slope + slope.T).fill_diagonal_(0), alpha=0.5)
            moved = shrink_singular_values(self.matrix - self.how.lr * self.velocity, self.how.lr * self.how.low_rank)
            self.matrix = boxed(moved, self.how.lr * self.how.sparsity).fill_diagonal_(0)


def boxed(weights: Tensor, threshold: float) -> Tensor:
    """The proximal step of the absolute values, and then the box from 0 to 1."""
    return (weights - threshold).clamp(0, 1)


def shrink_singular_values(matrix: Tensor, threshold: float) -> Tensor:
    """A symmetric matrix whose singular values are lower by a threshold and at least 0: the nuclear norm's proximal step.

    >>> shrink_singular_values(torch.tensor([[3.0, 0.0], [0.0, -1.0]]), 2.0).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    if not threshold:
        return matrix
    values, vectors = torch.linalg.eigh(matrix)
    found: Tensor = (vectors * (values.abs() - threshold).clamp_min(0) * values.sign()) @ vectors.T
    return found


def inner_products(a: Tensor, b: Tensor, pairs: Tensor) -> Tensor:
    """Inner product of row i of ``a`` with row j of ``b`` for every pair, [pairs]; a block of pairs at a time."""
    parts = [(a[left] * b[right]).sum(1) for left, right in pairs.split(BLOCK, dim=1)]
    return torch.cat(parts) if parts else a.new_zeros(0)


def normalised(matrix: Tensor) -> Dense:
    r"""GCN's normalisation of a dense symmetric matrix of weights, with self-loops."""
    looped = matrix + torch.eye(len(matrix), dtype=matrix.dtype, device=matrix.device)
    scale = looped.sum(1).rsqrt()
    return Dense(scale[:, None] * looped * scale[None])


def matrix_of(adj: Adjacency, dtype: torch.dtype) -> Tensor:
    """The entries of an adjacency as a dense matrix, [n, n]; differentiable in its values."""
    pattern = adj.pattern
    values = torch.ones(pattern.entries, dtype=dtype, device=adj.device) if adj.values is None else adj.values
    empty = values.new_zeros(adj.n, adj.n)
    return empty.index_put((pattern.row_ids.long(), pattern.indices.long()), values)


def upper(n: int, device: torch.device | str = "cpu") -> Tensor:
    """Which entries of a matrix are above its diagonal, row by row, [n, n]."""
    return torch.ones(n, n, dtype=torch.bool, device=device).triu(1)


def most_similar(x: Tensor | CSR, count: int) -> Tensor:
    """Every node with the ``count`` others whose features point most nearly in its direction, [2, pairs], each pair once.

    A block of rows at a time: memory is linear in the nodes, time is not.
    """
    rows = functional.normalize(dense(x), dim=1)
    n = len(rows)
    count = min(count, n - 1)
    if count < 1:
        return torch.zeros(2, 0, dtype=torch.int64, device=rows.device)
    found = []
    for ids in torch.arange(n, device=rows.device).split(max(1, 2**24 // n)):
        close = rows[ids] @ rows.T
        close[torch.arange(len(ids), device=rows.device), ids] = -2.0
        found.append(torch.stack([ids.repeat_interleave(count), close.topk(count, dim=1).indices.flatten()]))
    ends = torch.cat(found, dim=1)
    keys = (ends.min(0).values * n + ends.max(0).values).unique()
    return torch.stack([keys // n, keys % n])
