"""GAT on DGL's GATConv."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import Any

from torch.nn import functional

from grb.model.dgl.layers import Activation, DGLModel, Stack


@dataclass(eq=False, repr=False)
class GAT(DGLModel):
    """Graph attention network of DGL's ``GATConv``, with self-loops; heads are concatenated, those of the last layer averaged.

    Args:
        hidden_features: Hidden widths of one head, or one width together with ``n_layers``.
        n_heads: Heads of every layer.
        feat_dropout: Rate of dropped input features of every layer.
        attn_dropout: Rate of dropped attention.
        residual: Add a hidden layer's input to its output where both have the same width.
    """

    n_heads: int = 4
    activation: InitVar[Activation] = field(default=functional.leaky_relu, kw_only=True)
    feat_dropout: float = field(default=0.0, kw_only=True)
    attn_dropout: float = field(default=0.0, kw_only=True)
    residual: bool = field(default=False, kw_only=True)
    model_name = "gat"

    def stack(self, sizes: list[int], activation: Activation, layers: Any) -> Stack:
        """Attention layers of these widths per head."""
        inputs = [sizes[0], *(size * self.n_heads for size in sizes[1:-1])]
        drops = {"feat_drop": self.feat_dropout, "attn_drop": self.attn_dropout, "allow_zero_in_degree": True}
        convs = [
            layers.GATConv(before, after, self.n_heads, **drops)
            for before, after in zip(inputs, sizes[1:], strict=True)
        ]
        more: dict[str, Any] = {"layer_norm": self.layer_norm, "residual": self.residual, "dropout": self.dropout}
        return Stack(convs, inputs, activation, average=True, **more)
