"""A graph, or a collection of graphs, as one frozen value."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from grb.errors import DataError
from grb.graph.adjacency import Adjacency
from grb.graph.complete import CompleteAdjacency
from grb.graph.sparse import CSR, Pattern
from grb.graph.validate import Mode, adjacency_from_csr, check_features, check_ids, check_labels, check_ptr

if TYPE_CHECKING:
    from grb.graph.edit import GraphEdit


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes with features, labels and undirected edges.

    Args:
        adj: The edges.
        x: Features, [n, d]; dense, or a sparse matrix.
        y: Labels: classes [n] (-1 is hidden), a 0/1 matrix [n, labels], or one row per graph of a collection; or None.
        ptr: First node of every graph of a collection and, last, n: [graphs + 1]; None for a single graph.
    """

    adj: Adjacency
    x: Tensor | CSR
    y: Tensor | None = None
    ptr: Tensor | None = None

    def __post_init__(self) -> None:
        if self.x.shape[0] != self.adj.n:
            raise DataError(f"features have {self.x.shape[0]} rows, but the graph has {self.adj.n} nodes")
        if self.y is not None and len(self.y) not in (self.adj.n, self.num_graphs):
            raise DataError(f"there are {len(self.y)} labels, but {self.adj.n} nodes and {self.num_graphs} graphs")

    @classmethod
    def build(
        cls, adj: Any, x: Any, y: Any = None, *, ptr: Any = None, mode: Mode = "strict"
    ) -> tuple[Graph, list[str]]:
        """A checked graph from a scipy matrix (or Adjacency) and arrays, and notes on what was repaired."""
        notes: list[str] = []
        if not isinstance(adj, Adjacency):
            if not hasattr(adj, "tocsr"):
                raise DataError(f"adj is a {type(adj).__name__}, but a scipy sparse matrix or an Adjacency is needed")
            csr = adj.tocsr()
            adj, notes = adjacency_from_csr(csr.indptr, csr.indices, csr.data, csr.shape, mode=mode)
        bounds = None if ptr is None else check_ptr(ptr, adj.n)
        graphs = adj.n if bounds is None else len(bounds) - 1
        labels = None
        if y is not None:
            labels = check_labels(y, graphs if bounds is not None and len(y) == graphs else adj.n)
        graph = cls(adj, x if isinstance(x, CSR) else check_features(x, adj.n), labels, bounds)
        graph._check_boundaries()
        return graph, notes

    def _check_boundaries(self) -> None:
        if self.ptr is not None and self.adj.crosses(self.owner):
            raise DataError("an edge joins two graphs of the collection, but graphs of a collection are separate")

    @property
    def n(self) -> int:
        """Number of nodes."""
        return self.adj.n

    @property
    def num_edges(self) -> int:
        """Number of undirected edges."""
        return self.adj.num_edges

    @property
    def num_features(self) -> int:
        """Number of features per node."""
        return int(self.x.shape[1])

    @property
    def num_edge_features(self) -> int:
        """Number of features per edge; 0 where edges have none."""
        return self.adj.num_edge_features

    @property
    def num_graphs(self) -> int:
        """Number of graphs in a collection; 1 for a single graph."""
        return 1 if self.ptr is None else len(self.ptr) - 1

    @property
    def owner(self) -> Tensor:
        """The graph of the collection that each node belongs to, [n]."""
        if self.ptr is None:
            return torch.zeros(self.n, dtype=torch.int64)
        return torch.repeat_interleave(torch.arange(self.num_graphs), self.ptr.diff())

    def apply(self, edit: GraphEdit) -> Graph:
        """The edited graph; this one stays as it is. Refuses an edit that does not fit."""
        return edit.applied_to(self)

    def subgraph(self, nodes: Tensor) -> Graph:
        """Induced by distinct ``nodes``, renumbered in the order given. Not for collections: use :meth:`graphs`."""
        if self.ptr is not None:
            raise DataError("a collection has no subgraph by nodes; take whole graphs with graphs(first, last)")
        nodes = check_ids(nodes, self.n, "a subgraph").to(self.adj.device)
        y = None if self.y is None else self.y[nodes]
        return Graph(self.adj.subgraph(nodes), _rows(self.x, nodes), y)

    def graphs(self, first: int, last: int) -> Graph:
        """Graphs first..last-1 of a collection, as a collection."""
        ptr = torch.tensor([0, self.n]) if self.ptr is None else self.ptr
        if not 0 <= first < last < len(ptr):
            raise DataError(f"graphs {first}..{last} were asked for, but the collection has {len(ptr) - 1}")
        start, stop = int(ptr[first]), int(ptr[last])
        nodes = torch.arange(start, stop)
        y = self.y
        if y is not None:
            y = y[start:stop] if len(y) == self.n and self.n != self.num_graphs else y[first:last]
        return Graph(self.adj.subgraph(nodes), _rows(self.x, nodes), y, ptr[first : last + 1] - start)

    def select(self, ids: Tensor) -> Graph:
        """The graphs ``ids`` of a collection in that order, as a collection."""
        if self.ptr is None:
            raise DataError("this is a single graph, but graphs are selected from a collection; use subgraph(nodes)")
        ids = check_ids(ids, self.num_graphs, "a selection of graphs")
        sizes = self.ptr.diff()[ids]
        ptr = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
        nodes = torch.arange(int(ptr[-1])) + torch.repeat_interleave(self.ptr[ids] - ptr[:-1], sizes)
        y = self.y
        if y is not None:
            y = y[nodes] if len(y) == self.n and self.n != self.num_graphs else y[ids]
        return Graph(self.adj.subgraph(nodes), _rows(self.x, nodes), y, ptr)

    def with_features(self, x: Tensor | CSR) -> Graph:
        """The same graph with other features."""
        return replace(self, x=x)

    def separate(self, *, copy: bool = False) -> Graph:
        """The same graph as a value of its own: nothing that is kept about this one, such as its degrees, is shared.

        Args:
            copy: Share no array either.
        """

        def own(part: Tensor | None) -> Tensor | None:
            return part.detach().clone() if copy and part is not None else part

        x = self.x.separate(copy=copy) if isinstance(self.x, CSR) else own(self.x)
        assert x is not None
        return Graph(self.adj.separate(copy=copy), x, own(self.y), own(self.ptr))

    def to(self, device: torch.device | str) -> Graph:
        """The same graph on another device."""
        y = None if self.y is None else self.y.to(device)
        return Graph(self.adj.to(device), self.x.to(device), y, self.ptr)

    def fingerprint(self) -> str:
        """sha256 of edges, weights, all features, labels and boundaries; the same on any machine."""
        digest = hashlib.sha256(b"grb-graph-1")
        x = self.x
        features = [x] if isinstance(x, Tensor) else [torch.tensor(x.shape), *_csr_arrays(x.pattern, x.values)]
        for tensor in [*_edge_arrays(self.adj), *features, self.y, self.ptr]:
            digest.update(_bytes(tensor))
        if self.adj.features is not None:
            digest.update(b"edges;" + _bytes(self.adj.features))
        return digest.hexdigest()

    def __repr__(self) -> str:
        many = "" if self.ptr is None else f", graphs={self.num_graphs}"
        return f"Graph(nodes={self.n}, edges={self.num_edges}, features={self.num_features}{many})"


