"""GIN on DGL's GINConv."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from grb.model.dgl.layers import (
    Activation,
    DGLModel,
    Stack,
    check_old_arguments,
    dgl_layers,
    gin_perceptron,
    relu,
    widths,
)


class GIN(DGLModel):
    """Graph isomorphism network of DGL's ``GINConv`` with learnt epsilon; the last perceptron gives logits.

    Args:
        in_features: Number of input features.
        out_features: Number of classes.
        hidden_features: Hidden widths, or one width together with ``n_layers``.
        n_layers: Number of convolutions, if one width is given.
        activation: Behind every hidden layer.
        layer_norm: Normalise rows in front of every convolution but the last.
        batch_norm: Normalise what every hidden perceptron puts out.
        feat_norm: None; the dataset normalises features.
        adj_norm_func: None; sums are not normalised.
        dropout: Rate behind every hidden layer.
    """

    model_name = "gin"

    def __init__(
        self,
        in_features: int,
        out_features: int,
        hidden_features: Any = (64, 64),
        n_layers: int | None = None,
        activation: Activation = relu,
        layer_norm: bool = False,
        batch_norm: bool = True,
        feat_norm: None = None,
        adj_norm_func: None = None,
        dropout: float = 0.0,
    ) -> None:
        check_old_arguments("grb.model.dgl.GIN", feat_norm, adj_norm_func)
        conv, sizes = dgl_layers().GINConv, widths(in_features, out_features, hidden_features, n_layers)
        last = len(sizes) - 2
        layers = [
            conv(gin_perceptron(before, after, batch_norm and place < last), "sum", learn_eps=True)
            for place, (before, after) in enumerate(pairwise(sizes))
        ]
        super().__init__(
            Stack(layers, sizes[:-1], activation, layer_norm=layer_norm, dropout=dropout), self_loops=False
        )
