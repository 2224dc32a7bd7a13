"""Features of edges: rows for listed edges become rows for the entries of an adjacency."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grb.errors import DataError
from grb.graph.adjacency import Adjacency


def with_edge_features(adj: Adjacency, edges: Any, features: Any) -> tuple[Adjacency, list[str]]:
    """The same edges with features, and notes on what was decided.

    An edge that is listed more than once, or in both directions, gets the mean of its rows, because edges are undirected here.
    Listed pairs that are no edges, such as self-loops, are left out; an edge that is not listed gets zeros.

    Args:
        adj: The edges.
        edges: Pairs of nodes in any direction, [2, m].
        features: One row per listed pair, [m, f], or one number, [m].

    >>> from grb.graph import adjacency_from_edges
    >>> adj, _ = adjacency_from_edges([[0, 1], [1, 2]], 3)
    >>> with_edge_features(adj, [[0, 2], [1, 1]], [[1.0, 0.0], [0.0, 1.0]])[0].features
    tensor([[1., 0.],
            [1., 0.],
            [0., 1.],
            [0., 1.]])
    """
    pairs = np.asarray(edges)
    rows = _checked(features, pairs.shape[1] if pairs.ndim == 2 else 0)
    keys = pairs.min(0).astype(np.int64) * adj.n + pairs.max(0) if pairs.size else np.zeros(0, dtype=np.int64)
    known, index = np.unique(keys, return_inverse=True)
    sums = np.zeros((len(known), rows.shape[1]))
    np.add.at(sums, index, rows)
    mean = (sums / np.bincount(index, minlength=len(known))[:, None]).astype(np.float32)
    source, target = adj.pattern.row_ids.long().numpy(), adj.pattern.indices.long().numpy()
    wanted = np.minimum(source, target) * adj.n + np.maximum(source, target)
    place = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
    found = known[place] == wanted if len(known) else np.zeros(len(wanted), dtype=bool)
    carried = np.zeros((len(wanted), rows.shape[1]), dtype=np.float32)
    carried[found] = mean[place[found]]
    differ = np.zeros(len(known), dtype=bool)
    differ[index[(np.abs(rows - mean[index]) > 1e-6 * (1 + np.abs(rows))).any(1)]] = True
    notes = [f"{int(differ.sum())} edges listed with different features given their mean"] if differ.any() else []
    return replace(adj, features=torch.from_numpy(carried)), notes


def _checked(features: Any, count: int) -> Any:
    """Rows as finite numbers, [m, f]."""
    array = features.detach().cpu().numpy() if isinstance(features, Tensor) else np.asarray(features)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or len(array) != count or not array.shape[1]:
        raise DataError(f"edge features have shape {list(array.shape)}, but [{count}, f] is needed, one row per edge")
    if array.dtype.kind not in "fiub":
        raise DataError(f"edge features have dtype {array.dtype}, but real numbers are needed")
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite and is refused
        rows = array.astype(np.float32)
    if not np.isfinite(rows).all():
        raise DataError("an edge feature is NaN or infinite as float32, but must be finite")
    return rows
