"""Checks that run before any tensor is built: a CSR with a bad index makes torch read memory out of bounds.

Two modes. ``strict`` refuses whatever is not a simple undirected graph. ``canonicalise`` mends what has one
obvious remedy (self-loops, duplicates, stored zeros, a missing direction) and says what it did. What has no
remedy (an index out of range, NaN, a negative weight, a wrong shape) is refused in both.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from grb.errors import DataError
from grb.graph.adjacency import Adjacency
from grb.graph.sparse import Pattern

Mode = Literal["strict", "canonicalise"]
Array = np.ndarray[Any, Any]


def adjacency_from_csr(
    indptr: Any, indices: Any, values: Any, shape: Any, *, mode: Mode = "strict"
) -> tuple[Adjacency, list[str]]:
    """An adjacency from CSR arrays, and a note for everything that was repaired.

    Args:
        indptr: [n + 1] integers.
        indices: [entries] integers.
        values: [entries] numbers, or None if all are one.
        shape: (n, n).
        mode: ``strict`` or ``canonicalise``.
    """
    n = _square(shape)
    indptr = _integers(indptr, "indptr")
    indices = _integers(indices, "indices")
    if len(indptr) != n + 1:
        raise DataError(f"indptr has {len(indptr)} entries, but {n} nodes need {n + 1}")
    if indptr[0] != 0 or indptr[-1] != len(indices):
        raise DataError(f"indptr runs from {indptr[0]} to {indptr[-1]}, but must run from 0 to {len(indices)}")
    counts = np.diff(indptr)
    if counts.size and counts.min() < 0:
        raise DataError(f"indptr falls after row {int(np.argmin(counts))}, but must never fall")
    rows = np.repeat(np.arange(n, dtype=np.int64), counts)
    return _from_entries(rows, indices, values, n, mode)


def adjacency_from_edges(
    edges: Any, n: int, *, values: Any = None, mode: Mode = "strict", directed: bool = False
) -> tuple[Adjacency, list[str]]:
    """An adjacency from pairs of nodes.

    Args:
        edges: [2, m] integers.
        n: Number of nodes.
        values: [m] weights, or None.
        mode: ``strict`` or ``canonicalise``.
        directed: The pairs list every edge in both directions; otherwise each undirected edge stands there once.
    """
    edges = np.asarray(edges)
    if edges.size == 0:
        edges = edges.reshape(2, 0).astype(np.int64)
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise DataError(f"edges have shape {edges.shape}, but [2, m] is needed")
    source, target = _integers(edges[0], "edges"), _integers(edges[1], "edges")
    if not directed:
        source, target = np.concatenate([source, target]), np.concatenate([target, source])
        values = None if values is None else np.concatenate([np.asarray(values)] * 2)
    return _from_entries(source, target, values, _square((n, n)), mode)


def check_features(x: Any, n: int) -> Tensor:
    """Dense features as a finite float32 tensor [n, d]."""
    array = x.detach().cpu().numpy() if isinstance(x, Tensor) else np.asarray(x)
    if array.ndim != 2 or array.shape[0] != n:
        raise DataError(f"features have shape {list(array.shape)}, but [{n}, d] is needed")
    if array.dtype.kind not in "fiub":
        raise DataError(f"features have dtype {array.dtype}, but real numbers are needed")
    array = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise DataError(
            f"feature {column} of node {row} is {array[row, column]}, but must be finite; replace it, or clean with "
            "missing='mean'"
        )
    return torch.from_numpy(array.copy() if array.base is not None or array is x else array)


def check_labels(y: Any, count: int, *, classes: int | None = None, values: bool = False) -> Tensor:
    """Class labels [count] as int64 in 0..classes-1 (-1: hidden), or a finite 0/1 matrix [count, labels] as float32.

    Args:
        y: The labels.
        count: Number of items.
        classes: Number of classes, if it is known.
        values: Whether numbers that are not whole are values to predict, [count] as float32, instead of a mistake.
    """
    array = y.detach().cpu().numpy() if isinstance(y, Tensor) else np.asarray(y)
    if array.ndim not in (1, 2) or len(array) != count:
        raise DataError(f"labels have shape {list(array.shape)}, but [{count}] or [{count}, labels] is needed")
    if array.ndim == 2:
        if array.dtype.kind not in "fiub" or not np.isin(array[np.isfinite(array)], (-1, 0, 1)).all():
            raise DataError("multi-label targets must be 0, 1 or missing (NaN, -1)")
        return torch.from_numpy(np.array(array, dtype=np.float32))
    if values and array.dtype.kind == "f" and array.size and bool((array != np.floor(array)).any()):
        if not np.isfinite(array).all():
            raise DataError("a value to predict is NaN or infinite; leave out the items without one")
        return torch.from_numpy(np.array(array, dtype=np.float32))
    array = _integers(array, "labels")
    if array.size and array.min() < -1:
        raise DataError(f"a label is {array.min()}, but labels start at 0 (-1 marks a hidden one)")
    if classes is not None and array.size and array.max() >= classes:
        raise DataError(f"a label is {array.max()}, but there are {classes} classes: 0 to {classes - 1}")
    return torch.from_numpy(array.copy())


def check_ids(ids: Any, n: int, what: str) -> Tensor:
    """Distinct node ids in 0..n-1 as int64, in the order given."""
    array = ids.detach().cpu().numpy() if isinstance(ids, Tensor) else np.asarray(ids)
    if array.size == 0:
        return torch.empty(0, dtype=torch.int64)
    if array.ndim != 1:
        raise DataError(f"{what} has shape {list(array.shape)}, but a list of node ids is needed")
    array = _integers(array, what)
    if array.min() < 0 or array.max() >= n:
        bad = array[(array < 0) | (array >= n)][0]
        raise DataError(f"{what} names node {bad}, but the graph has nodes 0 to {n - 1}")
    if len(np.unique(array)) != len(array):
        raise DataError(f"{what} names a node twice")
    return torch.from_numpy(array.copy())


def check_ptr(ptr: Any, n: int) -> Tensor:
    """Boundaries of a collection: from 0 to n, never falling, [graphs + 1]."""
    array = _integers(ptr.detach().cpu().numpy() if isinstance(ptr, Tensor) else ptr, "ptr")
    if len(array) < 2 or array[0] != 0 or array[-1] != n or np.diff(array).min() < 0:
        raise DataError(f"ptr must rise from 0 to the number of nodes {n}, got {array[:4].tolist()}...")
    return torch.from_numpy(array.copy())


def _square(shape: Any) -> int:
    sizes = _integers(shape, "the shape of an adjacency")
    if len(sizes) != 2 or sizes[0] != sizes[1] or sizes[0] < 0:
        raise DataError(f"an adjacency has shape {sizes.tolist()}, but a square one is needed")
    if sizes[0] >= 2**31:
        raise DataError(f"the graph has {sizes[0]} nodes, but at most {2**31 - 1} are supported")
    return int(sizes[0])


def _integers(array: Any, what: str) -> Array:
    array = np.asarray(array)
    if array.ndim != 1:
        raise DataError(f"{what} has shape {list(array.shape)}, but a flat array is needed")
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        advice = "; numpy.unique(labels, return_inverse=True)[1] numbers classes" if what == "labels" else ""
        raise DataError(f"{what} has dtype {array.dtype}, but integers are needed{advice}")
    if array.dtype == np.uint64 and array.max() > np.iinfo(np.int64).max:
        raise DataError(f"{what} holds {array.max()}, which is too large")
    return array.astype(np.int64, copy=False)


def _from_entries(rows: Array, cols: Array, values: Any, n: int, mode: Mode) -> tuple[Adjacency, list[str]]:
    if mode not in ("strict", "canonicalise"):
        raise DataError(f"mode is {mode!r}, but 'strict' or 'canonicalise' is needed")
    for side in (rows, cols):
        if side.size and (side.min() < 0 or side.max() >= n):
            bad = side[(side < 0) | (side >= n)][0]
            raise DataError(f"an edge names node {bad}, but the graph has nodes 0 to {n - 1}")
    weights = _weights(values, len(rows))
    notes: list[str] = []

    if weights is not None and (weights == 0).any():
        _mend(notes, mode, int((weights == 0).sum()), "stored zeros", "dropped")
        rows, cols, weights = rows[weights != 0], cols[weights != 0], weights[weights != 0]
    loops = rows == cols
    if loops.any():
        _mend(notes, mode, int(loops.sum()), "self-loops", "dropped")
        rows, cols = rows[~loops], cols[~loops]
        weights = None if weights is None else weights[~loops]

    keys = rows * n + cols
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    weights = None if weights is None else weights[order]
    first = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    if not first.all():
        _mend(notes, mode, int((~first).sum()), "duplicate entries", "merged, the largest weight kept")
        if weights is not None:
            weights = np.maximum.reduceat(weights, np.flatnonzero(first))
        keys = keys[first]
    keys, weights = _symmetrised(keys, weights, n, mode, notes)
    return _build(keys, weights, n), notes


def _symmetrised(
    keys: Array, weights: Array | None, n: int, mode: Mode, notes: list[str]
) -> tuple[Array, Array | None]:
    if not len(keys):
        return keys, weights
    mirrored = (keys % n) * n + keys // n
    order = np.argsort(mirrored, kind="stable")
    if np.array_equal(mirrored[order], keys):
        if weights is None or np.array_equal(weights[order], weights):
            return keys, weights
        _mend(
            notes,
            mode,
            int((weights[order] != weights).sum()) // 2,
            "edges with two different weights",
            "given the larger",
        )
        return keys, np.maximum(weights, weights[order])
    # sorted and compared, because np.union1d hashes since numpy 2.3, which takes seconds for a million keys
    union = np.sort(np.concatenate([keys, mirrored]))
    union = union[np.concatenate([[True], union[1:] != union[:-1]])]
    _mend(notes, mode, len(union) - len(keys), "edges without their reverse", "made undirected")
    if weights is not None:
        full = np.zeros(len(union), dtype=weights.dtype)
        full[np.searchsorted(union, keys)] = weights
        back = np.searchsorted(union, mirrored)
        full[back] = np.maximum(full[back], weights)
        weights = full
    return union, weights


def _weights(values: Any, count: int) -> Array | None:
    if values is None:
        return None
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    array = np.asarray(values)
    if array.shape != (count,):
        raise DataError(f"edge weights have shape {list(array.shape)}, but [{count}] is needed")
    if array.dtype.kind not in "fiub":
        raise DataError(f"edge weights have dtype {array.dtype}, but real numbers are needed")
    with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite and is refused
        array = array.astype(np.float32)
    if not np.isfinite(array).all():
        raise DataError("an edge weight is NaN or infinite as float32, but must be finite")
    if (array < 0).any():
        raise DataError(f"an edge weight is {array.min():g}, but must not be negative")
    return array


def _mend(notes: list[str], mode: Mode, count: int, what: str, done: str) -> None:
    if mode == "strict":
        raise DataError(f"the adjacency has {count} {what}; use mode='canonicalise' to have them {done.split(',')[0]}")
    notes.append(f"{count} {what} {done}")


def _build(keys: Array, weights: Array | None, n: int) -> Adjacency:
    counts = np.bincount(keys // n, minlength=n) if len(keys) else np.zeros(n, dtype=np.int64)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    small = np.int32 if len(keys) < 2**31 else np.int64
    pattern = Pattern(
        torch.from_numpy(indptr.astype(small)),
        torch.from_numpy((keys % max(n, 1)).astype(small)),
        n,
        symmetric=True,
    )
    if weights is None or (weights == 1).all():
        return Adjacency(pattern)
    return Adjacency(pattern, torch.from_numpy(weights))
