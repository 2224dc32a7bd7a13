r"""Adjacency normalisations, each from an adjacency to an operator, differentiable in the edge values.

With :math:`\tilde A = A + I` and :math:`\tilde d_i = \sum_j \tilde A_{ij}`. A power of a zero degree counts as zero, so
isolated nodes stay finite.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from grb.graph.adjacency import Adjacency
from grb.graph.complete import CompleteAdjacency
from grb.graph.sparse import CSR, Op, Pattern, row_sums


def gcn(adj: Adjacency) -> CSR:
    r"""Kipf and Welling's :math:`\tilde D^{-1/2} \tilde A \tilde D^{-1/2}`.

    References:
        Kipf and Welling, *Semi-Supervised Classification with Graph Convolutional Networks*, ICLR 2017.
    """
    return scaled(adj, left=-0.5, right=-0.5)


def row(adj: Adjacency) -> CSR:
    r"""The mean over a node and its neighbours, :math:`\tilde D^{-1} \tilde A`."""
    return scaled(adj, left=-1.0, right=0.0)


def raw(adj: Adjacency) -> CSR:
    """The adjacency itself, as GIN's sum over neighbours uses it."""
    return CSR(adj.pattern, adj.values, symmetric=adj.pattern.symmetric)


def operator(adj: Adjacency, *, left: float, right: float, self_loops: bool = True) -> Op:
    r"""As :func:`scaled`, and by sums per graph where the graphs are complete, without writing their edges out.

    ``left=-0.5, right=-0.5`` is GCN's normalisation, ``left=0, right=0, self_loops=False`` the plain adjacency of GIN,
    ``left=-0.5, right=-0.5, self_loops=False`` ChebNet's :math:`D^{-1/2} A D^{-1/2}`.
    """
    if isinstance(adj, CompleteAdjacency):
        return adj.operator(left + right, self_loops=self_loops)
    return scaled(adj, left=left, right=right, self_loops=self_loops)


def scaled(adj: Adjacency, *, left: float, right: float, self_loops: bool = True) -> CSR:
    r"""General form :math:`\tilde D^{l} \tilde A \tilde D^{r}` (or with :math:`A, D` if ``self_loops`` is False)."""
    dtype = torch.get_default_dtype() if adj.values is None else adj.values.dtype
    degrees = row_sums(adj.pattern, adj.values).to(dtype)
    pattern = adj.pattern
    values = adj.values
    if self_loops:
        degrees = degrees + 1
        pattern, values = with_self_loops(adj)
    if values is None:
        values = torch.ones(pattern.entries, dtype=dtype, device=adj.device)
    if left:
        values = values * _power(degrees, left).index_select(0, pattern.row_ids)
    if right:
        values = values * _power(degrees, right).index_select(0, pattern.indices)
    return CSR(pattern, values, symmetric=left == right and pattern.symmetric)


def with_self_loops(adj: Adjacency) -> tuple[Pattern, Tensor | None]:
    """Pattern and values of :math:`A + I`; the columns stay ascending, so symmetry is kept."""
    pattern, n = adj.pattern, adj.n
    nodes = torch.arange(n, device=adj.device, dtype=pattern.indices.dtype)
    below = functional.pad((pattern.indices < pattern.row_ids).cumsum(0, dtype=nodes.dtype), (1, 0))
    before = below.index_select(0, pattern.indptr).diff()
    loops = pattern.indptr[:-1] + before + nodes
    entries = pattern.entries + n
    positions = torch.ones(entries, dtype=torch.bool, device=adj.device)
    positions[loops] = False
    indices = torch.empty(entries, dtype=nodes.dtype, device=adj.device)
    indices[positions] = pattern.indices
    indices[loops] = nodes
    indptr = pattern.indptr + torch.arange(n + 1, device=adj.device, dtype=nodes.dtype)
    looped = Pattern(indptr, indices, n, symmetric=pattern.symmetric)
    if adj.values is None:
        return looped, None
    values = adj.values.new_ones(entries).masked_scatter(positions, adj.values)
    return looped, values


def _power(degrees: Tensor, exponent: float) -> Tensor:
    positive = degrees > 0
    return torch.where(positive, torch.where(positive, degrees, 1.0) ** exponent, 0.0)
