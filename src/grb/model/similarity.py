"""Models whose edges weigh what the rows at their ends have in common, layer by layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional

from grb.graph import CSR, Adjacency, Pattern, dense, sampled_product
from grb.graph.normalise import with_self_loops
from grb.model.base import LayeredModel, State


@dataclass(frozen=True)
class SimilarityLayer:
    """A layer in three parts, so that an attack can recompute only what changes.

    Args:
        rows: What happens to every row by itself, from the features or the rows of the layer before; the first tensor of the
            result has rows of length one (or zero), of which edges get the cosines.
        weigh: Function from the operator, the cosines of its entries and what the layer before left of its edges (None in
            the first) to the weights of the entries and what the next layer gets.
        mix: Function from weighted entries, the state of their columns and that of their rows to the new rows.
        reach: How many steps from a changed row ``weigh`` and ``mix`` change others.
        gradient_reach: The same for others with a gradient; fewer where something is cut without one.
    """

    rows: Callable[[State], State]
    weigh: Callable[[CSR, Tensor, Tensor | None], tuple[Tensor, Tensor | None]]
    mix: Callable[[CSR, State, State], Tensor]
    reach: int
    gradient_reach: int


class SimilarityModel(LayeredModel):
    """A model of such layers; a subclass gives them."""

    def similarity_layers(self) -> list[SimilarityLayer]:
        """The layers."""
        raise NotImplementedError(f"{type(self).__name__} needs similarity_layers()")

    def prepare(self, adj: Adjacency) -> CSR:
        """The adjacency with self-loops."""
        return CSR(*with_self_loops(adj), symmetric=adj.pattern.symmetric)

    def forward(self, x: Tensor | CSR, op: CSR) -> Tensor:
        """Logits of every node, [n, classes]."""
        state: State = (dense(x),)
        memory: Tensor | None = None
        for layer in self.similarity_layers():
            state = layer.rows(state)
            weights, memory = layer.weigh(op, sampled_product(op.pattern, state[0], state[0]), memory)
            state = (layer.mix(CSR(op.pattern, weights), state, state),)
        return state[0]


def cosines(pattern: Pattern, h: Tensor) -> Tensor:
    """Cosine of the rows at both ends of every entry, [entries]; a row of zeros is like no other."""
    unit = unit_length(h)
    return sampled_product(pattern, unit, unit)


def unit_length(h: Tensor) -> Tensor:
    """Rows divided by their length; rows of zeros stay."""
    return functional.normalize(h, dim=1, eps=1e-8)
