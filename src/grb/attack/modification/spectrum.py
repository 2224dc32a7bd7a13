r"""Scores from the spectrum of :math:`S = D^{-1/2} A D^{-1/2}`, by closed forms instead of eigenvalues.

A generalised eigenpair :math:`A u = \lambda D u` with :math:`u^T D u = 1` changes, when a pair is flipped with sign
:math:`s = 1 - 2 a_{ij}`, to first order by

.. math:: d\lambda = s\, (2 u_i u_j - \lambda (u_i^2 + u_j^2)) .

Isolated nodes belong to eigenvalue 0 and stay there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from grb.attack.modification.base import PairScores, SearchState
from grb.attack.modification.centrality import components
from grb.attack.modification.scores import Pairwise
from grb.graph import CSR, Adjacency, normalise

# nodes up to which all eigenvalues are computed by default
DENSE = 500
# numbers in one block of columns of a polynomial
BLOCK = 2**19


@dataclass(frozen=True)
class FilterChange:
    r"""STACK: how much a flip changes the graph filter, :math:`|\sqrt{\sum \lambda^2} - \sqrt{\sum \lambda'^2}|`.

    The sum is :math:`\mathrm{tr}(S^2) = \sum_{ij} a_{ij} / (d_i d_j)`. With :math:`t_u = \sum_{w \sim u} 1 / d_w`, adding a
    pair changes it by

    .. math:: 2 t_u \left(\tfrac1{d_u + 1} - \tfrac1{d_u}\right) + 2 t_v \left(\tfrac1{d_v + 1} - \tfrac1{d_v}\right)
              + \frac{2}{(d_u + 1)(d_v + 1)}

    and removing one likewise: exact, and a few operations per pair.

    Args:
        estimate: ``exact``, or ``first_order`` in the eigenvalues as THUDM/grb estimates it.
        self_loops: Use :math:`A + I` and its degrees.

    References:
        Xu et al., *Blindfolded Attackers Still Threatening: Strict Black-Box Adversarial Attacks on Graphs*, AAAI 2022.
    """

    estimate: Literal["exact", "first_order"] = "exact"
    self_loops: bool = False

    def __call__(self, state: SearchState) -> PairScores:
        """Scores by the change of the spectrum of the graph filter."""
        exact = self.estimate == "exact"
        made = _Traces.of(state.adj, self.self_loops, exact)
        # the change that counts is that from the clean graph, not from the last flip
        return replace(made, clean=_Traces.of(state.clean.adj, self.self_loops, exact).total)


@dataclass(frozen=True, eq=False)
class _Traces(Pairwise):
    degrees: Tensor  # loops included, [n]
    sums: Tensor  # over neighbours, of inverse degrees, [n]
    total: float  # trace of the square
    clean: float  # the same before the attack
    loops: float
    exact: bool

    @classmethod
    def of(cls, adj: Adjacency, self_loops: bool, exact: bool) -> _Traces:
        loops = float(self_loops)
        degrees = adj.degrees.double() + loops
        inverse = _inverse(degrees)
        sums = CSR(adj.pattern, symmetric=True) @ inverse
        total = float((sums * inverse + loops * inverse * inverse).sum())
        return cls(degrees, sums, total, total, loops, exact)

    def _score(self, change: Tensor) -> Tensor:
        return (np.sqrt(self.clean) - (self.total + change).clamp_min(0.0).sqrt()).abs()

    def _by_one(self, step: float) -> Tensor:
        """What a changed degree alone does, [n]."""
        now, then = _inverse(self.degrees), _inverse(self.degrees + step)
        return 2 * self.sums * (then - now) + self.loops * (then * then - now * now)

    @cached_property
    def _more(self) -> Tensor:
        if self.exact:
            return self._by_one(1.0)
        inverse = _inverse(self.degrees)
        return -2 * (self.sums + self.loops * inverse) * inverse * inverse

    @cached_property
    def _product(self) -> Tensor:
        """Each end's half of the weight of a new edge, [n]."""
        return _inverse(self.degrees + 1) if self.exact else torch.zeros_like(self.degrees)

    def adds(self, pairs: Tensor) -> Tensor:
        u, v = pairs
        return self._score(self._more[u] + self._more[v] + 2 * self._product[u] * self._product[v])

    def add_block(self, rows: Tensor, columns: Tensor) -> Tensor:
        change = torch.outer(2 * self._product[rows], self._product[columns])
        change += self._more[rows].unsqueeze(1)
        change += self._more[columns]
        return self._score(change)

    def drops(self, pairs: Tensor) -> Tensor:
        inverse = _inverse(self.degrees)
        edge = inverse[pairs[0]] * inverse[pairs[1]]
        if not self.exact:
            return self._score(-self._more[pairs].sum(0) - 4 * edge)
        less = self._by_one(-1.0)[pairs].sum(0)
        # the sums at both ends without the edge itself
        step = _inverse(self.degrees - 1) - inverse
        own = 2 * (inverse[pairs[1]] * step[pairs[0]] + inverse[pairs[0]] * step[pairs[1]])
        return self._score(less - own - 2 * edge)


