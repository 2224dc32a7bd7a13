"""Forward passes of models whose edge weights are similarities, recomputing only what injected rows change.

Rows by themselves (linear maps, norms) are recomputed where they can change: at first in the injected rows alone, behind
the first layer within a few steps of them, because the weights of a row's edges depend on its neighbours' edges too, and
gradients pass only through the rows that have one. The last layer gives the rows of the targets alone. Weights of edges
are those of the whole graph, and all sums keep their order: edits are those of whole passes to the bit wherever a
matrix product gives a row the same bits in any company, as MKL does from four rows on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from grb.attack.passes import counted
from grb.graph import CSR, Pattern, sampled_product
from grb.model.base import State
from grb.model.similarity import SimilarityLayer

# twice as many as a matrix product needs
FEWEST = 8


@dataclass(frozen=True, eq=False)
class _Block:
    """Some rows of a pattern."""

    ids: Tensor
    pattern: Pattern
    positions: Tensor  # of its entries

    @classmethod
    def of(cls, pattern: Pattern, ids: Tensor) -> _Block:
        return cls(ids, *pattern.rows(ids))

    def mix(self, layer: SimilarityLayer, weights: Tensor, state: State) -> Tensor:
        op = CSR(self.pattern, weights.index_select(0, self.positions))
        return layer.mix(op, state, tuple(values.index_select(0, self.ids) for values in state))


@dataclass(frozen=True, eq=False)
class _Passes:
    """One wiring."""

    layers: Sequence[SimilarityLayer]
    op: CSR
    new: Tensor  # ids of the injected rows
    first: State  # what the first layer makes of every row by itself; injected ones are zero
    cosines: Tensor  # of all entries without an injected end
    near: Tensor  # positions of the others
    near_pattern: Pattern  # and these alone
    second: State  # what the second layer makes of every row by itself; rows that change hold anything
    changing: _Block  # rows that change behind the first layer
    live: Tensor  # positions in it of those with a gradient
    targets: _Block
    order: Tensor  # where each target stands in its block

    def __call__(self, features: Tensor) -> Tensor:
        state = _joined(self.first, self.new, by_row(self.layers[0].rows, (features,)))
        changed = sampled_product(self.near_pattern, state[0], state[0])
        cosines = self.cosines.index_copy(0, self.near, changed)
        weights, memory = self.layers[0].weigh(self.op, cosines, None)
        for position, layer in enumerate(self.layers[:-1]):
            following = self.layers[position + 1]
            if position == 0:
                state = self._second(self.changing.mix(layer, weights, state), following)
            else:
                state = following.rows((layer.mix(CSR(self.op.pattern, weights), state, state),))
            cosines = sampled_product(self.op.pattern, state[0], state[0])
            weights, memory = following.weigh(self.op, cosines, memory)
        return counted(self.targets.mix(self.layers[-1], weights, state)[self.order])

    def _second(self, out: Tensor, layer: SimilarityLayer) -> State:
        ids, state = self.changing.ids, self.second
        if len(self.live) < len(ids):
            with torch.no_grad():
                state = _joined(state, ids, by_row(layer.rows, (out.detach(),)))
        return _joined(state, ids[self.live], by_row(layer.rows, (out.index_select(0, self.live),)))


def similarity_forward(
    layers: Sequence[SimilarityLayer], op: CSR, clean: State, new: Tensor, targets: Tensor
) -> Callable[[Tensor], Tensor]:
    """A function from the features of injected nodes to the logits of the targets.

    Args:
        layers: The model.
        op: Of the graph with the injected nodes.
        clean: What the first layer's ``rows`` gives for the clean graph.
        new: Ids of the injected nodes, the last ones.
        targets: Ids, [t].
    """
    pattern, n = op.pattern, op.shape[0]
    injected = torch.zeros(n, dtype=torch.bool)
    injected[new] = True
    first = tuple(_longer(values, len(new)) for values in clean)
    inside = injected[pattern.row_ids.long()] | injected[pattern.indices.long()]
    near = inside.nonzero().flatten()
    starts = functional.pad(inside.cumsum(0, dtype=pattern.indptr.dtype), (1, 0)).index_select(0, pattern.indptr)
    changing = _Block.of(pattern, _reached(pattern, injected, layers[0].reach).nonzero().flatten())
    live = _reached(pattern, injected, layers[0].gradient_reach)
    ids, order = targets.unique(return_inverse=True)
    with torch.no_grad():
        cosines = sampled_product(pattern, first[0], first[0])
        second: State = ()
        if len(layers) > 1:
            weights, _ = layers[0].weigh(op, cosines, None)
            second = layers[1].rows((layers[0].mix(CSR(pattern, weights), first, first),))
    return _Passes(
        layers,
        op,
        new,
        first,
        cosines,
        near,
        Pattern(starts, pattern.indices.index_select(0, near), n),
        second,
        changing,
        live[changing.ids].nonzero().flatten(),
        _Block.of(pattern, ids),
        order,
    )


def by_row(step: Callable[[State], State], state: State) -> State:
    """A step on some rows with the bits that it has on many: products of fewer than four rows take another path."""
    rows = len(state[0])
    if rows >= FEWEST or rows == 0:
        return step(state)
    return tuple(values[:rows] for values in step(tuple(_longer(values, FEWEST - rows) for values in state)))


def _longer(values: Tensor, rows: int) -> Tensor:
    return torch.cat([values, values.new_zeros(rows, *values.shape[1:])])


def _joined(state: State, ids: Tensor, rows: State) -> State:
    return tuple(values.index_copy(0, ids, own) for values, own in zip(state, rows, strict=True))


def _reached(pattern: Pattern, rows: Tensor, steps: int) -> Tensor:
    """The rows within some steps, [n] booleans, in a symmetric pattern."""
    mask = rows.clone()
    for _ in range(steps):
        mask[pattern.rows(mask.nonzero().flatten())[0].indices.long()] = True
    return mask
