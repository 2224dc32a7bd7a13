"""Datasets of the Open Graph Benchmark.

Node datasets and molecules are read from the raw files that its package downloads; PCQM4Mv2, whose molecules are made from
SMILES strings, through the package, which is an extra.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from grb.dataset import pyg, tables
from grb.dataset.pathlengths import quantile_bins
from grb.dataset.raw_arrays import PARTS, Array, RawArrays
from grb.dataset.registry import Source
from grb.errors import DataError, require
from grb.graph import CSR, Pattern

# names of the official parts in the order of PARTS
OFFICIAL = ("train", "valid", "test")
# of the subset that the taxonomy paper makes
ATOM_FEATURES = (119, 5, 12, 12, 10, 6, 6, 2, 2)
"""Number of values of every code of an atom: element, chirality, degree, charge, hydrogens, radicals, hybridisation, and
whether it is aromatic and in a ring."""
SUBSET_SEED, SUBSET_FRACTION, SUBSET_VAL, SUBSET_BINS = 42, 0.1, 50_000, 20


def read(source: Source, root: Path) -> RawArrays:
    """A dataset from ``<root>/<name>``, where the package keeps its raw files."""
    if source.task == "node":
        return _nodes(source, root)
    if source.name == "pcqm4m-v2":
        lsc = require("ogb.lsc", extra="ogb", what="this dataset of OGB")
        return _subset(lsc.PygPCQM4Mv2Dataset(root=str(root)), source.title)
    return _molecules(source, root)


def _molecules(source: Source, root: Path) -> RawArrays:
    """Molecules from ``<root>/<name>/raw`` and ``split/scaffold``: nodes and edges of all graphs, one behind the other.

    Edges name nodes of their own graph and are listed once; bond attributes are dropped, the notes say so.
    """
    folder = root / source.folder
    sizes = _integers(folder / "raw" / "num-node-list.csv.gz")[:, 0]
    counts = _integers(folder / "raw" / "num-edge-list.csv.gz")[:, 0]
    edges = _integers(folder / "raw" / "edge.csv.gz")
    codes = _integers(folder / "raw" / "node-feat.csv.gz")
    labels = _numbers(folder / "raw" / "graph-label.csv.gz", len(sizes))
    for path, found, expected in (("edge", len(edges), counts.sum()), ("node-feat", len(codes), sizes.sum())):
        if found != expected:
            raise DataError(
                f"{folder / 'raw' / path}.csv.gz has {found} rows, but num-*-list.csv.gz say {expected}; get them again"
            )
    if len(counts) != len(sizes) or edges.shape[1] != 2:
        raise DataError(f"the lists of nodes and of edges in {folder / 'raw'} do not belong together; get them again")
    owner = np.repeat(np.arange(len(sizes)), counts)
    if edges.size and (edges.min() < 0 or (edges >= sizes[owner][:, None]).any()):
        raise DataError(f"{folder / 'raw' / 'edge.csv.gz'} names nodes that its graph does not have; get it again")
    starts = np.cumsum(sizes) - sizes
    split_dir = folder / "split" / "scaffold"
    ids = [_integers(split_dir / f"{part}.csv.gz")[:, 0] for part in OFFICIAL]
    return RawArrays(
        source.title,
        int(sizes.sum()),
        (edges + starts[owner][:, None]).T,
        _labels(labels),
        x=one_hot(torch.from_numpy(codes), ATOM_FEATURES),
        sizes=sizes,
        splits=[dict(zip(PARTS, ids, strict=True))],
        notes=["edge attributes dropped"] if (folder / "raw" / "edge-feat.csv.gz").is_file() else [],
    )


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
    codes = torch.cat([item.x for item in items])
    for item in items:
        item.x = None
    found = pyg.collection(items, name, "graph", [dict(zip(PARTS, parts, strict=True))])
    return replace(found, x=one_hot(codes, ATOM_FEATURES))


def one_hot(codes: torch.Tensor, sizes: Sequence[int]) -> CSR:
    """Several categories of every node as one-hot columns of fixed width, [n, sum of sizes], of which only the ones are kept.

    >>> found = one_hot(torch.tensor([[1, 0]]), [2, 3])
    >>> found.shape, found.pattern.indices.tolist()
    ((1, 5), [1, 2])
    """
    limits = torch.tensor(list(sizes))
    if codes.dim() != 2 or codes.shape[1] != len(sizes):
        raise DataError(f"atoms have {list(codes.shape)[1:]} codes, but {len(sizes)} are known; get the files again")
    if codes.numel() and bool(((codes < 0) | (codes >= limits)).any()):
        raise DataError("an atom has a code that OGB's tables of atoms do not have; get the files again")
    columns = (codes.long() + limits.cumsum(0) - limits).flatten()
    indptr = torch.arange(0, codes.numel() + 1, len(sizes), dtype=torch.int64)
    return CSR(Pattern(indptr, columns, int(limits.sum())))


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
