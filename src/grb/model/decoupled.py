"""What models share that predict first and propagate afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor

from grb.graph import CSR
from grb.model.base import LayeredModel
from grb.model.layers import layer_norms, linears, perceptron


@dataclass(eq=False, repr=False, kw_only=True)
class DecoupledModel(LayeredModel):
    """A perceptron on every node by itself, whose predictions the edges work on afterwards.

    Args:
        hidden_features: Hidden widths of the perceptron, or one width together with ``n_layers``.
        k: Steps.
        layer_norm: Normalise rows in front of every linear layer.
    """

    hidden_features: int | Sequence[int] = field(default=(64,), kw_only=False)
    k: int = 10
    layer_norm: bool = False
    dropout: float = 0.5

    def build(self) -> None:
        """Make the perceptron."""
        self.linears = linears(self.widths)
        self.norms = layer_norms(self.widths[:-1], self.layer_norm)

    def predictions(self, x: Tensor | CSR) -> Tensor:
        """What the perceptron says of every node, [n, classes]."""
        return perceptron(x, self.linears, self.norms, self.drop)
