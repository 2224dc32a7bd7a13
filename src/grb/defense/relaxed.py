"""A defense's weights on the plain normalised adjacency, for an attacker's gradients alone."""

from __future__ import annotations

from torch import nn

from grb.graph import CSR, Adjacency, normalise


class Relaxed(nn.Module):
    """A simplified version of a model in evaluation mode, whose operator is GCN's.

    Args:
        model: The model whose weights are used.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.eval()

    def prepare(self, adj: Adjacency) -> CSR:
        """The normalised adjacency."""
        return normalise.gcn(adj)
