"""Datasets of the Open Graph Benchmark.

Molecules are read through its own package, which is an extra; node datasets from the raw files that the package downloads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from grb.dataset import pyg, tables
from grb.dataset.pathlengths import quantile_bins
from grb.dataset.raw_arrays import PARTS, Array, RawArrays
from grb.dataset.registry import Source
from grb.errors import DataError, require

# names of the official parts in the order of PARTS
OFFICIAL = ("train", "valid", "test")
# of the subset that the taxonomy paper makes
SUBSET_SEED, SUBSET_FRACTION, SUBSET_VAL, SUBSET_BINS = 42, 0.1, 50_000, 20


def read(source: Source, root: Path) -> RawArrays:
    """A dataset from ``<root>/<name>``, where the package keeps its raw files."""
    if source.task == "node":
        return _nodes(source, root)
    loaders = require("ogb.graphproppred", extra="ogb", what="OGB datasets")
    if source.name == "pcqm4m-v2":
        lsc = require("ogb.lsc", extra="ogb", what="OGB datasets")
        return _subset(lsc.PygPCQM4Mv2Dataset(root=str(root)), source.title)
    dataset = loaders.PygGraphPropPredDataset(name=source.name, root=str(root))
    index = dataset.get_idx_split()
    parts = [np.asarray(index[part]) for part in OFFICIAL]
    return _collected([dataset[i] for i in range(len(dataset))], parts, source.title)


def _subset(dataset: Any, name: str) -> RawArrays:
    """A tenth of the training molecules and 50,000 others of them to validate; the validation molecules test."""
    index = dataset.get_idx_split()
    order = np.random.default_rng(SUBSET_SEED).permutation(np.asarray(index["train"]))
    count = int(SUBSET_FRACTION * len(order))
    chosen = [order[:count], order[count : count + SUBSET_VAL], np.asarray(index["valid"])]
    items = [dataset[int(i)] for part in chosen for i in part]
    ids = np.split(np.arange(len(items)), np.cumsum([len(part) for part in chosen])[:-1])
    gaps = np.array([float(item.y) for item in items])
    for item, label in zip(items, quantile_bins(gaps, SUBSET_BINS, fitted_on=ids[0]), strict=True):
        item.y = torch.tensor([int(label)])
    return _collected(items, ids, name)


def _collected(items: list[Any], parts: list[Array], name: str) -> RawArrays:
    features = require("ogb.utils.features", extra="ogb", what="OGB datasets")
    sizes = features.get_atom_feature_dims()
    for item in items:
        item.x = one_hot(item.x, sizes)
    return pyg.collection(items, name, "graph", [dict(zip(PARTS, parts, strict=True))])


def one_hot(codes: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    """Several categories of every node as one-hot columns of fixed width, [n, sum of sizes].

    >>> one_hot(torch.tensor([[1, 0]]), [2, 3]).tolist()
    [[0.0, 1.0, 1.0, 0.0, 0.0]]
    """
    starts = torch.tensor([0, *np.cumsum(sizes)[:-1].tolist()])
    wide = torch.zeros(len(codes), sum(sizes))
    return wide.scatter_(1, codes.long() + starts, 1.0)


def _nodes(source: Source, root: Path) -> RawArrays:
    """A node dataset from ``<root>/<name>/raw`` and ``split/<kind>``; edge features are dropped, the notes say so."""
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
    split_dir = folder / "split" / source.options["split"]
    ids = [_integers(split_dir / f"{part}.csv.gz")[:, 0] for part in OFFICIAL]
    splits = [dict(zip(PARTS, ids, strict=True))]
    return RawArrays(source.title, n, edges.T, y, x=x, splits=splits, notes=notes)


def _labels(found: Array) -> Array:
    """Classes of a single column, hidden where missing; several columns are several labels."""
    if found.shape[1] > 1:
        return found
    column = found[:, 0]
    return np.where(np.isnan(column), -1, column).astype(np.int64)


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
