"""Multi-layer perceptron: no edges, so no structural attack can touch it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from grb.graph import CSR, Adjacency, dense, normalise
from grb.model.base import LayeredModel, Rows, Stage
from grb.model.layers import layer_norms, linears, relu_dropout


@dataclass(eq=False, repr=False, kw_only=True)
class MLP(LayeredModel):
    r"""Features alone: :math:`H_{l+1} = \mathrm{dropout}(\mathrm{relu}(\mathrm{LN}(H_l) W_l + b_l))`.

    A robust graph model has to beat it: under attack it keeps its clean accuracy.

    Args:
        layer_norm: Normalise rows in front of every linear layer but the last.
    """

    layer_norm: bool = False
    name = "mlp"

    def build(self) -> None:
        """Make the linear layers."""
        self.linears = linears(self.widths)
        self.norms = layer_norms(self.widths[:-2], self.layer_norm)

    def prepare(self, adj: Adjacency) -> CSR:
        """The adjacency, which is not used."""
        return normalise.raw(adj)

    def forward(self, x: Tensor | CSR, op: object = None) -> Tensor:
        """Logits of every node, [n, classes]."""
        last = len(self.linears) - 1
        h: Any = x
        for position, linear in enumerate(self.linears):
            if self.norms is not None and position < last:
                h = self.norms[position](dense(h))
            h = linear(h)
            if position < last:
                h = relu_dropout(h, self.drop)
        return h

    def stages(self) -> list[Stage]:
        """The forward pass in evaluation mode as row-wise and propagating steps."""

        def without_dropout(state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            assert not self.training, "stages are the forward pass in evaluation mode"
            return (self.forward(state[0]),)

        return [Rows(without_dropout)]
