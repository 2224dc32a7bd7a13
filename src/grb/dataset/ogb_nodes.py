"""Node datasets of the Open Graph Benchmark from the raw files that its package downloads; the package is not needed here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from grb.dataset import tables
from grb.dataset.raw import Raw, build
from grb.dataset.sources import Source
from grb.errors import DataError

Array = np.ndarray[Any, Any]
PARTS = ("train", "valid", "test")


def read(source: Source, root: Path) -> Raw:
    """A dataset from ``<root>/<name>/raw`` and ``split/<kind>``, with the official split.

    Edges are made undirected, edge features are dropped; the notes say so.
    """
    folder = root / source.folder
    n = int(_integers(folder / "raw" / "num-node-list.csv.gz").sum())
    edges = _integers(folder / "raw" / "edge.csv.gz")
    if edges.shape[1] != 2:
        raise DataError(
            f"{folder / 'raw' / 'edge.csv.gz'} has {edges.shape[1]} columns, but the two nodes of an edge are 2"
        )
    features, notes = folder / "raw" / "node-feat.csv.gz", []
    x = _numbers(features, n) if features.is_file() else None
    if (folder / "raw" / "edge-feat.csv.gz").is_file():
        notes.append("edge attributes dropped")
    y = _labels(_numbers(folder / "raw" / "node-label.csv.gz", n))
    return build(edges.T, x, y, nodes=n, splits=[_split(folder, source.options["split"])], notes=notes)


def _labels(found: Array) -> Array:
    """Classes of a single column, hidden where missing; several columns are several labels."""
    if found.shape[1] > 1:
        return found
    column = found[:, 0]
    return np.where(np.isnan(column), -1, column).astype(np.int64)


def _split(folder: Path, kind: str) -> tuple[Array, Array, Array]:
    train, val, test = (_integers(folder / "split" / kind / f"{part}.csv.gz")[:, 0] for part in PARTS)
    return train, val, test


def _integers(path: Path) -> Array:
    found = tables.fast(_table(path), None, np.int64)
    if found is None:
        raise DataError(f"{path} holds something else than whole numbers; get it again")
    return found


def _numbers(path: Path, n: int) -> Array:
    table = _table(path)
    found = tables.numbers(table, range(table.width), "all cells")
    if len(found) != n:
        raise DataError(f"{path} has {len(found)} rows, but there are {n} nodes; get it again")
    return found


def _table(path: Path) -> tables.Table:
    if not path.is_file():
        raise DataError(
            f"{path} is missing; let the ogb package download the dataset again (NodePropPredDataset, pip install ogb)"
        )
    return tables.describe(path, (), header=False)
