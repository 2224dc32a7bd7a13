"""Models of grb for torch_geometric's own tools: its attacks, explainers and samplers."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from grb.errors import DataError
from grb.graph import Adjacency, Pattern
from grb.model.base import prepare


class ForPyG(nn.Module):
    """A model of grb with torch_geometric's ``forward(x, edge_index, edge_weight)``; see :func:`to_pyg`."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Logits, [n, classes], from features [n, d], edges [2, m] in both directions and their weights [m]."""
        adj = _adjacency(edge_index, edge_weight, len(x))
        logits: Tensor = self.model(x, prepare(self.model, adj))
        return logits


def to_pyg(model: nn.Module) -> ForPyG:
    """A model of grb as a module that takes ``x, edge_index, edge_weight``; the other direction is :func:`grb.wrap`.

    Gradients reach features and weights, which is what attacks and explainers of torch_geometric ask for. The edges must
    come in both directions, once each, of the same weight and without self-loops, as ``to_undirected`` and
    ``remove_self_loops`` of torch_geometric leave them. The model stays the same object.

    Args:
        model: A model of grb, or any module with ``prepare(adj)``.

    >>> from grb.model.torch import GCN
    >>> edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> to_pyg(GCN(3, 2))(torch.eye(3), edges, torch.ones(4)).shape
    torch.Size([3, 2])
    """
    return ForPyG(model)


def _adjacency(edge_index: Tensor, edge_weight: Tensor | None, n: int) -> Adjacency:
    keys = edge_index[0] * n + edge_index[1]
    order, across = torch.argsort(keys), torch.argsort(edge_index[1] * n + edge_index[0])
    rows, columns = edge_index[:, order]
    if len(keys) and ((keys[order].diff() == 0).any() or (rows == columns).any()):
        raise DataError(
            "edge_index has a self-loop or an edge twice, but models of grb add their own loops and count an edge once; "
            "use torch_geometric.utils.remove_self_loops and coalesce"
        )
    both = torch.equal(edge_index[:, order], edge_index[:, across].flip(0))
    if not both or (edge_weight is not None and not torch.equal(edge_weight[order], edge_weight[across])):
        raise DataError(
            "edge_index has an edge in one direction only, or of another weight in the other, but graphs of grb are "
            "undirected; use torch_geometric.utils.to_undirected"
        )
    indptr = torch.nn.functional.pad(torch.bincount(rows, minlength=n).cumsum(0), (1, 0))
    return Adjacency(Pattern(indptr, columns, n, symmetric=True), None if edge_weight is None else edge_weight[order])