def in_blocks(adj: Adjacency, x: Tensor | CSR, y: Tensor | None, owner: Tensor, graphs: int) -> Graph:
    """A collection of nodes in any order, moved to their graphs; those of one graph keep their order.

    Args:
        adj: [n, n].
        x: [n, d].
        y: Labels of nodes or of graphs.
        owner: The graph of each node, [n].
        graphs: How many there are.
    """
    order = torch.argsort(owner, stable=True)
    ptr = functional.pad(torch.bincount(owner, minlength=graphs).cumsum(0), (1, 0))
    if y is not None and len(y) == adj.n != graphs:
        y = y[order]
    return Graph(adj.subgraph(order), _rows(x, order), y, ptr)


def _rows(x: Tensor | CSR, nodes: Tensor) -> Tensor | CSR:
    return x[nodes] if isinstance(x, Tensor) else x.rows(nodes)


def _edge_arrays(adj: Adjacency) -> list[Tensor | None]:
    """What the edges are known by; complete graphs by their boundaries, marked so that no CSR has the same bytes."""
    if isinstance(adj, CompleteAdjacency):
        return [torch.tensor([-1]), adj.ptr]
    return _csr_arrays(adj.pattern, adj.values)


def _csr_arrays(pattern: Pattern, values: Tensor | None) -> list[Tensor | None]:
    """Arrays that are equal for equal matrices: weights that are all one count as none."""
    return [pattern.indptr, pattern.indices, None if values is None or bool((values == 1).all()) else values]


def _bytes(tensor: Tensor | None) -> bytes:
    if tensor is None:
        return b"none;"
    array = tensor.detach().cpu().numpy()
    # + 0.0, because -0.0 equals 0.0 but has other bytes
    wide = array.astype("<i8") if array.dtype.kind in "iu" else (array + 0.0).astype(array.dtype.newbyteorder("<"))
    return f"{wide.dtype.str}{wide.shape};".encode() + np.ascontiguousarray(wide).tobytes()
