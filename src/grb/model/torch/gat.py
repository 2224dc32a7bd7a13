"""Graph attention network."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from grb.errors import DataError
from grb.graph import CSR, Adjacency, Pattern
from grb.graph.attention import attend, edge_softmax, gather_columns, gather_rows
from grb.graph.normalise import with_self_loops
from grb.graph.sparse import row_sums
from grb.model.base import Mix, Rows, Stage, State
from grb.model.layers import Dropout, Linear
from grb.model.stack import ResidualStack

SLOPE = 0.2


@dataclass(eq=False, repr=False, kw_only=True)
class GAT(ResidualStack):
    r"""Convolutions whose weights along edges are learnt from both ends.

    With :math:`z = h W` and per head :math:`s_{ij} = \mathrm{LeakyReLU}_{0.2}(a_l \cdot z_i + a_r \cdot z_j)`,

    .. math:: h_i' = \sum_{j \in N(i) \cup \{i\}} \mathrm{softmax}_j(s_{ij})\, z_j + b .

    Heads of hidden layers are concatenated, those of the output layer averaged; the activation is elu. Edge weights
    of a weighted graph multiply the attention before it is normalised again.

    Args:
        hidden_features: Hidden widths of one head, or one width together with ``n_layers``.
        heads: Heads of every layer, the last one included.
        attention_dropout: Rate of edges whose attention is dropped in training.

    References:
        Veličković et al., *Graph Attention Networks*, ICLR 2018.
    """

    heads: int = 4
    attention_dropout: float = 0.0
    name = "gat"

    def build(self) -> None:
        """Make the attention layers."""
        if self.heads < 1:
            raise DataError(f"heads is {self.heads}, but at least one is needed")
        super().build()

    def activation(self, h: Tensor) -> Tensor:
        """The exponential linear unit."""
        return functional.elu(h)

    def make_conv(self, in_features: int, out_features: int, last: bool) -> nn.Module:
        """An attention layer; heads are averaged in the last one."""
        return GATConv(in_features, out_features, self.heads, average=last, dropout=self.attention_dropout)

    def output_width(self, hidden: int) -> int:
        """Heads of a hidden layer are concatenated."""
        return hidden * self.heads

    def prepare(self, adj: Adjacency) -> CSR:
        """The adjacency with self-loops."""
        pattern, values = with_self_loops(adj)
        return CSR(pattern, values, symmetric=pattern.symmetric)


class GATConv(nn.Module):
    """One attention layer; parameters per head: weight without bias, both attention vectors, bias."""

    def __init__(self, in_features: int, out_features: int, heads: int, *, average: bool, dropout: float) -> None:
        super().__init__()
        self.heads, self.width, self.average = heads, out_features, average
        self.linear = Linear(in_features, heads * out_features, bias=False)
        self.left = nn.Parameter(torch.empty(heads, out_features))
        self.right = nn.Parameter(torch.empty(heads, out_features))
        self.bias = nn.Parameter(torch.empty(heads, out_features))
        self.dropout = Dropout(dropout)
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights from ``generator``, or from torch's global one."""
        self.linear.reset_parameters(generator)
        nn.init.xavier_normal_(self.left, generator=generator)
        nn.init.xavier_normal_(self.right, generator=generator)
        nn.init.zeros_(self.bias)

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        """New rows, [n, out]."""
        state = self.scored((x,))  # type: ignore[arg-type]
        return self.attended(op, state, state)[0]

    def scored(self, state: State) -> State:
        """Transformed rows and both parts of their attention scores."""
        z = self.linear(state[0])
        heads = z.view(-1, self.heads, self.width)
        return z, (heads * self.left).sum(2), (heads * self.right).sum(2)

    def attended(self, op: CSR, sources: State, targets: State) -> State:
        """New rows of ``op`` from the transformed rows of its columns and the scores of its own."""
        z, _, right = sources
        alpha = self._attention(op.pattern, op.values, targets[1], right)
        mixed = attend(op.pattern, self.dropout(alpha), z.view(-1, self.heads, self.width)) + self.bias
        return (mixed.mean(1) if self.average else mixed.flatten(1),)

    def _attention(self, pattern: Pattern, values: Tensor | None, left: Tensor, right: Tensor) -> Tensor:
        scores = functional.leaky_relu(gather_rows(pattern, left) + gather_columns(pattern, right), SLOPE)
        if values is not None:
            # exp(s) w / sum exp(s) w: a weight of zero removes the edge, and weights stay differentiable
            alpha = edge_softmax(pattern, scores) * values.unsqueeze(1)
            return alpha / gather_rows(pattern, row_sums(pattern, alpha)).clamp_min(1e-12)
        return edge_softmax(pattern, scores)

    def stages(self) -> list[Stage]:
        """The forward pass in evaluation mode as row-wise and propagating steps."""
        return [Rows(self.scored), Mix(self.attended)]
