r"""FiedlerFrag: a graph cut where it is least connected, by signs of eigenvectors.

All graphs of a collection are cut in step, each at its largest component. Components of up to 200 nodes are solved together
as batches of dense matrices, larger ones by LOBPCG on their sparse Laplacian, starting from the vectors of the component
that they were cut from.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from grb.errors import DataError
from grb.graph import Graph
from grb.perturb.base import (
    Compat,
    Fixed,
    Floats,
    Integers,
    Streams,
    boundaries,
    check_compat,
    csr_of,
    filtered,
    owners,
    ranges,
)

log = logging.getLogger(__name__)
# nodes up to which matrices are dense
DENSE = 200
# LOBPCG: vectors that are improved together, norm of the residual that ends it, rounds at most
BLOCK, RESIDUAL, ROUNDS = 4, 1e-8, 2000
# numbers in one batch of matrices
BATCH = 2**21
# of the largest entry: below it an entry has no sign; and the distance of eigenvalues that counts as none
ZERO = EQUAL = 1e-7


@dataclass(frozen=True)
class FiedlerFrag(Fixed):
    r"""Cut the largest component in two, again and again, between the signs of its Fiedler vector.

    The Fiedler vector :math:`\phi_1` belongs to the second smallest eigenvalue of the Laplacian :math:`L = D - A`; nodes with
    :math:`\phi_1 > 0` are parted from the others, and each side falls into its components. Dense regions stay whole.

    Args:
        iterations: Maximum number of cuts; 200, and 10 in compat, if not given.
        smallest: Stop when the largest component has fewer nodes than this.
        compat: ``"gtaxogym"`` takes the eigenvector of the second smallest eigenvalue of the *adjacency*, as the paper's code
            does in every published run. It alternates between neighbours, so that most edges go, as with NoEdges.

    Signs are fixed by the sum of cubes (then by the first entry), and entries that are zero count as negative. Where the
    eigenvalue is multiple, the vector nearest to the degrees is taken.

    References:
        Liu et al., *Taxonomy of Benchmarks in Graph Representation Learning*, LoG 2022, Section 2.2.
        Fiedler, *A Property of Eigenvectors of Nonnegative Symmetric Matrices*, Czechoslovak Mathematical Journal 1975.
        Knyazev, *Toward the Optimal Preconditioned Eigensolver*, SIAM Journal on Scientific Computing 2001.
    """

    iterations: int | None = None
    smallest: int = 20
    compat: Compat = None
    title = "FiedlerFrag"

    def __post_init__(self) -> None:
        check_compat(self.compat)
        if self.iterations is not None and self.iterations < 0:
            raise DataError(f"iterations is {self.iterations}, but 0 or more are needed")
        if self.smallest < 2:
            raise DataError(f"smallest is {self.smallest}, but a component that is cut needs at least 2 nodes")

    def costly(self, graph: Graph) -> bool:
        """Whether the result is worth keeping on disk."""
        return True

    def __call__(self, graph: Graph, generator: torch.Generator | None = None) -> Graph:
        """Return the graph without the edges between fragments."""
        label = torch.from_numpy(self.fragments(graph))
        pattern = graph.adj.pattern.to("cpu")
        keep = label[pattern.row_ids.long()] == label[pattern.indices.long()]
        return replace(graph, adj=filtered(graph.adj, keep))

    def fragments(self, graph: Graph) -> Integers:
        """A number for the fragment that every node belongs to, [n]."""
        iterations = self.iterations
        if iterations is None:
            iterations = 10 if self.compat else 200
        cutting = _Cutting(graph, self.smallest, _ADJACENCY if self.compat else _LAPLACIAN)
        for _ in range(iterations):
            if not cutting.step():
                break
        return cutting.label


class _Solver(NamedTuple):
    """How the vector of a connected component is found, with clean signs: zeros where it has none.

    Args:
        dense: From adjacency matrices [b, s, s] to vectors [b, s].
        sparse: From CSR arrays, and vectors to start from or None, to a vector [n] and vectors for those cut from it.
    """

    dense: Callable[[Floats], Floats]
    sparse: Callable[[Any, Floats | None], tuple[Floats, Floats | None]]


class _Cutting:
    """The components of every graph that can still be cut, the largest first."""

    def __init__(self, graph: Graph, smallest: int, solver: _Solver) -> None:
        self.smallest, self.solver = smallest, solver
        self.indptr, self.indices = csr_of(graph.adj)
        self.owner = owners(boundaries(graph))
        self.label = np.zeros(graph.n, dtype=np.int64)
        self.position = np.zeros(graph.n, dtype=np.int64)  # of a node among those that are being cut
        self.found = 0
        # by graph: minus its size, its number, its nodes in ascending order, vectors to start from
        self.heaps: list[list[tuple[int, int, Integers, Floats | None]]] = [[] for _ in range(graph.num_graphs)]
        whole = csr_array((np.ones(len(self.indices)), self.indices, self.indptr), shape=(graph.n, graph.n))
        self._add(np.arange(graph.n), whole, np.array([graph.n]), [None])

    def step(self) -> bool:
        """Cut the largest component of every graph once; False if none is large enough."""
        parts = [heapq.heappop(heap) for heap in self.heaps if heap]
        if not parts:
            return False
        nodes = np.concatenate([part[2] for part in parts])
        ends = np.cumsum([len(part[2]) for part in parts])
        matrix = self._inside(nodes)
        positive, blocks = self._signs(matrix, ends, [part[3] for part in parts])
        rows = np.repeat(np.arange(len(nodes)), np.diff(matrix.indptr))
        matrix.data[positive[rows] != positive[matrix.indices]] = 0
        matrix.eliminate_zeros()
        self._add(nodes, matrix, ends, blocks)
        return True

    def _inside(self, nodes: Integers) -> Any:
        """The adjacency of whole components, renumbered in the order given."""
        self.position[nodes] = np.arange(len(nodes))
        counts = self.indptr[nodes + 1] - self.indptr[nodes]
        columns = self.indices[ranges(self.indptr[nodes], counts)]
        same = self.label[columns] == np.repeat(self.label[nodes], counts)
        indptr = np.concatenate([[0], np.cumsum(same)])[np.concatenate([[0], np.cumsum(counts)])]
        columns = self.position[columns[same]]
        return csr_array((np.ones(len(columns)), columns, indptr), shape=(len(nodes), len(nodes)))

    def _signs(
        self, matrix: Any, ends: Integers, starts: list[Floats | None]
    ) -> tuple[NDArray[np.bool_], list[Floats | None]]:
        """On which side every node is, and for every large component its vectors."""
        vectors, blocks = np.empty(matrix.shape[0]), list(starts)
        sizes = np.diff(ends, prepend=0)
        for i in np.flatnonzero(sizes > DENSE):
            own = slice(ends[i] - sizes[i], ends[i])
            vectors[own], blocks[i] = self.solver.sparse(matrix[own, own], starts[i])
        for size in np.unique(sizes[sizes <= DENSE]):
            for some in np.split(np.flatnonzero(sizes == size), range(0, len(sizes), max(1, BATCH // size**2)))[1:]:
                if len(some):
                    positions = (ends[some] - size)[:, None] + np.arange(size)
                    vectors[positions] = self.solver.dense(_blocks(matrix, positions))
        return vectors > 0, blocks

    def _add(self, nodes: Integers, matrix: Any, ends: Integers, blocks: list[Floats | None]) -> None:
        """Take note of the components of a matrix over some nodes."""
        count, component = connected_components(matrix, directed=False)
        self.label[nodes] = self.found + component
        sizes = np.bincount(component, minlength=count)
        order, last = np.argsort(component, kind="stable"), np.cumsum(sizes)
        for i in np.flatnonzero(sizes >= self.smallest):
            own = order[last[i] - sizes[i] : last[i]]
            parent = int(np.searchsorted(ends, own[0], side="right"))
            block, first = blocks[parent], ends[parent - 1] if parent else 0
            start = None if block is None or sizes[i] <= DENSE else block[own - first]
            heap = self.heaps[self.owner[nodes[own[0]]]]
            heapq.heappush(heap, (-int(sizes[i]), self.found + int(i), nodes[own], start))
        self.found += count


def _blocks(matrix: Any, positions: Integers) -> Floats:
    """Dense adjacencies of components whose nodes stand in a row, [b, s, s]."""
    b, s = positions.shape
    starts, stops = matrix.indptr[positions[:, 0]], matrix.indptr[positions[:, -1] + 1]
    counts = np.diff(matrix.indptr)[positions].ravel()
    columns = matrix.indices[ranges(starts, stops - starts)]
    rows = np.repeat(np.arange(b * s), counts)
    dense = np.zeros((b, s, s))
    dense[rows // s, rows % s, columns - positions[rows // s, 0]] = 1.0
    return dense


def _laplacian_dense(adjacency: Floats) -> Floats:
    degrees = adjacency.sum(2)
    matrices = -adjacency
    diagonal = np.arange(degrees.shape[1])
    matrices[:, diagonal, diagonal] = degrees
    return _second(matrices, degrees)


def _adjacency_dense(adjacency: Floats) -> Floats:
    return _second(adjacency, adjacency.sum(2))


def _second(matrices: Floats, degrees: Floats) -> Floats:
    """Eigenvectors of the second smallest eigenvalues, [b, s]; where these are multiple, nearest to the degrees."""
    values, vectors = np.linalg.eigh(matrices)
    space = np.abs(values - values[:, 1:2]) < EQUAL
    space[:, 0] = False
    chosen = vectors[:, :, 1].copy()
    undecided = space.sum(1) > 1
    # any other fixed vector where the degrees say nothing, as in regular graphs
    for probe in (np.broadcast_to(np.cos(1.0 + np.arange(degrees.shape[1])), degrees.shape), degrees):
        parts = np.einsum("bij,bi->bj", vectors, probe) * space
        decided = undecided & (np.linalg.norm(parts, axis=1) > 1e-6 * np.linalg.norm(probe, axis=1))
        chosen[decided] = np.einsum("bij,bj->bi", vectors, parts)[decided]
    return _settled(chosen)


def _settled(vectors: Floats) -> Floats:
    """The same vectors, [b, s], with the sign that has the larger cubes and without entries that are only rounding."""
    vectors = np.where(np.abs(vectors) > ZERO * np.abs(vectors).max(1, keepdims=True), vectors, 0.0)
    cubes = vectors**3
    skew = cubes.sum(1)
    first = np.take_along_axis(vectors, (vectors != 0).argmax(1)[:, None], axis=1)[:, 0]
    sign = np.where(np.abs(skew) > ZERO * np.abs(cubes).sum(1), skew, first)
    return np.asarray(np.where(sign[:, None] < 0, -vectors, vectors))


def _laplacian_sparse(matrix: Any, start: Floats | None) -> tuple[Floats, Floats | None]:
    block = lobpcg(matrix, start)
    return _settled(block[:, :1].T)[0], block


def _adjacency_sparse(matrix: Any, start: Floats | None) -> tuple[Floats, Floats | None]:
    from scipy.sparse.linalg import eigsh

    # a fixed start, because Lanczos draws a random one otherwise
    _, vectors = eigsh(matrix, k=2, which="SA", v0=np.cos(np.arange(matrix.shape[0])), tol=1e-9)
    return _settled(vectors[:, 1:].T)[0], None


_LAPLACIAN = _Solver(_laplacian_dense, _laplacian_sparse)
_ADJACENCY = _Solver(_adjacency_dense, _adjacency_sparse)


def lobpcg(matrix: Any, start: Floats | None = None) -> Floats:
    r"""Vectors of the smallest eigenvalues of a connected graph's Laplacian but for the constant one, [n, 4].

    Locally optimal block conjugate gradients with :math:`D^{-1}` as preconditioner. Only the first vector is followed to the
    end (norm of its residual 1e-8); the others help it past eigenvalues that are near.

    Args:
        matrix: The adjacency as a scipy CSR array of ones.
        start: Vectors of a graph that was much the same, [n, 4].

    References:
        Knyazev, *Toward the Optimal Preconditioned Eigensolver*, SIAM Journal on Scientific Computing 2001.
    """
    from scipy.linalg import LinAlgError, eigh

    n = matrix.shape[0]
    degrees = np.diff(matrix.indptr).astype(np.float64)[:, None]
    x = _noise(n) if start is None else np.roll(start, -1, axis=1)  # what was first before has just been cut
    x = np.linalg.qr(x - x.mean(0))[0]
    if np.abs(x.sum(0)).max() > 1e-6 or x.shape[1] < BLOCK:  # a start that has become constant
        x = np.linalg.qr(_noise(n) - _noise(n).mean(0))[0]
    lx = degrees * x - matrix @ x
    values, turn = np.linalg.eigh(x.T @ lx)
    x, lx = x @ turn, lx @ turn
    old: list[Floats] = []
    for _ in range(ROUNDS):
        rest = lx - x * values
        if np.linalg.norm(rest[:, 0]) < RESIDUAL:
            return x
        w = rest / degrees
        w -= w.mean(0)
        w -= x @ (x.T @ w)
        w /= np.linalg.norm(w, axis=0)
        basis = np.hstack([x, w, *old[:1]])
        image = np.hstack([lx, degrees * w - matrix @ w, *old[1:]])
        try:
            values, turn = eigh(basis.T @ image, basis.T @ basis, subset_by_index=[0, BLOCK - 1])
        except LinAlgError:  # the old directions have become dependent
            if not old:
                break
            old = []
            continue
        x, lx = basis @ turn, image @ turn
        turn[:BLOCK] = 0
        old = [basis @ turn, image @ turn]
        scale = np.linalg.norm(old[0], axis=0)
        old = [part / np.where(scale > 0, scale, 1.0) for part in old]
    log.warning("the Fiedler vector of a component of %d nodes has a residual of %.1e", n, np.linalg.norm(rest[:, 0]))
    return x


def _noise(n: int) -> Floats:
    """Fixed numbers without a pattern, [n, 4]."""
    positions = np.arange(n * BLOCK)
    return Streams(0).uniform(np.zeros_like(positions), positions).reshape(n, BLOCK) - 0.5
