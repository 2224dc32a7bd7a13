"""Batches of a collection: some of its graphs as one block-diagonal graph, cut out of an operator that was made once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from grb.errors import DataError
from grb.graph import CSR, Graph, Pattern
from grb.graph.operators import Complete, FeaturedEdges


@dataclass(frozen=True, eq=False)
class Batch:
    """What one forward pass needs.

    Args:
        x: Features of the batch's nodes.
        op: Operator over them.
        y: Labels of its nodes or graphs.
        ptr: Boundaries of its graphs; None for a single graph.
        rows: Ids of the nodes that have the labels; None for all.
    """

    x: Tensor | CSR
    op: Any
    y: Tensor
    ptr: Tensor | None = None
    rows: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Collection:
    """A collection of graphs with its operator, ready to be cut into batches."""

    graph: Graph
    op: Any
    ptr: Tensor
    labels: Tensor
    per_graph: bool

    @classmethod
    def of(cls, graph: Graph, op: Any) -> Collection:
        """A labelled collection and its prepared operator."""
        if graph.ptr is None or graph.y is None:
            raise DataError("batches are made of labelled collections; this is a single graph or has no labels")
        return cls(graph, op, graph.ptr, graph.y, len(graph.y) == graph.num_graphs)

    def batch(self, ids: Tensor) -> Batch:
        """The graphs ``ids`` in that order, as one block-diagonal graph."""
        sizes = self.ptr[ids + 1] - self.ptr[ids]
        ptr = functional.pad(sizes.cumsum(0), (1, 0))
        total = int(ptr[-1])
        shift = torch.repeat_interleave(self.ptr[ids] - ptr[:-1], sizes, output_size=total)
        nodes = torch.arange(total) + shift
        x = self.graph.x[nodes] if isinstance(self.graph.x, Tensor) else self.graph.x.rows(nodes)
        return Batch(x, _cut(self.op, ids, nodes, shift, ptr), self.labels[ids if self.per_graph else nodes], ptr)

    def batches(self, ids: Tensor, size: int) -> Iterator[Batch]:
        """The graphs ``ids``, ``size`` at a time."""
        for part in ids.split(size):
            yield self.batch(part)


def _cut(op: Any, ids: Tensor, nodes: Tensor, shift: Tensor, ptr: Tensor) -> Any:
    """The block of an operator that belongs to some graphs; graphs are separate, so no entry leaves it."""
    if isinstance(op, Complete):
        own = op.own[ids] if isinstance(op.own, Tensor) else op.own
        return Complete(ptr, op.scale[ids], own)
    if isinstance(op, (CSR, FeaturedEdges)):
        block, positions = op.pattern.rows(nodes)
        moved = torch.repeat_interleave(shift, block.counts, output_size=block.entries)
        indices = block.indices - moved.to(block.indices.dtype)
        pattern = Pattern(block.indptr, indices, len(nodes), op.pattern.symmetric)
        if isinstance(op, FeaturedEdges):
            return FeaturedEdges(pattern, None if op.features is None else op.features[positions])
        return CSR(pattern, None if op.values is None else op.values[positions], op.symmetric)
    raise DataError(
        f"a {type(op).__name__} cannot be cut into batches; prepare(adj) must give a CSR, Complete or FeaturedEdges operator"
    )