@dataclass(frozen=True)
class WalkResidual:
    r"""NEA: what an embedding of rank :math:`K` by random walks cannot express after a flip.

    .. math:: \sqrt{\sum_{p > K} g(\lambda'_p)^2}, \qquad g(x) = \sum_{r=1}^{T} x^r,

    over all eigenvalues but the :math:`K` with the largest :math:`|g|`. The fast form linearises the sum of squares. With
    :math:`h = 2 g g'` its change over the whole spectrum is

    .. math:: s \left( \frac{2\, h(S)_{ij}}{\sqrt{d_i d_j}} - \frac{(S h(S))_{ii}}{d_i} - \frac{(S h(S))_{jj}}{d_j} \right),

    a polynomial of a sparse matrix, column by column: time :math:`O(n E T)`, memory that of a block. What the :math:`K`
    largest contribute is taken off again.

    Eigenvalue 1 belongs to the components, one each. Where there are more of them than :math:`K`, the :math:`K` largest
    are untouched by any one flip.

    Args:
        window: :math:`T`, length of the walks.
        dim: :math:`K`, dimension of the embedding.
        estimate: ``dense`` computes all eigenvalues, ``fast`` the linear form; by size if not given.

    References:
        Bojchevski and Günnemann, *Adversarial Attacks on Node Embeddings via Graph Poisoning*, ICML 2019.
    """

    window: int = 5
    dim: int = 32
    estimate: Literal["dense", "fast"] | None = None

    def __call__(self, state: SearchState) -> PairScores:
        """Scores by the change of the residual of random-walk embeddings."""
        dense = state.clean.n <= DENSE if self.estimate is None else self.estimate == "dense"
        make = _DenseResidual if dense else _FastResidual
        return make(state.adj, self.window, self.dim)


class _DenseResidual(Pairwise):
    """All eigenvalues, and for every pair their first-order change; n numbers per pair."""

    def __init__(self, adj: Adjacency, window: int, dim: int) -> None:
        self.window, self.dim = window, dim
        matrix = _walk(adj) @ torch.eye(adj.n, dtype=torch.float64)
        self.values, vectors = torch.linalg.eigh(matrix)
        parts = _component_vectors(adj)
        ones = self.values > 1 - 1e-9
        # every rotation of the vectors of eigenvalue 1 is as good; this one does not depend on the machine
        if int(ones.sum()) == parts.shape[1]:
            vectors[:, ones] = parts
        self.vectors = vectors * _inverse(adj.degrees.double()).sqrt().unsqueeze(1)

    def adds(self, pairs: Tensor) -> Tensor:
        return self._after(pairs, 1.0)

    def drops(self, pairs: Tensor) -> Tensor:
        return self._after(pairs, -1.0)

    def _after(self, pairs: Tensor, sign: float) -> Tensor:
        step = max(1, BLOCK // max(len(self.values), 1))
        parts = [self._residual(some, sign) for some in pairs.split(step, dim=1)]
        return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.float64)

    def _residual(self, pairs: Tensor, sign: float) -> Tensor:
        a, b = self.vectors[pairs[0]], self.vectors[pairs[1]]
        moved = self.values + sign * (2 * a * b - self.values * (a * a + b * b))
        squares = _walk_sum(moved, self.window).square()
        kept = max(squares.shape[1] - self.dim, 0)
        return squares.topk(kept, dim=1, largest=False, sorted=False).values.sum(1).sqrt()


