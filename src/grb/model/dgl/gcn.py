"""GCN on DGL's GraphConv."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from grb.model.dgl.layers import Activation, DGLModel, Stack


@dataclass(eq=False, repr=False)
class GCN(DGLModel):
    """Graph convolutional network of DGL's ``GraphConv``, with self-loops, normalised by both degrees.

    Args:
        residual: Add a hidden layer's input to its output where both have the same width.
    """

    residual: bool = field(default=False, kw_only=True)
    model_name = "gcn"

    def stack(self, sizes: list[int], activation: Activation, layers: Any) -> Stack:
        """Convolutions of these widths."""
        convs = [layers.GraphConv(before, after, allow_zero_in_degree=True) for before, after in pairwise(sizes)]
        more: dict[str, Any] = {"layer_norm": self.layer_norm, "residual": self.residual, "dropout": self.dropout}
        return Stack(convs, sizes[:-1], activation, **more)
