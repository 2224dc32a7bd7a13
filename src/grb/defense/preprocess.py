r"""What can be done to a graph before a model sees it: pure parts from a graph to a graph.

A part decides from the features of the graph it is given, at training and at evaluation alike, so that it meets
injected nodes too. Which edges are cut is a constant for gradients; what is left of edges and features stays
differentiable. The low-rank graph of GCN-SVD is dense, hence no graph but an operator: :mod:`grb.defense.gcnsvd`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Protocol, get_args

import torch
from torch import Tensor
from torch.nn import functional

from grb.errors import DataError
from grb.graph import CSR, Adjacency, Graph, Pattern, adjacency_from_edges, sampled_product
from grb.graph.sparse import row_sums

# entries of a sparse product of rows that are held at once
BLOCK = 2**18


class Preprocess(Protocol):
    """Anything from a graph to a graph with the same nodes; a dataclass of JSON values can be saved with a model."""

    def __call__(self, graph: Graph) -> Graph:
        """The graph as the model shall see it."""


@dataclass(frozen=True)
class Pruning:
    """Drops every edge whose ends are less similar than a threshold.

    Args:
        threshold: :math:`t`; edges between less similar ends are dropped.
    """

    threshold: float
    # whether the similarity depends on the rows of both ends alone, so that the part is a mask of pairs
    pairwise: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise DataError(f"threshold is {self.threshold}, but a similarity is between 0 and 1")

    def __call__(self, graph: Graph) -> Graph:
        """The graph without edges between dissimilar nodes."""
        with torch.no_grad():
            keep = self.similarity(graph) >= self.threshold
            keep &= keep[graph.adj.pattern.transposed[1]]  # an edge goes both ways, whatever rounding says
        return graph if bool(keep.all()) else replace(graph, adj=pruned(graph.adj, keep))

    def similarity(self, graph: Graph) -> Tensor:
        """Similarity of the ends of every entry, [entries]."""
        raise NotImplementedError

    def visible(self, x: Tensor | CSR, pairs: Tensor) -> Tensor:
        """Which pairs of nodes would stay, [p] booleans from [2, p]; for a pairwise similarity.

        Args:
            x: Features, [n, d].
            pairs: [2, p], in any order.
        """
        n = x.shape[0]
        low, high = pairs.min(0).values, pairs.max(0).values
        keys, back = torch.unique(low * n + high, return_inverse=True)
        if not len(keys):
            return torch.zeros(0, dtype=torch.bool)
        adj, _ = adjacency_from_edges(torch.stack([keys // n, keys % n]).numpy(), n)
        with torch.no_grad():
            keep = self.similarity(Graph(adj, x)) >= self.threshold
            keep &= keep[adj.pattern.transposed[1]]
        return keep[torch.searchsorted(adj.keys, keys)][back]

    def visible_block(self, x: Tensor | CSR, rows: Tensor, columns: Tensor) -> Tensor:
        """Which pairs of some nodes with others would stay, [r, c] booleans; for a pairwise similarity."""
        block = self.block_similarity(x, rows, columns) if isinstance(x, Tensor) else None
        if block is not None:
            return block >= self.threshold
        pairs = torch.stack([rows.repeat_interleave(len(columns)), columns.repeat(len(rows))])
        apart = pairs[0] != pairs[1]
        found = torch.zeros(pairs.shape[1], dtype=torch.bool)
        found[apart] = self.visible(x, pairs[:, apart])
        return found.view(len(rows), len(columns))

    def block_similarity(self, x: Tensor, rows: Tensor, columns: Tensor) -> Tensor | None:
        """Similarity of all pairs of some nodes with others, [r, c]; None if it is found for single pairs alone."""
        return None


@dataclass(frozen=True)
class Jaccard(Pruning):
    r"""Cuts edges whose ends have too few features in common.

    With :math:`B_u = \{i : x_{ui} > 0\}`, an edge stays if

    .. math:: \frac{|B_u \cap B_v|}{|B_u \cup B_v|} \ge t ,

    where the similarity of two empty sets is zero. For 0/1 features this is the usual coefficient, also after a
    normalisation that keeps ones above and zeros below zero, as GRB's does. Costs one inner product per edge, over
    the stored entries alone if the features are sparse.

    References:
        Wu et al., *Adversarial Examples on Graph Data: Deep Insights into Attack and Defense*, IJCAI 2019.
    """

    threshold: float = 0.01
    pairwise = True

    def block_similarity(self, x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Jaccard similarity of all pairs, [r, c]."""
        bits = (x > 0).to(x.dtype)
        common, sizes = bits[rows] @ bits[columns].T, bits.sum(1)
        union = sizes[rows].unsqueeze(1) + sizes[columns] - common
        return common / union.clamp_min(1)

    def similarity(self, graph: Graph) -> Tensor:
        """Jaccard similarity of the ends of every edge, [entries]."""
        pattern = graph.adj.pattern
        bits = _mapped(graph.x, lambda x: (x > 0).to(x.dtype))
        common, sizes = inner_products(pattern, bits), _row_sums(bits)
        union = sizes[pattern.row_ids] + sizes[pattern.indices] - common
        return common / union.clamp_min(1)


