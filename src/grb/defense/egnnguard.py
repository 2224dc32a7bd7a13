"""EGNNGuard: GNNGuard's similarity without gate and memory."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from grb.defense.preprocess import unit_rows
from grb.errors import DataError
from grb.graph import CSR, Pattern
from grb.graph.sparse import row_sums
from grb.model.base import Stage, State
from grb.model.layers import Linear, relu_dropout
from grb.model.similarity import SimilarityLayer, SimilarityModel
from grb.model.stack import ConvStack

# an edge weighs by the degrees of both ends, these by the weights of their edges, and those by the sums of their other ends
REACH = (3, 3)


@dataclass(eq=False, repr=False, kw_only=True)
class EGNNGuard(SimilarityModel, ConvStack):
    r"""GCN whose edges are weighed in every layer by the similarity of their ends, without anything to learn.

    With :math:`s_{uv} = \cos(h_u, h_v)`, edges below ``threshold`` are cut, for all later layers too. With
    :math:`S_u = \sum_v s_{uv}` over the :math:`n_u` neighbours left, an edge that is left and a node itself weigh

    .. math:: w_{uv} = \exp\left(\frac{s_{uv}}{\sqrt{S_u S_v}}\right), \qquad w_{uu} = \exp\left(\frac{1}{n_u + 1}\right),

    and a layer is :math:`D^{-1/2} W D^{-1/2} H \Theta + b` with :math:`D` the sums of :math:`W`. Gradients pass
    through the weights.

    Differs from LFhase/GIA-HAO: the output layer is used (there the last hidden one stands in for it), and weights
    are differentiated.

    Args:
        threshold: Neighbours less similar than this are cut off.
        layer_norm: Normalise rows in front of every convolution but the last.

    References:
        Chen et al., *Understanding and Improving Graph Injection Attack by Promoting Unnoticeability*, ICLR 2022.
        Zhang and Zitnik, *GNNGuard: Defending Graph Neural Networks against Adversarial Attacks*, NeurIPS 2020.
    """

    threshold: float = 0.1
    layer_norm: bool = False
    name = "egnnguard"
    soft = False

    def build(self) -> None:
        """Make the linear maps and norms."""
        if not 0 <= self.threshold <= 1:
            raise DataError(f"threshold is {self.threshold}, but a similarity is between 0 and 1")
        self.stack(layer_norm=self.layer_norm, residual=False)

    def make_conv(self, in_features: int, out_features: int, last: bool) -> nn.Module:
        """A linear map; the layers propagate."""
        return Linear(in_features, out_features)

    def similarity_layers(self) -> list[SimilarityLayer]:
        """The forward pass in parts."""
        return [self._layer(position) for position in range(len(self.convs))]

    def _layer(self, position: int) -> SimilarityLayer:
        linear = self.convs[position]
        assert isinstance(linear, Linear)
        norm = self.norms[position] if self.norms is not None and position < len(self.convs) - 1 else None

        def rows(state: State) -> State:
            h = relu_dropout(state[0], self.drop) if position else state[0]
            h = h if norm is None else norm(h)
            unit = unit_rows(h)
            assert isinstance(unit, Tensor)
            return unit, linear.transform(h)

        def mix(op: CSR, sources: State, targets: State) -> Tensor:
            return linear.shift(op @ sources[1])

        return SimilarityLayer(rows, self._weigh, mix, *REACH)

    def _weigh(self, op: CSR, cosines: Tensor, left: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The weights of the entries, and the edges that are left for the next layer."""
        if self.soft:
            return soft_weights(op.pattern, cosines, op.values), None
        return egnnguard_weights(op.pattern, cosines, op.values if left is None else left, self.threshold)

    def stages(self) -> list[Stage] | None:
        """None: a weight depends on all neighbours of both ends."""
        return None

    def relaxations(self) -> dict[str, nn.Module]:
        """``soft``: no edge is cut, see :func:`soft_weights`."""
        made = self.twin()
        made.soft = True
        return {"soft": made}


def egnnguard_weights(
    pattern: Pattern, cosine: Tensor, values: Tensor | None = None, threshold: float = 0.1
) -> tuple[Tensor, Tensor]:
    r"""Entries of :math:`D^{-1/2} W D^{-1/2}`, see :class:`EGNNGuard`, and the edge weights that are left, both [entries].

    Args:
        pattern: Symmetric, with self-loops, [n, n].
        cosine: Of the rows of both ends of every entry, [entries]; a row of zeros is similar to no other.
        values: Edge weights, [entries], which multiply :math:`w_{uv}`; zero for an edge cut before, None for all one.
        threshold: Neighbours less similar than this are cut off.
    """
    rows, columns = pattern.row_ids, pattern.indices
    loops = rows == columns
    left = ~loops & (cosine >= threshold) & (cosine > 0)
    if values is not None:
        left &= values > 0
    edge = left.to(cosine.dtype) if values is None else torch.where(left, values, 0.0)
    count = row_sums(pattern, left.to(cosine.dtype))
    total = row_sums(pattern, cosine * edge).clamp_min(1e-8)
    # zero where an edge is not left, because infinity times zero is no number
    similarity = torch.where(left, cosine, 0.0) * (total[rows] * total[columns]).rsqrt()
    weight = torch.where(loops, (1 / (count + 1)).exp()[rows], similarity.exp() * edge)
    degree = row_sums(pattern, weight).rsqrt()
    return weight * degree[rows] * degree[columns], edge


def soft_weights(pattern: Pattern, cosine: Tensor, values: Tensor | None = None) -> Tensor:
    """As the weights of :func:`egnnguard_weights`, but no edge is cut, for an attacker's gradients.

    Negative similarities count as zero, sums of them as 0.1 at least, and an edge of weight zero has a gradient.
    """
    rows, columns = pattern.row_ids, pattern.indices
    loops = rows == columns
    cosine = torch.where(loops, 0.0, cosine.clamp_min(0))
    edge = torch.where(loops, 0.0, torch.ones_like(cosine) if values is None else values)
    count = row_sums(pattern, edge)
    total = row_sums(pattern, cosine * edge).clamp_min(0.1)
    similarity = cosine * (total[rows] * total[columns]).rsqrt()
    weight = torch.where(loops, (1 / (count + 1)).exp()[rows], similarity.exp() * edge)
    degree = row_sums(pattern, weight).rsqrt()
    return weight * degree[rows] * degree[columns]
