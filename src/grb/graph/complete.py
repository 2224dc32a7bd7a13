"""The adjacency of complete graphs, which is known without being stored."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

from grb.errors import DataError
from grb.graph.adjacency import Adjacency
from grb.graph.operators import Complete
from grb.graph.sparse import Pattern

# entries that are written out at most when somebody insists on a pattern: half a gigabyte
LIMIT = 2**27


class CompleteAdjacency(Adjacency):
    """Every node joined with every other node of its graph, kept as the boundaries of the graphs alone.

    Models multiply by :func:`grb.graph.normalise.operator`, which needs sums per graph instead of edges. Whoever asks for
    ``pattern`` (attention, an edit) gets the edges written out, up to half a gigabyte of them.

    Args:
        ptr: First node of every graph and, last, n: [graphs + 1].

    >>> from grb.graph import normalise
    >>> adj = CompleteAdjacency(torch.tensor([0, 2, 5]))
    >>> adj.num_edges, adj.degrees.tolist()
    (4, [1, 1, 2, 2, 2])
    >>> (normalise.operator(adj, left=0.0, right=0.0, self_loops=False) @ torch.tensor([1.0, 2.0, 0.0, 1.0, 2.0])).tolist()
    [2.0, 1.0, 3.0, 2.0, 1.0]
    """

    ptr: Tensor

    def __init__(self, ptr: Tensor) -> None:
        object.__setattr__(self, "ptr", ptr.long())
        object.__setattr__(self, "values", None)
        object.__setattr__(self, "features", None)

    def separate(self, *, copy: bool = False) -> CompleteAdjacency:
        """A value of its own, without what is kept about this one; with ``copy`` it shares no array either."""
        return CompleteAdjacency(self.ptr.clone() if copy else self.ptr)

    @property
    def sizes(self) -> Tensor:
        """Nodes of every graph, [graphs]."""
        return self.ptr.diff()

    @property
    def n(self) -> int:
        """Number of nodes."""
        return int(self.ptr[-1])

    @property
    def num_edges(self) -> int:
        """Number of undirected edges."""
        return int((self.sizes * (self.sizes - 1)).sum()) // 2

    @property
    def device(self) -> torch.device:
        """Device of the boundaries."""
        return self.ptr.device

    @property
    def degrees(self) -> Tensor:
        """Degree of every node, [n]."""
        return torch.repeat_interleave(self.sizes - 1, self.sizes)

    @cached_property
    def pattern(self) -> Pattern:
        """The edges written out."""
        entries = 2 * self.num_edges
        if entries > LIMIT:
            raise DataError(
                f"a complete adjacency of {self.n} nodes has {entries} entries, of which at most {LIMIT} are written out; "
                "use a model that multiplies by grb.graph.normalise.operator, or smaller batches"
            )
        full = Complete(self.ptr, torch.ones(len(self.sizes))).rows(torch.arange(self.n, device=self.device)).pattern
        columns = full.indices[full.indices != full.row_ids]
        indptr = functional.pad(self.degrees.cumsum(0), (1, 0))
        return Pattern(indptr.int(), columns.int(), self.n, symmetric=True)

    def operator(self, exponent: float, *, self_loops: bool) -> Complete:
        r""":math:`\tilde D^{l} \tilde A \tilde D^{r}` with ``exponent`` :math:`l + r`: all degrees of a graph are equal."""
        sizes = self.sizes.to(torch.get_default_dtype())
        degrees = sizes if self_loops else sizes - 1
        positive = degrees > 0
        scale = torch.where(positive, torch.where(positive, degrees, 1.0) ** exponent, 0.0 if exponent else 1.0)
        return Complete(self.ptr, scale, 0.0 if self_loops else -scale)

    def crosses(self, owner: Tensor) -> bool:
        """Whether an edge joins nodes of two different owners."""
        own = torch.repeat_interleave(torch.arange(len(self.sizes), device=self.device), self.sizes)
        same = own[1:] == own[:-1]
        return bool((owner[1:] != owner[:-1])[same].any())

    def subgraph(self, nodes: Tensor) -> Adjacency:
        """Induced by ``nodes``; complete again where nodes of one graph stand together."""
        graphs = torch.searchsorted(self.ptr, nodes, right=True) - 1
        found, counts = torch.unique_consecutive(graphs, return_counts=True)
        if len(found) != len(found.unique()):
            return super().subgraph(nodes)
        return CompleteAdjacency(functional.pad(counts.cumsum(0), (1, 0)))

    def to(self, device: torch.device | str) -> CompleteAdjacency:
        """The same graphs on another device."""
        return CompleteAdjacency(self.ptr.to(device))
