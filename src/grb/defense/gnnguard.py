"""GNNGuard: edges between unlike nodes weigh less or nothing, in every layer anew."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from grb.graph import CSR, Pattern
from grb.graph.sparse import row_sums
from grb.model.base import State
from grb.model.layers import Linear, linears, relu_dropout
from grb.model.similarity import SimilarityLayer, SimilarityModel, unit_length
from grb.model.torch.gat import GATConv

# neighbours less similar than this are cut off
THRESHOLD = 0.1
# how much of a layer's weights is taken over from the layer before
MEMORY = 0.5
# least divisor of a row's similarities; gradients through rows with hardly any are as steep as it is small
FLOOR = 1e-8
SOFT_FLOOR = 1e-2
# a neighbour's sum decides whether the gate cuts an edge, but the decision has no gradient
REACH = (2, 1)


def similarity_weights(
    pattern: Pattern, cosines: Tensor, values: Tensor | None = None, threshold: float = THRESHOLD, floor: float = FLOOR
) -> Tensor:
    r"""GNNGuard's weights of the entries of a pattern with self-loops, [entries]; every row sums to one.

    With :math:`s_{uv} = a_{uv} \cos(h_u, h_v)`, zero where the cosine is below the threshold, and :math:`n_u` the
    number of neighbours left,

    .. math:: \alpha_{uv} = \frac{s_{uv}}{\sum_w s_{uw}} \frac{n_u}{n_u + 1}, \qquad \alpha_{uu} = \frac{1}{n_u + 1} .

    Args:
        pattern: Symmetric, with self-loops, [n, n].
        cosines: Of the rows of both ends of every entry, [entries]; a zero row is like no other.
        values: Edge weights :math:`a`, [entries]; None means that all are one.
        threshold: Neighbours less similar than this are cut off.
        floor: Sums of similarities count as this at least.
    """
    loops = pattern.row_ids == pattern.indices
    similarity = torch.where(loops | (cosines < threshold), 0.0, cosines)
    if values is not None:
        similarity = similarity * values
    left = row_sums(pattern, (similarity > 0).to(cosines.dtype))
    share = left / (left + 1) / row_sums(pattern, similarity).clamp_min(floor)
    own = 1 / (left + 1)
    return torch.where(loops, own[pattern.row_ids], similarity * share[pattern.row_ids])


class Gate(nn.Module):
    r"""Learnt pruning: an edge stays if :math:`w \cdot (\alpha_{uv}, \alpha_{vu}) + c \ge 0`.

    The decision is hard. In training the backward pass sees a sigmoid, so that weight and threshold are trained; in
    evaluation gradients are those of the hard decision. It starts with keeping every edge.
    """

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 1)
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights from ``generator``, or from torch's global one."""
        nn.init.ones_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, pattern: Pattern, alpha: Tensor) -> Tensor:
        """Logits of every node, [n, classes]."""
        both = torch.stack([alpha, alpha[pattern.transposed[1]]], dim=1)
        score = self.linear(both).squeeze(1)
        gate = (score >= 0).to(alpha.dtype)
        if self.training:
            soft = torch.sigmoid(score)
            gate = gate + soft - soft.detach()
        return torch.where(pattern.row_ids == pattern.indices, alpha, alpha * gate)


@dataclass(eq=False, repr=False)
class _Guarded(SimilarityModel):
    """What both guarded models share: weights of every layer from its own input, with memory of the layer before."""

    soft = False

    def build(self) -> None:
        self.gate = Gate()

    def weigh(self, op: CSR, cosines: Tensor, before: Tensor | None) -> tuple[Tensor, Tensor]:
        """The weights of the entries, which the next layer remembers."""
        if self.soft:
            alpha = similarity_weights(op.pattern, cosines, op.values, threshold=0.0, floor=SOFT_FLOOR)
        else:
            alpha = self.gate(op.pattern, similarity_weights(op.pattern, cosines, op.values))
        mixed: Tensor = alpha if before is None else MEMORY * before + (1 - MEMORY) * alpha
        return mixed, mixed

    def relaxations(self) -> dict[str, nn.Module]:
        """``soft``: every edge between rows that are similar at all stays, and no divisor is below 0.01."""
        made = self.twin()
        made.soft = True
        return {"soft": made}


@dataclass(eq=False, repr=False)
class GCNGuard(_Guarded):
    r"""GCN whose edges are weighed by the similarity of their ends.

    :math:`H_{l+1} = \mathrm{dropout}(\mathrm{relu}(\Omega_l H_l W_l + b_l))` with
    :math:`\Omega_l = \frac12 \Omega_{l-1} + \frac12 \alpha(H_l)`, see :func:`similarity_weights` and :class:`Gate`.
    Everything happens on existing edges, and gradients pass through it.

    Differs from THUDM/grb, which builds dense similarity matrices, never trains the gate and feeds one layer's weights to the
    next as its graph. The memory's share is a constant, as the number of parameters in the paper's tables has no room for it.

    References:
        Zhang and Zitnik, *GNNGuard: Defending Graph Neural Networks against Adversarial Attacks*, NeurIPS 2020.
    """

    name = "gcnguard"

    def build(self) -> None:
        """Make the gate and the linear maps."""
        super().build()
        self.linears = linears(self.widths)

    def similarity_layers(self) -> list[SimilarityLayer]:
        """The forward pass in parts."""
        return [self._layer(position) for position in range(len(self.linears))]

    def _layer(self, position: int) -> SimilarityLayer:
        linear = self.linears[position]
        assert isinstance(linear, Linear)

        def rows(state: State) -> State:
            h = relu_dropout(state[0], self.drop) if position else state[0]
            return unit_length(h), linear.transform(h)

        def mix(op: CSR, sources: State, targets: State) -> Tensor:
            return linear.shift(op @ sources[1])

        return SimilarityLayer(rows, self.weigh, mix, *REACH)


@dataclass(eq=False, repr=False, kw_only=True)
class GATGuard(_Guarded):
    r"""GAT whose attention is multiplied by GNNGuard's weights and normalised again.

    Args:
        hidden_features: Hidden widths of one head, or one width together with ``n_layers``.
        heads: Heads of every layer, the last one included.

    Differs from THUDM/grb, whose GATGuard prunes edges but ignores the weights.

    References:
        Zhang and Zitnik, *GNNGuard: Defending Graph Neural Networks against Adversarial Attacks*, NeurIPS 2020.
    """

    heads: int = 4
    name = "gatguard"

    def build(self) -> None:
        """Make the gate and the attention layers."""
        super().build()
        inputs, last = [self.in_features, *(size * self.heads for size in self.hidden)], len(self.hidden)
        self.convs = nn.ModuleList(
            GATConv(before, after, self.heads, average=layer == last, dropout=0.0)
            for layer, (before, after) in enumerate(zip(inputs, self.widths[1:], strict=True))
        )

    def activation(self, h: Tensor) -> Tensor:
        """The exponential linear unit."""
        return functional.elu(h)

    def similarity_layers(self) -> list[SimilarityLayer]:
        """The forward pass in parts."""
        return [self._layer(position) for position in range(len(self.convs))]

    def _layer(self, position: int) -> SimilarityLayer:
        conv = self.convs[position]
        assert isinstance(conv, GATConv)

        def rows(state: State) -> State:
            h = self.drop(self.activation(state[0])) if position else state[0]
            return unit_length(h), *conv.scored((h,))

        def mix(op: CSR, sources: State, targets: State) -> Tensor:
            return conv.attended(op, sources[1:], targets[1:])[0]

        return SimilarityLayer(rows, self.weigh, mix, *REACH)
