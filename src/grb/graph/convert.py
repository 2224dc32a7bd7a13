"""To and from scipy, networkx and torch_geometric; the other libraries are imported when used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from grb.errors import DataError
from grb.graph.adjacency import Adjacency
from grb.graph.edge_features import with_edge_features
from grb.graph.edit import GraphEdit
from grb.graph.graph import Graph
from grb.graph.sparse import dense
from grb.graph.validate import Mode, adjacency_from_edges

if TYPE_CHECKING:
    import networkx
    from scipy.sparse import csr_matrix


def to_scipy(adj: Adjacency) -> csr_matrix:
    """A scipy CSR matrix of float32 with its own memory."""
    from scipy.sparse import csr_matrix

    pattern = adj.pattern.to("cpu")
    values = np.ones(pattern.entries, dtype=np.float32)
    if adj.values is not None:
        values = adj.values.detach().cpu().numpy().astype(np.float32)
    matrix = csr_matrix((values, pattern.indices.numpy().copy(), pattern.indptr.numpy().copy()), shape=pattern.shape)
    matrix.has_sorted_indices = True
    return matrix


def injection_from_rows(adj: Any, x: Any) -> GraphEdit:
    """The edit behind rows of injected nodes, the layout of submissions to KDD Cup 2020; O(edges) in memory.

    Weights other than one are refused: an edge of weight 1e10 is no edge but a number of the attacker's choice.

    Args:
        adj: Sparse matrix [m, n + m]: row i has the edges of injected node i with the n original and the m injected nodes.
        x: Features of the injected nodes, [m, d].
    """
    if not hasattr(adj, "tocoo") or adj.shape[1] < adj.shape[0]:
        raise DataError(
            f"adj is a {type(adj).__name__} of shape {getattr(adj, 'shape', None)}, but a sparse matrix with a row for every "
            "injected node and a column for every node is needed"
        )
    rows = adj.tocoo()
    m, n = rows.shape[0], rows.shape[1] - rows.shape[0]
    other = rows.data[rows.data != 1]
    if len(other):
        raise DataError(
            f"{len(other)} of {rows.nnz} injected edges have a weight other than 1 (largest: {np.abs(other).max():g}), but "
            "an injected edge has no weight; send edges of weight 1"
        )
    x = np.asarray(x)
    if x.ndim != 2 or x.dtype.kind not in "iufb":
        raise DataError(
            f"features of injected nodes have shape {list(x.shape)} and dtype {x.dtype}, but numbers [m, d] are needed"
        )
    pairs = np.stack([rows.row.astype(np.int64) + n, rows.col.astype(np.int64)])
    inside = pairs[1] >= n  # named by the rows of both ends
    among = np.unique(np.sort(pairs[:, inside], axis=0), axis=1)
    if len(pairs[0, inside]) != 2 * among.shape[1]:
        raise DataError("the block of edges among injected nodes is not symmetric, or has loops; name each edge twice")
    add = torch.from_numpy(np.concatenate([pairs[:, ~inside], among], axis=1))
    return GraphEdit(n, add, new_x=torch.from_numpy(x) if m else None)


def to_networkx(graph: Graph) -> networkx.Graph:
    """A networkx graph; features and labels become the node attributes ``x`` and ``y``."""
    import networkx

    result = networkx.Graph()
    x = _dense_rows(graph)
    for node in range(graph.n):
        attributes: dict[str, Any] = {"x": x[node]}
        if graph.y is not None and len(graph.y) == graph.n:
            attributes["y"] = graph.y[node].tolist()
        result.add_node(node, **attributes)
    edges = graph.adj.edges()
    if graph.adj.values is None:
        result.add_edges_from(edges.T.tolist())
    else:
        weights = graph.adj.values[torch.searchsorted(graph.adj.keys, edges[0] * graph.n + edges[1])]
        result.add_weighted_edges_from(zip(*edges.tolist(), weights.tolist(), strict=True))
    return result


def from_networkx(
    source: networkx.Graph, x: Any = None, y: Any = None, *, mode: Mode = "strict"
) -> tuple[Graph, list[str]]:
    """A graph with nodes in the order of ``source.nodes``.

    Args:
        source: An undirected networkx graph; a directed one needs ``mode="canonicalise"``.
        x: Features, [n, d]; without it the node attribute ``x`` is taken, and without that one constant feature.
        y: Labels, [n]; without it the node attribute ``y`` is taken where every node has it.
        mode: See :mod:`grb.graph.validate`.
    """
    ids = {node: position for position, node in enumerate(source.nodes)}
    n = len(ids)
    pairs = [(ids[u], ids[v]) for u, v in source.edges()]
    weights = [float(weight) for _, _, weight in source.edges(data="weight", default=1.0)]
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    loops = edges[0] == edges[1]
    if loops.any() and mode == "strict":
        raise DataError(f"the networkx graph has {int(loops.sum())} self-loops; use mode='canonicalise' to drop them")
    adj, notes = adjacency_from_edges(edges, n, values=np.array(weights), mode=mode, directed=source.is_directed())
    return Graph.build(adj, _attribute(source, "x", x, n), _attribute(source, "y", y, n))[0], notes


def _attribute(source: networkx.Graph, name: str, given: Any, n: int) -> Any:
    if given is not None:
        return given
    stored = [data[name] for _, data in source.nodes(data=True) if name in data]
    if len(stored) == n and n:
        return np.asarray(stored)
    return np.ones((n, 1), dtype=np.float32) if name == "x" else None


def to_pyg(graph: Graph) -> Any:
    """A ``torch_geometric.data.Data`` with both directions of every edge."""
    from torch_geometric.data import Data

    pattern = graph.adj.pattern
    edge_index = torch.stack([pattern.row_ids.long(), pattern.indices.long()])
    data = Data(x=_dense_rows(graph, as_numpy=False), edge_index=edge_index, y=graph.y, num_nodes=graph.n)
    if graph.adj.values is not None:
        data.edge_weight = graph.adj.values
    if graph.adj.features is not None:
        data.edge_attr = graph.adj.features
    return data


def from_pyg(data: Any, *, mode: Mode = "strict") -> tuple[Graph, list[str]]:
    """A graph from a ``torch_geometric.data.Data`` (``x``, ``edge_index``, ``y``, ``edge_weight``, ``edge_attr``)."""
    if getattr(data, "edge_index", None) is None:
        raise DataError(f"a {type(data).__name__} without edge_index was given, but a PyG Data with one is needed")
    n = int(data.num_nodes)
    weight = getattr(data, "edge_weight", None)
    edge_index = data.edge_index.detach().cpu().numpy()
    adj, notes = adjacency_from_edges(edge_index, n, values=weight, mode=mode, directed=True)
    if getattr(data, "edge_attr", None) is not None:
        adj, decided = with_edge_features(adj, edge_index, data.edge_attr)
        notes = [*notes, *decided]
    x: Any = data.x if getattr(data, "x", None) is not None else np.ones((n, 1), dtype=np.float32)
    y = getattr(data, "y", None)
    if y is not None and y.dim() == 2 and y.shape[1] == 1:
        y = y.squeeze(1)
    return Graph.build(adj, x.to_dense() if getattr(x, "is_sparse", False) else x, y)[0], notes


def _dense_rows(graph: Graph, *, as_numpy: bool = True) -> Any:
    x = dense(graph.x)
    return x.detach().cpu().numpy() if as_numpy else x
