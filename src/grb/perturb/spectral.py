r"""Low, mid and high pass: features filtered by frequency over the graph.

Two families. ``hard`` projects onto eigenvectors of the normalised Laplacian :math:`N = I - D^{-1/2} A D^{-1/2}` (with 0 for
an isolated node, whose features vary nowhere), which needs all of them. ``wavelet`` needs two sparse products. In both the
three bands add up to the features.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from grb.errors import DataError
from grb.graph import CSR, Adjacency, CompleteAdjacency, Graph, Pattern, dense, normalise
from grb.perturb.base import Compat, Fixed, Floats, Integers, boundaries, check_compat, csr_of, ranges

Filter = Literal["hard", "wavelet"]
Masks = NDArray[np.bool_]
# eigenvalues nearer than this are one
TIE = 1e-9
# nodes of a graph whose eigenvectors are computed at most, and numbers in one batch of matrices
LARGEST = 8192
BATCH = 2**21
# fraction of entries above which a sparse result is kept dense
FILLED = 0.25


@dataclass(frozen=True)
class _Band(Fixed):
    filter: Filter | None = None
    compat: Compat = None
    band: ClassVar[int]

    def __post_init__(self) -> None:
        if self.filter not in (None, "hard", "wavelet"):
            raise DataError(f"filter is {self.filter!r}, but 'hard' or 'wavelet' is needed")
        check_compat(self.compat)

    @property
    def title(self) -> str:
        return ("LowPass", "MidPass", "HighPass")[self.band]

    def costly(self, graph: Graph) -> bool:
        """Whether the result is worth keeping on disk."""
        return self._filter(graph) == "hard"

    def _filter(self, graph: Graph) -> Filter:
        return self.filter or ("wavelet" if graph.ptr is None else "hard")

    def __call__(self, graph: Graph, generator: torch.Generator | None = None) -> Graph:
        if self._filter(graph) == "wavelet":
            return graph.with_features(wavelet_bank(graph)[self.band])
        return graph.with_features(hard_band(graph, self.band, compat=self.compat))


@dataclass(frozen=True)
class LowPass(_Band):
    """Keep what varies slowly over the graph: the lowest third of the frequencies.

    Args:
        filter: ``hard`` or ``wavelet``, see :func:`hard_band` and :func:`wavelet_bank`. As in the paper, collections have
            the first and single graphs the second if nothing is given.
        compat: ``"gtaxogym"`` cuts the hard bands as the paper's code does.

    References:
        Liu et al., *Taxonomy of Benchmarks in Graph Representation Learning*, LoG 2022, Section 2.1.
    """

    band: ClassVar[int] = 0


@dataclass(frozen=True)
class MidPass(_Band):
    """Keep the middle third of the frequencies.

    Arguments and reference as for :class:`LowPass`.
    """

    band: ClassVar[int] = 1


@dataclass(frozen=True)
class HighPass(_Band):
    """Keep what differs from node to node: the highest third of the frequencies.

    Arguments and reference as for :class:`LowPass`.
    """

    band: ClassVar[int] = 2


def wavelet_bank(graph: Graph, levels: int = 1) -> list[Tensor | CSR]:
    r"""Features filtered by diffusion wavelets, from the lowest to the highest band: ``levels`` + 2 of them.

    .. math:: T = \tfrac12 (I + D^{-1/2} A D^{-1/2}), \qquad X_{low} = T^{2^K} X, \quad
              X_k = (T^{2^{k-1}} - T^{2^k}) X, \quad X_{high} = (I - T) X

    With one level, the paper's, low is :math:`T^2 X` and mid :math:`(T - T^2) X`. An isolated node has :math:`T = 1/2`, so a
    quarter of its features is low, a quarter mid and half of them high. Sparse features stay sparse while they are.

    References:
        Coifman and Maggioni, *Diffusion Wavelets*, Applied and Computational Harmonic Analysis 2006.

    >>> from grb.graph import adjacency_from_edges
    >>> alone = Graph(adjacency_from_edges([], 1)[0], torch.tensor([[4.0]]))
    >>> [band.item() for band in wavelet_bank(alone)]
    [1.0, 1.0, 2.0]
    """
    if levels < 1:
        raise DataError(f"levels is {levels}, but a wavelet bank needs at least 1")
    plain = graph.adj if isinstance(graph.adj, CompleteAdjacency) else Adjacency(graph.adj.pattern)
    walk = normalise.operator(plain, left=-0.5, right=-0.5, self_loops=False)
    if isinstance(graph.x, CSR) and isinstance(walk, CSR):
        bands = _bank(_scipy(walk), _scipy(graph.x), levels)
        return [_features(band, graph.x.device) for band in bands]
    return _bank(walk, dense(graph.x), levels)


def _bank(walk: Any, x: Any, levels: int) -> list[Any]:
    bands, power = [], 1
    smooth = 0.5 * (x + walk @ x)
    bands.append(x - smooth)
    for _ in range(levels):
        x = smooth
        for _ in range(power):
            smooth = 0.5 * (smooth + walk @ smooth)
        bands.append(x - smooth)
        power *= 2
    return [smooth, *reversed(bands)]


def _scipy(matrix: CSR) -> Any:
    from scipy.sparse import csr_array

    pattern = matrix.pattern.to("cpu")
    values = torch.ones(pattern.entries) if matrix.values is None else matrix.values.detach().cpu()
    return csr_array((values.numpy(), pattern.indices.numpy(), pattern.indptr.numpy()), shape=pattern.shape)


def _features(matrix: Any, device: torch.device) -> Tensor | CSR:
    if matrix.nnz > FILLED * np.prod(matrix.shape):
        return torch.from_numpy(matrix.toarray()).to(device)
    matrix.sort_indices()
    indptr, indices = (torch.from_numpy(part.astype(np.int32)).to(device) for part in (matrix.indptr, matrix.indices))
    return CSR(Pattern(indptr, indices, matrix.shape[1]), torch.from_numpy(matrix.data).to(device))


def hard_band(graph: Graph, band: int, *, compat: Compat = None) -> Tensor:
    r"""Features projected onto a third of the eigenvectors of the normalised Laplacian, [n, d].

    .. math:: X_{band} = \Phi\, I_{band}\, \Phi^T X

    Of the eigenvalues of a graph in ascending order the first :math:`\lfloor n / 3 \rfloor` (at least one) are low, as many mid
    and the rest high. Equal eigenvalues stay together: their common position decides, and frequency 0 is always low. So the
    result does not depend on the basis that was found or on the order of the nodes.

    Args:
        graph: A graph or a collection, in which every graph is filtered on its own; edges count one each.
        band: 0 is low, 1 mid, 2 high.
        compat: ``"gtaxogym"`` cuts by count alone, through equal eigenvalues too, and leaves the features of graphs without
            edges, and below three nodes all but the high band, as they are.
    """
    x = dense(graph.x)
    result = torch.empty_like(x)
    ptr, (indptr, indices) = boundaries(graph), csr_of(graph.adj)
    for some, nodes, matrices in _batches(ptr, indptr, indices):
        values, vectors = np.linalg.eigh(matrices)
        keep = (_by_count(values, band) if compat else _by_eigenspace(values, band))[:, :, None]
        own = x[torch.from_numpy(nodes)].cpu().numpy().astype(np.float64)
        filtered = vectors @ (keep * (vectors.transpose(0, 2, 1) @ own))
        if compat:
            edgeless = indptr[ptr[some + 1]] == indptr[ptr[some]]
            still = edgeless | (nodes.shape[1] < 3 and band < 2)
            filtered[still] = own[still]
        result[torch.from_numpy(nodes)] = torch.from_numpy(filtered).to(x)
    return result


def _batches(ptr: Integers, indptr: Integers, indices: Any) -> Iterator[tuple[Integers, Integers, Floats]]:
    """Graphs of equal size with their nodes [b, s] and normalised Laplacians [b, s, s]."""
    sizes = np.diff(ptr)
    if len(sizes) and sizes.max() > LARGEST:
        raise DataError(
            f"a graph has {sizes.max()} nodes, but all eigenvectors are computed up to {LARGEST}; use filter='wavelet'"
        )
    degrees = np.diff(indptr)
    roots = 1 / np.sqrt(np.maximum(degrees, 1))
    order = np.argsort(sizes, kind="stable")
    for size in np.unique(sizes[sizes > 0]):
        group = order[np.searchsorted(sizes[order], size) : np.searchsorted(sizes[order], size, side="right")]
        for some in np.array_split(group, min(len(group), -(-len(group) * size * size // BATCH))):
            nodes = ptr[some][:, None] + np.arange(size)
            counts = indptr[ptr[some + 1]] - indptr[ptr[some]]
            entries = ranges(indptr[ptr[some]], counts)
            position = np.repeat(np.arange(len(some)), counts)
            rows = np.repeat(nodes.ravel(), degrees[nodes.ravel()])
            matrices = np.zeros((len(some), size, size))
            columns = indices[entries]
            first = ptr[some][position]
            matrices[position, rows - first, columns - first] = -roots[rows] * roots[columns]
            diagonal = np.arange(size)
            matrices[:, diagonal, diagonal] = degrees[nodes] > 0
            yield some, nodes, matrices


def _by_count(values: Floats, band: int) -> Masks:
    """The first third of the positions, the second, or the rest, [b, s]."""
    third = values.shape[1] // 3
    position = np.arange(values.shape[1])
    chosen = np.minimum(position // third, 2) == band if third else np.full(position.shape, band == 2)
    return np.broadcast_to(chosen, values.shape)


def _by_eigenspace(values: Floats, band: int) -> Masks:
    """As by count, with equal eigenvalues where the middle of them is, and frequency 0 always low, [b, s]."""
    size = values.shape[1]
    position = np.arange(size)
    ends = np.diff(values, axis=1, append=np.inf) > TIE  # the last of equal ones
    starts = np.roll(ends, 1, axis=1)
    starts[:, 0] = True
    first = np.maximum.accumulate(np.where(starts, position, 0), axis=1)
    last = np.minimum.accumulate(np.where(ends, position, size)[:, ::-1], axis=1)[:, ::-1]
    middle = (first + last + 1) / 2
    low = max(1, size // 3)
    chosen = np.where(
        (middle <= low) | (values[:, :1] > values - TIE), 0, np.where(middle <= max(low, 2 * (size // 3)), 1, 2)
    )
    return np.asarray(chosen == band)
