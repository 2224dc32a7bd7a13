"""What a perturbation is, and the parts that several of them share: streams of random numbers, edges of collections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from grb.errors import DataError
from grb.graph import Adjacency, Graph, Pattern

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Compat = Literal["gtaxogym"] | None
"""``"gtaxogym"`` does what the taxonomy paper's code does where its published numbers depend on it."""


@runtime_checkable
class Perturbation(Protocol):
    """From a graph or a collection of graphs to a new one; the old one stays as it is."""

    @property
    def random(self) -> bool:
        """Whether the generator is used."""

    @property
    def version(self) -> int:
        """Number that is raised whenever the results change."""

    @property
    def title(self) -> str:
        """Name in the published tables."""

    def __call__(self, graph: Graph, generator: torch.Generator | None = None) -> Graph:
        """Return the perturbed graph."""


class Fixed:
    """A perturbation that draws nothing."""

    random: ClassVar[bool] = False
    version: ClassVar[int] = 1


class Drawn:
    """A perturbation that uses the generator."""

    random: ClassVar[bool] = True
    version: ClassVar[int] = 1


@dataclass(frozen=True)
class DrawnShare(Drawn):
    """A random perturbation of a fraction of the edges.

    Args:
        share: The fraction.
    """

    share: float = 0.5

    def __post_init__(self) -> None:
        check_fraction(self.share, "share")


def check_compat(compat: object) -> None:
    """Refuse any ``compat`` but None and ``gtaxogym``."""
    if compat not in (None, "gtaxogym"):
        raise DataError(f"compat is {compat!r}, but None or 'gtaxogym' is needed")


def check_fraction(value: float, what: str) -> None:
    """Refuse a number outside of [0, 1]."""
    if not 0 <= value <= 1:
        raise DataError(f"{what} is {value}, but 0 to 1 is needed")


@dataclass(frozen=True)
class Streams:
    """Random numbers by position: one independent stream for every graph of a collection, all from one key.

    A number is a hash of the key, the graph's number and its position in the graph, so it does not depend on what the other
    graphs are, and nothing is drawn one after the other.

    References:
        Steele, Lea and Flood, *Fast Splittable Pseudorandom Number Generators*, OOPSLA 2014.
    """

    key: int

    @classmethod
    def draw(cls, generator: torch.Generator | None) -> Streams:
        """Draw the key from a generator."""
        if generator is None:
            raise DataError(
                "this perturbation is random; give it a torch.Generator, as in torch.Generator().manual_seed(0)"
            )
        device = generator.device
        return cls(int(torch.randint(2**63 - 1, (), generator=generator, device=device)))

    def uniform(self, graph: Integers, position: Integers, salt: int = 0) -> Floats:
        """Return numbers in [0, 1), one for every pair of a graph and a position; another ``salt`` gives independent ones."""
        start = _mixed(np.array([self.key % 2**64, salt], dtype=np.uint64) * _ODD)
        stream = _mixed(start[0] ^ _mixed(start[1:] + (graph.astype(np.uint64) + _ONE) * _ODD))
        bits = _mixed(stream + (position.astype(np.uint64) + _ONE) * _ODD)
        return np.asarray((bits >> np.uint64(11)) * 2.0**-53)


_ODD, _ONE = np.uint64(0x9E3779B97F4A7C15), np.uint64(1)


def _mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def boundaries(graph: Graph) -> Integers:
    """First node of every graph and, last, n, [graphs + 1]; a single graph has one."""
    if graph.ptr is None:
        return np.array([0, graph.n], dtype=np.int64)
    return graph.ptr.cpu().numpy().astype(np.int64)


def owners(ptr: Integers) -> Integers:
    """The graph of every node, [n]."""
    return np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))


def ranges(starts: Integers, counts: Integers) -> Integers:
    """The numbers start, start + 1, ... of every range, one range behind the other.

    >>> ranges(np.array([7, 2]), np.array([2, 3])).tolist()
    [7, 8, 2, 3, 4]
    """
    before = np.cumsum(counts) - counts
    return np.asarray(np.arange(counts.sum()) + np.repeat(starts - before, counts))


def ranks(group: Integers, numbers: Floats) -> tuple[Integers, Integers]:
    """Elements ordered by group and then by their number in [0, 1), and every one's rank in its group."""
    order = np.argsort(group + numbers, kind="stable")
    ordered = group[order]
    starts = np.searchsorted(ordered, ordered)
    return order, np.arange(len(order)) - starts


def mean_rows(rows: NDArray[np.float32], group: Integers, groups: int) -> NDArray[np.float32]:
    """Mean row, or mean number, of every group, [groups, ...]; every group has a member.

    >>> mean_rows(np.array([[1, 2], [3, 4], [7, 8]], dtype=np.float32), np.array([0, 0, 1]), 2).tolist()
    [[2.0, 3.0], [7.0, 8.0]]
    """
    sums = np.zeros((groups, *rows.shape[1:]))
    np.add.at(sums, group, rows)
    counts = np.bincount(group, minlength=groups).reshape(-1, *[1] * (rows.ndim - 1))
    return np.asarray(sums / counts, dtype=np.float32)


def csr_of(adj: Adjacency) -> tuple[Integers, Any]:
    """Return the CSR arrays of the edges as numpy arrays."""
    return adj.pattern.indptr.cpu().numpy().astype(np.int64), adj.pattern.indices.cpu().numpy()


def filtered(adj: Adjacency, keep: Tensor | NDArray[np.bool_]) -> Adjacency:
    """Only some entries, [entries]; an entry and its reverse must be kept together."""
    kept = torch.as_tensor(keep, device=adj.device)
    pattern = adj.pattern
    ends = functional.pad(kept.cumsum(0, dtype=pattern.indptr.dtype), (1, 0))
    kept_pattern = Pattern(ends[pattern.indptr.long()], pattern.indices[kept], adj.n, symmetric=True)
    return Adjacency(kept_pattern, *adj.carried(kept))


def joined(
    n: int, edges: Integers, weights: NDArray[np.float32] | None = None, features: NDArray[np.float32] | None = None
) -> Adjacency:
    """An adjacency from distinct undirected edges, each given once and without self-loops; trusts its arguments.

    Args:
        n: Number of nodes.
        edges: [2, m].
        weights: [m], or None.
        features: [m, f], or None.
    """
    keys = np.concatenate([edges[0] * n + edges[1], edges[1] * n + edges[0]])
    carried: list[Tensor | None] = [None, None]
    if weights is None and features is None:
        keys.sort()
    else:
        order = np.argsort(keys)
        keys = keys[order]
        carried = [
            None if each is None else torch.from_numpy(np.concatenate([each, each])[order])
            for each in (weights, features)
        ]
    small = np.int32 if len(keys) < 2**31 else np.int64
    rows, columns = np.divmod(keys, max(n, 1))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]).astype(small)
    pattern = Pattern(torch.from_numpy(indptr), torch.from_numpy(columns.astype(small)), n, symmetric=True)
    return Adjacency(pattern, *carried)
