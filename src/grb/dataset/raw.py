"""A dataset between its source and :class:`grb.dataset.Dataset`: checked arrays, and one npz file that keeps them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grb.errors import DataError
from grb.graph import CSR, Adjacency, Graph, Pattern, adjacency_from_edges
from grb.graph.files import read_npz, write_npz
from grb.graph.validate import check_features, check_labels, check_ptr

Array = np.ndarray[Any, Any]
# below this share of entries the sparse kernel is faster than a dense product
SPARSE = 0.05
NARROW = 64


@dataclass(frozen=True, eq=False)
class Raw:
    """A graph or a collection, its predefined splits, and notes on what was repaired.

    Args:
        graph: With labels of nodes or of graphs.
        splits: Ids (of graphs if the graph is a collection, else of nodes) to train, validate and test on.
        notes: What differs from the source.
    """

    graph: Graph
    splits: Sequence[tuple[Array, Array, Array]] = ()
    notes: Sequence[str] = ()


def build(
    edges: Any,
    x: Any,
    y: Any,
    *,
    sizes: Any = None,
    nodes: int | None = None,
    splits: Sequence[tuple[Array, Array, Array]] = (),
    notes: Sequence[str] = (),
) -> Raw:
    """From plain arrays; directed edges, self-loops and duplicates are repaired and noted.

    Args:
        edges: [2, m], ids of nodes in the whole collection.
        x: Features, [n, d]; None for none, which become a constant one.
        y: Labels of nodes or graphs.
        sizes: Nodes of every graph of a collection, [graphs]; None for a single graph.
        nodes: Their number, if it cannot be seen from ``x`` or ``sizes``.
    """
    n = int(np.sum(sizes)) if sizes is not None else (len(x) if x is not None else int(nodes or 0))
    notes = list(notes)
    adj, repaired = adjacency_from_edges(edges, n, mode="canonicalise", directed=True)
    if x is None:
        x = torch.ones(n, 1)
        notes.append("there are no node features: every node got a constant one")
    features = thin(check_features(x, n))
    ptr = None if sizes is None else check_ptr(np.concatenate([[0], np.cumsum(sizes)]), n)
    count = n if ptr is None or len(y) == n else len(ptr) - 1
    graph = Graph(adj, features, check_labels(y, count), ptr)
    graph._check_boundaries()
    return Raw(graph, splits, [*notes, *repaired])


def thin(x: Tensor) -> Tensor | CSR:
    """Features as a sparse matrix where that is faster, else as they are.

    >>> type(thin(torch.eye(200))).__name__, type(thin(torch.ones(2, 200))).__name__
    ('CSR', 'Tensor')
    """
    if x.shape[1] < NARROW or int(torch.count_nonzero(x)) > SPARSE * x.numel():
        return x
    rows, columns = x.nonzero(as_tuple=True)
    indptr = torch.zeros(len(x) + 1, dtype=torch.int64)
    torch.cumsum(torch.bincount(rows, minlength=len(x)), 0, out=indptr[1:])
    values = x[rows, columns]
    pattern = Pattern(indptr.int(), columns.int(), int(x.shape[1]))
    return CSR(pattern, None if bool((values == 1).all()) else values)


def save(raw: Raw, path: Path) -> None:
    """Keep it as one npz file."""
    graph = raw.graph
    assert graph.y is not None
    arrays: dict[str, Array] = {
        "indptr": graph.adj.pattern.indptr.numpy(),
        "indices": graph.adj.pattern.indices.numpy(),
        "y": graph.y.numpy(),
        "notes": np.frombuffer(json.dumps(list(raw.notes)).encode(), dtype=np.uint8),
    }
    if graph.ptr is not None:
        arrays["ptr"] = graph.ptr.numpy()
    if isinstance(graph.x, Tensor):
        arrays["x"] = graph.x.numpy()
    else:
        pattern = graph.x.pattern
        arrays |= {"x_indptr": pattern.indptr.numpy(), "x_indices": pattern.indices.numpy()}
        arrays["x_columns"] = np.array([pattern.columns])
        if graph.x.values is not None:
            arrays["x_values"] = graph.x.values.numpy()
    for number, parts in enumerate(raw.splits):
        arrays |= {f"{name}_{number}": ids for name, ids in zip(("train", "val", "test"), parts, strict=True)}
    write_npz(path, arrays)


def load(path: Path) -> Raw:
    """Back from :func:`save`."""
    stored = read_npz(path, required=["indptr", "indices", "y", "notes"])
    try:
        pattern = _pattern(stored, "indptr", "indices", len(stored["indptr"]) - 1)
        n = pattern.shape[0]
        adj = Adjacency(Pattern(pattern.indptr, pattern.indices, n, symmetric=True))
        if "x" in stored:
            x: Tensor | CSR = torch.from_numpy(stored["x"])
        else:
            values = stored.get("x_values")
            columns = int(stored["x_columns"][0])
            x = CSR(
                _pattern(stored, "x_indptr", "x_indices", columns), None if values is None else torch.from_numpy(values)
            )
        ptr = check_ptr(stored["ptr"], n) if "ptr" in stored else None
        graph = Graph(adj, x, torch.from_numpy(stored["y"]), ptr)
        count = sum(name.startswith("train_") for name in stored)
        splits = [tuple(stored[f"{part}_{i}"] for part in ("train", "val", "test")) for i in range(count)]
        return Raw(graph, splits, json.loads(stored["notes"].tobytes()))  # type: ignore[arg-type]
    except (KeyError, ValueError, IndexError) as error:
        raise DataError(f"{path} is not a dataset that grb has kept ({str(error)[:80]}); remove it") from None


def _pattern(stored: dict[str, Array], starts: str, columns: str, width: int) -> Pattern:
    """Checked, because an index out of range makes torch read foreign memory."""
    indptr, indices = stored[starts], stored[columns]
    ends = len(indptr) and indptr[0] == 0 and indptr[-1] == len(indices) and (np.diff(indptr) >= 0).all()
    if not ends or (len(indices) and (indices.min() < 0 or indices.max() >= width)):
        raise ValueError(f"'{columns}' does not fit '{starts}'")
    return Pattern(torch.from_numpy(indptr), torch.from_numpy(indices), width)