@dataclass(frozen=True)
class Cosine(Pruning):
    r"""Cuts edges with :math:`\cos(x_u, x_v) < t`: the form of Jaccard pruning for real features.

    A row of zeros is like no other.

    References:
        Wu et al., *Adversarial Examples on Graph Data: Deep Insights into Attack and Defense*, IJCAI 2019.
    """

    threshold: float = 0.1
    pairwise = True

    def block_similarity(self, x: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Cosine similarity of all pairs, [r, c]."""
        unit = functional.normalize(x, dim=1, eps=1e-8)
        return unit[rows] @ unit[columns].T

    def similarity(self, graph: Graph) -> Tensor:
        """Cosine similarity of the ends of every edge, [entries]."""
        return inner_products(graph.adj.pattern, unit_rows(graph.x))


Function = Literal["arctan", "tanh", "sigmoid", "unit"]


@dataclass(frozen=True)
class Transform:
    r"""Maps features into another space, in which a surrogate's adversarial features are less adversarial.

    ``arctan`` is :math:`\frac{2}{\pi} \arctan x`, ``sigmoid`` is :math:`2 / (1 + e^{-x}) - 1`, ``tanh`` speaks for
    itself; ``unit`` divides every row by its length, so that no node is louder than another. The model is trained on
    mapped features, and gradients pass through the map.

    Args:
        function: One of these.

    References:
        Zheng et al., *KDD Cup 2020 ML Track 2: Adversarial Attacks and Defense on Academic Graph, 1st position* (SPEIT), 2020.
    """

    function: Function = "arctan"

    def __post_init__(self) -> None:
        if self.function not in get_args(Function):
            raise DataError(f"function is {self.function!r}, but {', '.join(get_args(Function))} are known")

    def __call__(self, graph: Graph) -> Graph:
        """The graph with transformed features."""
        if self.function == "unit":
            return graph.with_features(unit_rows(graph.x))
        return graph.with_features(_mapped(graph.x, _SQUASHED[self.function]))


_SQUASHED: dict[str, Callable[[Tensor], Tensor]] = {
    "arctan": lambda x: torch.atan(x) * (2 / math.pi),
    "tanh": torch.tanh,
    "sigmoid": lambda x: torch.tanh(x / 2),  # the same function
}


def pruned(adj: Adjacency, keep: Tensor) -> Adjacency:
    """The edges without those whose two entries are not kept, [entries] booleans; differentiable in what is left."""
    pattern = adj.pattern
    before = functional.pad(keep.cumsum(0), (1, 0))
    indptr = before[pattern.indptr].to(pattern.indptr.dtype)
    values = None if adj.values is None else adj.values[keep]
    return Adjacency(Pattern(indptr, pattern.indices[keep], adj.n, symmetric=pattern.symmetric), values)


def inner_products(pattern: Pattern, x: Tensor | CSR) -> Tensor:
    """Inner product of both rows of every entry of a symmetric pattern, [entries]."""
    if isinstance(x, Tensor):
        return sampled_product(pattern, x, x)
    upper = pattern.row_ids < pattern.indices
    products = torch.zeros(pattern.entries, dtype=_values(x).dtype, device=x.device)
    products[upper] = _sparse_products(x, pattern.row_ids[upper], pattern.indices[upper])
    return products + products[pattern.transposed[1]]


def _sparse_products(x: CSR, left: Tensor, right: Tensor) -> Tensor:
    """Inner products of pairs of sparse rows by merging them, [pairs]."""
    from scipy.sparse import csr_array

    arrays = (_values(x), x.pattern.indices, x.pattern.indptr)
    rows = csr_array(tuple(array.detach().cpu().numpy() for array in arrays), shape=x.shape)
    size = max(1, BLOCK * x.shape[0] // max(x.pattern.entries, 1))
    pairs = zip(left.cpu().split(size), right.cpu().split(size))
    found = [torch.from_numpy((rows[a.numpy()] * rows[b.numpy()]).sum(1)) for a, b in pairs]
    return torch.cat(found).to(x.device) if found else _values(x)[:0]


def unit_rows(x: Tensor | CSR) -> Tensor | CSR:
    """Rows divided by their length; rows of zeros stay."""
    if isinstance(x, Tensor):
        return functional.normalize(x, dim=1, eps=1e-8)
    values = _values(x)
    lengths = row_sums(x.pattern, values.square()).sqrt().clamp_min(1e-8)
    return CSR(x.pattern, values / lengths[x.pattern.row_ids])


def _mapped(x: Tensor | CSR, function: Callable[[Tensor], Tensor]) -> Tensor | CSR:
    """A function with f(0) = 0 of every entry."""
    return function(x) if isinstance(x, Tensor) else CSR(x.pattern, function(_values(x)))


def _row_sums(x: Tensor | CSR) -> Tensor:
    return x.sum(1) if isinstance(x, Tensor) else row_sums(x.pattern, _values(x))


def _values(x: CSR) -> Tensor:
    return torch.ones(x.pattern.entries, device=x.device) if x.values is None else x.values
