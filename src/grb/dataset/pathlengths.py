"""Small-world and scale-free graphs from arrays of edges: features, and average path lengths as labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from grb.dataset.raw_arrays import Array, RawArrays
from grb.errors import DataError
from grb.graph.files import read_npz

DAMPING = 0.85


def read(path: Path, name: str, bins: int) -> RawArrays:
    """A collection from ``edges`` [m, 2], ``edge_ptr`` [graphs + 1] and ``num_nodes`` [graphs].

    Features are the clustering coefficient and PageRank of a node; the label of a graph is the bin of its average path
    length, all bins being equally full.
    """
    stored = read_npz(path, required=["edges", "edge_ptr", "num_nodes"])
    sizes, bounds = stored["num_nodes"].astype(np.int64), stored["edge_ptr"].astype(np.int64)
    edges = stored["edges"].astype(np.int64).T
    if len(bounds) != len(sizes) + 1 or edges.shape != (2, bounds[-1]) or np.diff(bounds).min() < 0:
        raise DataError(f"the arrays of {path} do not fit each other; get it again")
    owner = np.repeat(np.arange(len(sizes)), np.diff(bounds))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    if edges.min() < 0 or (edges >= sizes[owner]).any():
        raise DataError(f"{path} has an edge to a node that its graph does not have; get it again")
    edges = edges + starts[owner]
    both = np.concatenate([edges, edges[::-1]], axis=1)
    adj = _matrix(both, int(starts[-1]))
    graph_of = np.repeat(np.arange(len(sizes)), sizes)
    features = np.stack([clustering(adj), pagerank(adj, graph_of)], axis=1)
    lengths = np.array([path_length(adj[a:b, a:b]) for a, b in zip(starts[:-1], starts[1:], strict=True)])
    notes = [f"labels are {bins} equally full bins of the average path length"]
    y = quantile_bins(lengths, bins)
    return RawArrays(name, int(starts[-1]), both, y, x=features, sizes=sizes, notes=notes)


def quantile_bins(values: Array, bins: int, *, fitted_on: Array | None = None) -> Array:
    """Turn regression into classification: the bin of every value, with equally full bins, [n].

    Args:
        values: Values to bin, [n].
        bins: Number of bins.
        fitted_on: Ids of the values that the bounds come from, such as the training ones; all if not given.

    >>> quantile_bins(np.array([3.0, 1.0, 2.0, 9.0]), 2).tolist()
    [1, 0, 0, 1]
    """
    values = np.asarray(values, dtype=np.float64)
    seen = values if fitted_on is None else values[fitted_on]
    if bins < 2 or len(seen) < bins or not np.isfinite(values).all():
        raise DataError(f"{len(seen)} values cannot fill {bins} bins; 2 or more bins and finite values are needed")
    # bounds are values that occur and belong to the lower bin, so that equal values share one bin
    bounds = np.quantile(seen, np.arange(1, bins) / bins, method="inverted_cdf")
    return np.searchsorted(bounds, values, side="left").astype(np.int64)


def clustering(adj: Any) -> Array:
    r"""Clustering coefficient of every node, [n]: closed pairs of neighbours over all pairs, 0 below two neighbours.

    References:
        Watts and Strogatz, *Collective dynamics of 'small-world' networks*, Nature 1998.
    """
    degrees = np.diff(adj.indptr).astype(np.float64)
    closed = np.asarray((adj @ adj).multiply(adj).sum(axis=1)).ravel()
    pairs = degrees * (degrees - 1)
    return np.asarray(np.divide(closed, pairs, out=np.zeros_like(closed, dtype=np.float64), where=pairs > 0))


def pagerank(adj: Any, graph_of: Array, *, damping: float = DAMPING, tolerance: float = 1e-12) -> Array:
    r"""PageRank of every node within its own graph, [n]: :math:`p = d\,A D^{-1} p + (1 - d)/n`, isolated nodes sharing evenly.

    References:
        Brin and Page, *The anatomy of a large-scale hypertextual Web search engine*, 1998.
    """
    sizes = np.bincount(graph_of)
    even = 1.0 / sizes[graph_of]
    degrees = np.diff(adj.indptr)
    fraction = np.divide(1.0, degrees, out=np.zeros(len(degrees)), where=degrees > 0)
    rank = even.copy()
    for _ in range(1000):
        stuck = np.bincount(graph_of, weights=rank * (degrees == 0), minlength=len(sizes))
        new = damping * (adj @ (rank * fraction) + stuck[graph_of] * even) + (1 - damping) * even
        done = np.abs(new - rank).max() < tolerance
        rank = new
        if done:
            break
    return np.asarray(rank)


def path_length(adj: Any) -> float:
    """Mean distance of all pairs of nodes of one graph; unconnected pairs do not count."""
    from scipy.sparse.csgraph import shortest_path

    distance = shortest_path(adj, unweighted=True)
    connected = np.isfinite(distance) & (distance > 0)
    return float(distance[connected].mean()) if connected.any() else 0.0


def _matrix(both: Array, n: int) -> Any:
    from scipy.sparse import csr_array

    matrix = csr_array((np.ones(both.shape[1]), (both[0], both[1])), shape=(n, n))
    matrix.data[:] = 1.0  # duplicates were summed
    return matrix
