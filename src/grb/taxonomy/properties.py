"""The nine classical graph properties of Table D.1, for all graphs of a collection at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grb.errors import DataError
from grb.taxonomy.reference import PROPERTIES

if TYPE_CHECKING:
    from grb.graph import Graph

Ints = NDArray[np.int64]
Array = NDArray[np.float64]

# entries that one vectorised step works on at once: bounds memory to some hundred megabytes
CHUNK = 4_000_000
WORD = 64


def graph_properties(graph: Graph) -> dict[str, Array]:
    """Nodes, edges, density, connectivity, diameter, largest clique, centrality, clustering and triangles of every graph.

    - ``density`` is the fraction of pairs that are edges; ``centrality`` the mean degree centrality, which is the same number.
    - ``connectivity`` is White and Newman's lower bound on the number of nodes whose removal disconnects the graph, as networkx
      approximates it: 0 if it is disconnected.
    - ``diameter`` is the longest shortest path; **a disconnected graph counts 1**, as in the paper's table.
    - ``max_clique`` is the size of the largest clique that a greedy search finds from every node.
    - ``clustering`` is the mean over nodes of the fraction of pairs of neighbours that are joined; 0 for fewer than two.
    - ``triangles`` are counted once each.

    Args:
        graph: A collection (with ``ptr``), or a single graph.

    Returns:
        An array [graphs] for each of :data:`grb.taxonomy.PROPERTIES`.

    References:
        Liu et al., *Taxonomy of Benchmarks in Graph Representation Learning*, LoG 2022, Appendix D.
        White and Newman, *Fast Approximation Algorithms for Finding Node-Independent Paths in Networks*, 2001.
        Pattabiraman et al., *Fast Algorithms for the Maximum Clique Problem on Massive Graphs*, 2015.
    """
    pattern = graph.adj.pattern.to("cpu")
    indptr, indices = pattern.indptr.numpy().astype(np.int64), pattern.indices.numpy().astype(np.int64)
    ptr = np.array([0, graph.n]) if graph.ptr is None else graph.ptr.cpu().numpy().astype(np.int64)
    sizes = np.diff(ptr)
    if len(sizes) == 0 or (sizes == 0).any():
        raise DataError("a graph without nodes has no properties; leave it out")
    degrees = np.diff(indptr)
    edges = _per_graph(degrees, ptr) / 2
    pairs = sizes * (sizes - 1) / 2
    density = np.divide(edges, pairs, out=np.zeros(len(sizes)), where=pairs > 0)
    triangles = node_triangles(indptr, indices)
    wedges = degrees * (degrees - 1) / 2
    clustering = np.divide(triangles, wedges, out=np.zeros(len(degrees)), where=wedges > 0)
    connected = _connected(indptr, indices, ptr)
    counted = _per_graph(triangles, ptr) / 3
    return {
        "nodes": sizes.astype(np.float64),
        "edges": edges,
        "density": density,
        "connectivity": _connectivity(indptr, indices, ptr, connected),
        "diameter": np.where(connected, _diameters(indptr, indices, ptr, connected), 1.0),
        "max_clique": _cliques(indptr, indices, ptr, edges, counted),
        "centrality": np.where(sizes > 1, density, 1.0),  # networkx: a lone node has centrality 1
        "clustering": _per_graph(clustering, ptr) / sizes,
        "triangles": counted,
    }


def class_properties(graph: Graph) -> dict[int, dict[str, float]]:
    """Mean properties of the graphs of every class, classes ascending: the rows of Table D.1 for one dataset.

    Args:
        graph: A collection whose ``y`` has one class per graph.
    """
    if graph.ptr is None or graph.y is None or graph.y.dim() != 1 or len(graph.y) != graph.num_graphs:
        raise DataError("class properties need a collection of graphs with one class per graph")
    found = graph_properties(graph)
    labels = graph.y.cpu().numpy()
    return {
        int(label): {name: float(found[name][labels == label].mean()) for name in PROPERTIES}
        for label in np.unique(labels)
    }


def _per_graph(values: NDArray[Any], ptr: Ints) -> Array:
    """Sums over the nodes of every graph."""
    return np.asarray(np.add.reduceat(values.astype(np.float64), ptr[:-1]))


def _connected(indptr: Ints, indices: Ints, ptr: Ints) -> NDArray[np.bool_]:
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    n = len(indptr) - 1
    matrix = csr_matrix((np.ones(len(indices), dtype=np.int8), indices, indptr), shape=(n, n))
    _, labels = connected_components(matrix, directed=False)
    # a graph is connected if all its nodes have the label of its first node
    first = np.repeat(labels[ptr[:-1]], np.diff(ptr))
    return np.asarray(np.logical_and.reduceat(labels == first, ptr[:-1]))


def node_triangles(indptr: Ints, indices: Ints) -> Ints:
    r"""Triangles through every node, [n].

    Edges point from the node of lower degree to that of higher; a triangle is then a pair of edges out of one node
    whose ends are joined, and there are at most :math:`O(m^{3/2})` such pairs.
    """
    n = len(indptr) - 1
    degrees = np.diff(indptr)
    rank = np.empty(n, dtype=np.int64)
    rank[np.lexsort((np.arange(n), degrees))] = np.arange(n)
    row, column = rank[np.repeat(np.arange(n), degrees)], rank[indices]
    up = row < column
    keys = np.sort(row[up] * n + column[up])
    tails, heads = keys // n, keys % n
    # edge e is paired with the edges behind it that leave the same node
    ends = np.searchsorted(tails, np.arange(n), side="right")
    partners = ends[tails] - np.arange(len(keys)) - 1
    found = np.zeros(n, dtype=np.int64)
    for start, stop in _chunks(partners):
        first = np.repeat(np.arange(start, stop), partners[start:stop])
        offsets = np.arange(len(first)) - np.repeat(
            np.cumsum(partners[start:stop]) - partners[start:stop], partners[start:stop]
        )
        second = first + 1 + offsets
        wanted = heads[first] * n + heads[second]
        index = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        closed = keys[index] == wanted
        for corner in (tails[first], heads[first], heads[second]):
            found += np.bincount(corner[closed], minlength=n)
    return np.asarray(found[rank])


def _chunks(work: Ints) -> list[tuple[int, int]]:
    """Consecutive ranges with about CHUNK units of work each."""
    total = np.cumsum(work)
    if not len(total) or not total[-1]:
        return []
    bounds = np.unique(np.searchsorted(total, np.arange(0, total[-1], CHUNK), side="left"))
    return list(zip(bounds.tolist(), [*bounds[1:].tolist(), len(work)]))


def _diameters(indptr: Ints, indices: Ints, ptr: Ints, connected: NDArray[np.bool_]) -> Array:
    """Longest shortest path of every connected graph by breadth-first search from 64 sources at a time, one per bit."""
    sizes = np.diff(ptr)
    found = np.zeros(len(sizes))
    entries = np.add.reduceat(np.diff(indptr), ptr[:-1]) + sizes
    # graphs of like size together, so that few of the bits are idle
    order = np.argsort(sizes, kind="stable")
    order = order[connected[order]]
    start = 0
    while start < len(order):
        stop, total = start, 0
        least = -(-int(sizes[order[start]]) // WORD)
        while stop < len(order):
            words = -(-int(sizes[order[stop]]) // WORD)
            total += int(entries[order[stop]])
            # a graph far larger than the first would leave most bits of the others idle
            if stop > start and (total * words > CHUNK or words > 2 * least):
                break
            stop += 1
        chosen = order[start:stop]
        found[chosen] = _longest_paths(*_subset(indptr, indices, ptr, chosen))
        start = stop
    return found


def _subset(indptr: Ints, indices: Ints, ptr: Ints, chosen: Ints) -> tuple[Ints, Ints, Ints]:
    """Rows, columns and boundaries of some graphs of a collection, every node joined with itself too."""
    sizes = np.diff(ptr)[chosen]
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    nodes = np.arange(bounds[-1]) + np.repeat(ptr[chosen] - bounds[:-1], sizes)
    degrees = np.diff(indptr)[nodes] + 1
    rows = np.concatenate([[0], np.cumsum(degrees)])
    index = np.arange(rows[-1]) - np.repeat(rows[:-1], degrees)
    shift = np.repeat(np.repeat(ptr[chosen] - bounds[:-1], sizes), degrees)
    source = np.repeat(indptr[nodes], degrees) + index - 1
    own = np.repeat(np.arange(len(nodes)), degrees)
    columns = np.where(index == 0, own, indices[np.maximum(source, 0)] - shift) if len(indices) else own
    return rows[:-1], columns, bounds


def _longest_paths(rows: Ints, columns: Ints, bounds: Ints) -> Array:
    sizes = np.diff(bounds)
    longest = np.zeros(len(sizes))
    local = np.arange(bounds[-1]) - np.repeat(bounds[:-1], sizes)
    graph = np.repeat(np.arange(len(sizes)), sizes)
    words = -(-int(sizes.max()) // WORD)
    # a graph with very many nodes is searched from some of its sources at a time
    width = max(1, min(words, CHUNK // max(len(columns), 1)))
    for first in range(0, words, width):
        block = min(width, words - first)
        reached = np.zeros((len(local), block), dtype=np.uint64)
        word = local // WORD - first
        inside = (word >= 0) & (word < block)
        bits = np.left_shift(np.uint64(1), (local[inside] % WORD).astype(np.uint64))
        reached[np.flatnonzero(inside), word[inside]] = bits
        step = 0
        while True:
            spread = np.bitwise_or.reduceat(reached[columns], rows, axis=0)
            moved = (spread != reached).any(1)
            if not moved.any():
                break
            step += 1
            growing = np.unique(graph[moved])
            longest[growing] = np.maximum(longest[growing], step)
            reached = spread
    return longest


def _connectivity(indptr: Ints, indices: Ints, ptr: Ints, connected: NDArray[np.bool_]) -> Array:
    """White and Newman's bound; only graphs without a cut node need the search."""
    import networkx
    from networkx.algorithms.approximation import node_connectivity

    lowest = np.minimum.reduceat(np.diff(indptr), ptr[:-1])
    found = np.where(connected, np.minimum(lowest, 1), 0).astype(np.float64)
    for index in np.flatnonzero(connected & (lowest > 1)):
        own = networkx.Graph()
        neighbours = _neighbours(indptr, indices, ptr, int(index))
        own.add_nodes_from(range(len(neighbours)))
        own.add_edges_from((u, v) for u, row in enumerate(neighbours) for v in row)
        if networkx.is_biconnected(own):
            found[index] = node_connectivity(own)
    return found