class _FastResidual:
    """The linear form: columns of a polynomial of the sparse matrix, in blocks."""

    def __init__(self, adj: Adjacency, window: int, dim: int) -> None:
        self.op = _walk(adj)
        self.inverse = _inverse(adj.degrees.double())
        g = np.ones(window + 1)
        g[0] = 0.0
        self.h = 2 * np.polynomial.polynomial.polymul(g, np.polynomial.polynomial.polyder(g))
        values, vectors = _leading(adj, self.op, dim, window)
        self.top_values, self.top = values, vectors * self.inverse.sqrt().unsqueeze(1)
        self.weights = torch.from_numpy(np.polynomial.polynomial.polyval(values.numpy(), self.h))
        # what a flip takes off at each of its ends
        own = self._diagonal() * self.inverse
        self.ends = own - (self.top.square() * (self.weights * values)).sum(1)

    def _columns(self, nodes: Tensor) -> Tensor:
        """Columns of h(S), [n, k], by Horner's scheme."""
        start = torch.zeros(self.op.shape[0], len(nodes), dtype=torch.float64)
        positions = (nodes, torch.arange(len(nodes)))
        result = start.clone()
        result[positions] = float(self.h[-1])
        for coefficient in self.h[-2::-1]:
            result = self.op @ result
            result[positions] += float(coefficient)
        return result

    def _diagonal(self) -> Tensor:
        """Diagonal of S h(S), [n]."""
        found = torch.empty(self.op.shape[0], dtype=torch.float64)
        for nodes in torch.arange(self.op.shape[0]).split(self._width):
            found[nodes] = (self.op @ self._columns(nodes))[nodes, torch.arange(len(nodes))]
        return found

    @property
    def _width(self) -> int:
        return max(1, BLOCK // max(self.op.shape[0], 1))

    def add_block(self, rows: Tensor, columns: Tensor) -> Tensor:
        parts = []
        for some in rows.split(self._width):
            roots = self.inverse.sqrt()
            shared = (self._columns(some) * roots[some]).T[:, columns] * roots[columns]
            shared -= (self.top[some] * self.weights) @ self.top[columns].T
            parts.append(shared)
        ends = self.ends[rows].unsqueeze(1) + self.ends[columns]
        return 2 * torch.cat(parts) - ends

    def _of(self, pairs: Tensor) -> Tensor:
        firsts, position = torch.unique(pairs[0], return_inverse=True)
        roots = self.inverse.sqrt()
        shared = torch.empty(pairs.shape[1], dtype=torch.float64)
        for first in range(0, len(firsts), self._width):
            here = ((position >= first) & (position < first + self._width)).nonzero().flatten()
            block = self._columns(firsts[first : first + self._width])
            shared[here] = block[pairs[1, here], position[here] - first]
        shared *= roots[pairs[0]] * roots[pairs[1]]
        shared -= (self.top[pairs[0]] * self.top[pairs[1]]) @ self.weights
        return 2 * shared - self.ends[pairs].sum(0)

    def adds(self, pairs: Tensor) -> Tensor:
        return self._of(pairs)

    def drops(self, pairs: Tensor) -> Tensor:
        return -self._of(pairs)


def _walk(adj: Adjacency) -> CSR:
    """S in double precision, edges counting one each."""
    ones = torch.ones(adj.pattern.entries, dtype=torch.float64)
    return normalise.scaled(Adjacency(adj.pattern, ones), left=-0.5, right=-0.5, self_loops=False)


def _walk_sum(x: Tensor, window: int) -> Tensor:
    """x + x^2 + ... + x^T."""
    total = x
    for _ in range(window - 1):
        total = x * (1 + total)
    return total


def _component_vectors(adj: Adjacency) -> Tensor:
    """The eigenvectors of S for eigenvalue 1, one per component with an edge, [n, c]."""
    component, _ = components(adj)
    degrees = adj.degrees.double()
    volumes = torch.zeros(int(component.max()) + 1 if len(component) else 0, dtype=torch.float64)
    volumes.index_add_(0, component, degrees)
    real = volumes > 0
    numbers = real.cumsum(0) - 1
    vectors = torch.zeros(adj.n, int(real.sum()), dtype=torch.float64)
    inside = real[component].nonzero().flatten()
    vectors[inside, numbers[component[inside]]] = (degrees[inside] / volumes[component[inside]]).sqrt()
    return vectors


def _leading(adj: Adjacency, op: CSR, dim: int, window: int) -> tuple[Tensor, Tensor]:
    """Eigenpairs that a flip can take out of the ``dim`` largest: none where there are more components than that."""
    parts = _component_vectors(adj)
    count = parts.shape[1]
    if count > dim or count == 0:
        return torch.zeros(0, dtype=torch.float64), parts[:, :0]
    more = min(dim - count, adj.n - count)
    ones = torch.ones(count, dtype=torch.float64)
    if more < 1:
        return ones, parts
    values, vectors = _extreme(op, parts, more, "LA")
    # no negative eigenvalue has a sum of powers beyond one
    if float(_walk_sum(values, window).min()) < 1:
        low = _extreme(op, parts, more, "SA")
        values, vectors = torch.cat([values, low[0]]), torch.cat([vectors, low[1]], dim=1)
        order = _walk_sum(values, window).abs().argsort(descending=True)[:more]
        values, vectors = values[order], vectors[:, order]
    return torch.cat([ones, values]), torch.cat([parts, vectors], dim=1)


def _extreme(op: CSR, parts: Tensor, count: int, end: Literal["LA", "SA"]) -> tuple[Tensor, Tensor]:
    """The largest or smallest eigenpairs of S but for eigenvalue 1, whose vectors are known."""
    from scipy.sparse.linalg import LinearOperator, eigsh

    n = op.shape[0]

    def deflated(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        column = torch.from_numpy(np.ascontiguousarray(x).reshape(len(x), -1))
        # Lanczos would not find eigenvalue 1 as often as it is there
        return (op @ column - parts @ (parts.T @ column)).numpy()

    if n <= max(64, 2 * count):
        full = torch.from_numpy(deflated(np.eye(n)))
        values, vectors = torch.linalg.eigh((full + full.T) / 2)
        keep = slice(n - count, n) if end == "LA" else slice(0, count)
        return values[keep], vectors[:, keep]
    start = np.cos(np.arange(n))  # fixed, because Lanczos draws a random one otherwise
    operator = LinearOperator((n, n), matvec=deflated, dtype=np.float64)
    values, vectors = eigsh(operator, k=count, which=end, v0=start, tol=1e-6)
    return torch.from_numpy(np.ascontiguousarray(values)), torch.from_numpy(np.ascontiguousarray(vectors))


def _inverse(degrees: Tensor) -> Tensor:
    return torch.where(degrees > 0, 1 / torch.where(degrees > 0, degrees, 1.0), 0.0)
