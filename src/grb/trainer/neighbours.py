"""Mini-batches of a single graph by neighbour sampling, for graphs that do not fit a full forward pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from grb.dataset.splits import Split
from grb.errors import DataError
from grb.graph import Adjacency, CompleteAdjacency, Graph, Pattern
from grb.model.base import evaluating
from grb.model.profiling import ProfilingGNN
from grb.trainer.batches import Batch

# the neighbourhoods of an evaluation are the same in every epoch, so that epochs can be compared
EVALUATION_SEED = 0


class SampledNodes:
    r"""Batches of nodes, each with a sampled neighbourhood of as many hops as the model has convolutions.

    From every node of the last hop at most ``neighbours`` of its neighbours are drawn, and the model computes on the edges that
    the nodes so found have among each other: memory is that of a batch,
    :math:`O(b\, k^{L})` at most, whatever the size of the graph. Degrees are those of the sampled graph.

    Args:
        model: The profiling model.
        graph: A single labelled graph.
        split: Ids of nodes.
        batch: Nodes per batch.
        neighbours: Neighbours :math:`k` drawn per node and hop.

    Differs from GraphSAGE, which computes along the drawn edges alone: here all edges among the drawn nodes count, so that
    every convolution gets an undirected graph (as in ShaDow-GNN).

    References:
        Hamilton, Ying and Leskovec, *Inductive Representation Learning on Large Graphs*, NeurIPS 2017.
        Zeng et al., *Decoupling the Depth and Scope of Graph Neural Networks*, NeurIPS 2021.
    """

    def __init__(self, model: ProfilingGNN, graph: Graph, split: Split, batch: int, neighbours: int) -> None:
        if graph.ptr is not None:
            raise DataError("neighbours are sampled in a single graph; a collection has batches of whole graphs")
        if isinstance(graph.adj, CompleteAdjacency):
            raise DataError("neighbours are not sampled in complete graphs; leave out FullyConn or neighbours")
        assert graph.y is not None
        self.model, self.graph, self.labels = model, graph, graph.y
        self.size, self.neighbours, self.hops = batch, neighbours, len(model.convs)
        self.ids = {"train": split.train, "val": split.val, "test": split.test["full"]}
        self._new_id = torch.full((graph.n,), -1, dtype=torch.int64)

    def training(self, generator: torch.Generator) -> Iterator[Batch]:
        """The batches of one epoch, in a new order and with new neighbourhoods."""
        order = self.ids["train"][torch.randperm(len(self.ids["train"]), generator=generator)]
        for seeds in order.split(self.size):
            yield self.batch(seeds, generator)

    def evaluated(self, part: str) -> tuple[Tensor, Tensor]:
        """Logits and labels of ``val`` or ``test``, batch by batch."""
        generator = torch.Generator().manual_seed(EVALUATION_SEED)
        logits = []
        with evaluating(self.model):
            for seeds in self.ids[part].split(self.size):
                batch = self.batch(seeds, generator)
                logits.append(self.model(batch.x, batch.op)[batch.rows])
        return torch.cat(logits), self.labels[self.ids[part]]

    def batch(self, seeds: Tensor, generator: torch.Generator) -> Batch:
        """Some nodes with their sampled surroundings."""
        nodes = sampled_nodes(self.graph.adj, seeds, self.neighbours, self.hops, generator)
        x = self.graph.x[nodes] if isinstance(self.graph.x, Tensor) else self.graph.x.rows(nodes)
        rows = torch.searchsorted(nodes, seeds)
        op: Any = self.model.prepare(induced(self.graph.adj, nodes, self._new_id))
        return Batch(x, op, self.labels[seeds], rows=rows)


def sampled_nodes(adj: Adjacency, seeds: Tensor, neighbours: int, hops: int, generator: torch.Generator) -> Tensor:
    """Ascending ids of some nodes and of what is found from them by drawing neighbours, hop by hop.

    Args:
        adj: The edges.
        seeds: Distinct ids to start from.
        neighbours: Neighbours drawn per node, with repetition where it has more.
        hops: Number of hops.
        generator: Draws them.
    """
    found = frontier = seeds.unique()
    for _ in range(hops):
        if not len(frontier):
            break
        new = _drawn(adj.pattern, frontier, neighbours, generator).unique()
        at = torch.searchsorted(found, new).clamp(max=len(found) - 1)
        frontier = new[found[at] != new]
        found = torch.cat([found, frontier]).sort().values
    return found


def _drawn(pattern: Pattern, nodes: Tensor, neighbours: int, generator: torch.Generator) -> Tensor:
    """Neighbours of nodes: all where there are few, else draws with repetition."""
    few = pattern.counts[nodes] <= neighbours
    every = pattern.rows(nodes[few])[0].indices.long()
    many = nodes[~few]
    starts, counts = pattern.indptr[many].long(), pattern.counts[many].long()
    drawn = (torch.rand(len(many), neighbours, generator=generator, dtype=torch.float64) * counts.unsqueeze(1)).long()
    return torch.cat([every, pattern.indices[(starts.unsqueeze(1) + drawn).flatten()].long()])


def induced(adj: Adjacency, nodes: Tensor, new_id: Tensor) -> Adjacency:
    """The edges among ascending nodes, renumbered; takes time in their degrees and not in the size of the graph.

    Args:
        adj: The edges of the whole graph.
        nodes: Ascending distinct ids.
        new_id: A tensor of -1, [n]; it is so again afterwards.
    """
    block, positions = adj.pattern.rows(nodes)
    new_id[nodes] = torch.arange(len(nodes))
    columns = new_id[block.indices.long()]
    new_id[nodes] = -1
    keep = columns >= 0
    ends = functional.pad(keep.cumsum(0, dtype=block.indptr.dtype), (1, 0))
    pattern = Pattern(
        ends[block.indptr.long()], columns[keep].to(block.indices.dtype), len(nodes), symmetric=adj.pattern.symmetric
    )
    return Adjacency(pattern, *adj.carried(positions[keep]))