def _neighbours(indptr: Ints, indices: Ints, ptr: Ints, index: int) -> list[list[int]]:
    first, last = int(ptr[index]), int(ptr[index + 1])
    bounds = indptr[first : last + 1]
    local = (indices[bounds[0] : bounds[-1]] - first).tolist()
    ends = (bounds - bounds[0]).tolist()
    return [local[low:high] for low, high in zip(ends, ends[1:])]


def _cliques(indptr: Ints, indices: Ints, ptr: Ints, edges: Array, triangles: Array) -> Array:
    """Largest clique that a greedy search finds; 2 without triangles, 1 without edges."""
    found = np.where(edges > 0, 2.0, 1.0)
    for index in np.flatnonzero(triangles):
        found[index] = greedy_clique(_neighbours(indptr, indices, ptr, int(index)))
    return found


def greedy_clique(neighbours: list[list[int]]) -> int:
    """Size of the largest clique among those grown from every node by taking the neighbour of highest degree again and again.

    Nodes are numbered by falling degree and sets are integers, so that the next node is the lowest bit.
    """
    order = sorted(range(len(neighbours)), key=lambda node: (-len(neighbours[node]), node))
    rank = {node: index for index, node in enumerate(order)}
    near = [0] * len(order)
    for node, row in enumerate(neighbours):
        bits = 0
        for other in row:
            bits |= 1 << rank[other]
        near[rank[node]] = bits
    best = 0
    for index, node in enumerate(order):
        if len(neighbours[node]) < best:
            break  # neither this node nor a later one has enough neighbours for a larger clique
        candidates, size = near[index], 1
        while candidates:
            lowest = candidates & -candidates
            candidates &= near[lowest.bit_length() - 1]
            size += 1
        best = max(best, size)
    return best
