"""GCN on DGL's GraphConv."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from grb.model.dgl.layers import Activation, DGLModel, Stack, check_old_arguments, dgl_layers, relu, widths


class GCN(DGLModel):
    """Graph convolutional network of DGL's ``GraphConv``, with self-loops, normalised by both degrees.

    Args:
        in_features: Number of input features.
        out_features: Number of classes.
        hidden_features: Hidden widths, or one width together with ``n_layers``.
        n_layers: Number of convolutions, if one width is given.
        activation: Behind every hidden layer.
        layer_norm: Normalise rows in front of every convolution but the last.
        residual: Add a hidden layer's input to its output where both have the same width.
        feat_norm: None; the dataset normalises features.
        adj_norm_func: None; the layers normalise.
        dropout: Rate behind every hidden layer.
    """

    model_name = "gcn"

    def __init__(
        self,
        in_features: int,
        out_features: int,
        hidden_features: Any = (64, 64),
        n_layers: int | None = None,
        activation: Activation = relu,
        layer_norm: bool = False,
        residual: bool = False,
        feat_norm: None = None,
        adj_norm_func: None = None,
        dropout: float = 0.0,
    ) -> None:
        check_old_arguments("grb.model.dgl.GCN", feat_norm, adj_norm_func)
        conv, sizes = dgl_layers().GraphConv, widths(in_features, out_features, hidden_features, n_layers)
        layers = [conv(before, after, allow_zero_in_degree=True) for before, after in pairwise(sizes)]
        more: dict[str, Any] = {"layer_norm": layer_norm, "residual": residual, "dropout": dropout}
        super().__init__(Stack(layers, sizes[:-1], activation, **more), self_loops=True)
