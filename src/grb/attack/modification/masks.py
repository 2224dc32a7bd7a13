"""Models that some pairs of nodes never reach, such as a GCN behind a filter of edges: exact gradients and outcomes."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from grb.graph import Adjacency, Graph
from grb.model.base import EdgeMask

if TYPE_CHECKING:
    from grb.attack.modification.gradient import Gradient

# up to this number of pairs of nodes, which of them are visible is looked up once
REMEMBERED = 2**25
# rows of pairs that are looked up together
ROWS = 256


@dataclass(frozen=True, eq=False)
class PairMask:
    """Which pairs of the nodes of one graph reach a model.

    Args:
        mask: What the model says about itself.
        graph: The clean graph, whose features decide.
    """

    mask: EdgeMask
    graph: Graph
    model: nn.Module = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "model", self.mask.model)

    def cut(self, adj: Adjacency) -> Adjacency:
        """The edges that the model sees."""
        return self.mask.cut(Graph(adj, self.graph.x)).adj

    def of(self, pairs: Tensor) -> Tensor:
        """Which pairs the model can see, [p] booleans from [2, p]."""
        if self._all is not None:
            return self._all[pairs[0], pairs[1]]
        return self.mask.visible(self.graph.x, pairs)

    def block(self, rows: Tensor, columns: Tensor) -> Tensor:
        """The same for the pairs of some nodes with others, [r, c]."""
        if self._all is not None:
            return self._all[rows][:, columns]
        return self.mask.visible_block(self.graph.x, rows, columns)

    @cached_property
    def _all(self) -> Tensor | None:
        """One bit for every pair of a small graph, [n, n]; None for others."""
        n = self.graph.n
        if n * n > REMEMBERED:
            return None
        nodes = torch.arange(n)
        parts = [self.mask.visible_block(self.graph.x, rows, nodes) for rows in nodes.split(ROWS)]
        return torch.cat(parts) if parts else torch.zeros(0, 0, dtype=torch.bool)


def mask_of(model: nn.Module, graph: Graph) -> PairMask | None:
    """The mask of a model that has one (``edge_mask()``), with the model behind it in evaluation mode; None for others."""
    method = getattr(model, "edge_mask", None)
    found = None if method is None else method()
    return None if found is None else PairMask(found, graph)


@dataclass(frozen=True, eq=False)
class MaskedGradient:
    """Gradients of pairs that the model can see; zero for all others."""

    gradient: Gradient
    mask: PairMask

    @property
    def loss(self) -> float:
        """The loss at the current graph."""
        return self.gradient.loss

    @property
    def kept(self) -> float:
        """Fraction of targets that keep their clean label."""
        return self.gradient.kept

    def of(self, pairs: Tensor) -> Tensor:
        """Gradients of undirected pairs, [p] from [2, p]."""
        return self.gradient.of(pairs) * self.mask.of(pairs)

    def block(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Gradients of the pairs of some nodes with others, [r, c]."""
        return self.gradient.block(rows, columns) * self.mask.block(rows, columns)
