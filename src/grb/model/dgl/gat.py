"""GAT on DGL's GATConv."""

from __future__ import annotations

from typing import Any

from torch.nn import functional

from grb.model.dgl.layers import Activation, DGLModel, Stack, check_old_arguments, dgl_layers, widths


class GAT(DGLModel):
    """Graph attention network of DGL's ``GATConv``, with self-loops; heads are concatenated, those of the last layer averaged.

    Args:
        in_features: Number of input features.
        out_features: Number of classes.
        hidden_features: Hidden widths of one head, or one width together with ``n_layers``.
        n_layers: Number of layers, if one width is given.
        n_heads: Heads of every layer.
        activation: Behind every hidden layer.
        layer_norm: Normalise rows in front of every layer but the last.
        feat_norm: None; the dataset normalises features.
        adj_norm_func: None; attention is normalised by itself.
        feat_dropout: Rate of dropped input features of every layer.
        attn_dropout: Rate of dropped attention.
        residual: Add a hidden layer's input to its output where both have the same width.
        dropout: Rate behind every hidden layer.
    """

    model_name = "gat"

    def __init__(
        self,
        in_features: int,
        out_features: int,
        hidden_features: Any = (64, 64),
        n_layers: int | None = None,
        n_heads: int = 4,
        activation: Activation = functional.leaky_relu,
        layer_norm: bool = False,
        feat_norm: None = None,
        adj_norm_func: None = None,
        feat_dropout: float = 0.0,
        attn_dropout: float = 0.0,
        residual: bool = False,
        dropout: float = 0.0,
    ) -> None:
        check_old_arguments("grb.model.dgl.GAT", feat_norm, adj_norm_func)
        conv, sizes = dgl_layers().GATConv, widths(in_features, out_features, hidden_features, n_layers)
        inputs = [in_features, *(size * n_heads for size in sizes[1:-1])]
        drops = {"feat_drop": feat_dropout, "attn_drop": attn_dropout, "allow_zero_in_degree": True}
        layers = [conv(before, after, n_heads, **drops) for before, after in zip(inputs, sizes[1:], strict=True)]
        more: dict[str, Any] = {"layer_norm": layer_norm, "residual": residual, "dropout": dropout, "average": True}
        super().__init__(Stack(layers, inputs, activation, **more), self_loops=True)
