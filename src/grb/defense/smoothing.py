"""What defenses share that smooth a perceptron's predictions along edges."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from grb.graph import CSR, Adjacency
from grb.graph.sparse import row_sums
from grb.model.decoupled import DecoupledModel


@dataclass(eq=False, repr=False, kw_only=True)
class SmoothedPerceptron(DecoupledModel):
    """Predictions that move along the edges as they are, each by its weight."""

    def prepare(self, adj: Adjacency) -> CSR:
        """The edges with their weights; self-loops count in degrees alone."""
        return CSR(adj.pattern, adj.values, symmetric=adj.pattern.symmetric)


def edge_weights(op: CSR, like: Tensor) -> tuple[Tensor, Tensor]:
    r"""Weights of the entries, [entries], and :math:`\tilde d^{-1/2}` of every node, [n, 1]."""
    values = torch.ones(op.pattern.entries, dtype=like.dtype, device=like.device) if op.values is None else op.values
    return values, (row_sums(op.pattern, values) + 1).rsqrt().unsqueeze(1)
