"""GIN on DGL's GINConv."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from grb.model.dgl.layers import Activation, DGLModel, Stack, gin_perceptron


@dataclass(eq=False, repr=False)
class GIN(DGLModel):
    """Graph isomorphism network of DGL's ``GINConv`` with learnt epsilon; the last perceptron gives logits.

    Args:
        batch_norm: Normalise what every hidden perceptron puts out.
    """

    batch_norm: bool = field(default=True, kw_only=True)
    model_name = "gin"
    self_loops = False

    def stack(self, sizes: list[int], activation: Activation, layers: Any) -> Stack:
        """Sums of neighbours, each with a perceptron behind."""
        last = len(sizes) - 2
        convs = [
            layers.GINConv(gin_perceptron(before, after, self.batch_norm and place < last), "sum", learn_eps=True)
            for place, (before, after) in enumerate(pairwise(sizes))
        ]
        return Stack(convs, sizes[:-1], activation, layer_norm=self.layer_norm, dropout=self.dropout)
