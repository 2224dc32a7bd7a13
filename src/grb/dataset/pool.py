"""Stored pools of attacked graphs: a clean graph with its split, and graphs that others attacked, as checked edits."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix, identity
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from grb.dataset.dataset import Dataset
from grb.errors import DataError
from grb.graph import Graph, GraphEdit, adjacency_from_csr
from grb.graph.convert import injection_from_rows
from grb.graph.files import read_npz

# keys of a matrix in the files of Nettack's authors and of scipy, which much of the literature uses
_MATRIX = ("data", "indices", "indptr", "shape")
# how Pro-GNN names its files: graph, attack and rate
_NAME = re.compile(r"(?P<graph>.+)_(?P<attack>meta|nettack)_adj_(?P<rate>\d+(\.\d+)?)\.npz")
MAX_JSON_BYTES = 2**26
# dense features above this are refused before they take memory
MAX_FEATURE_BYTES = 2**31


@dataclass(frozen=True, eq=False)
class AttackedGraph:
    """One attacked graph of a pool.

    Args:
        name: Name of its file without suffix.
        edit: What the attack changed.
        attack: Name of the attack, if the file says so.
        rate: Fraction of changed edges or flips per target, as the file says it; None if it does not.
        targets: Ids of the attacked nodes, [t]; None for all test nodes.
        notes: What was repaired in the file.
    """

    name: str
    edit: GraphEdit
    attack: str = ""
    rate: float | None = None
    targets: Tensor | None = None
    notes: tuple[str, ...] = ()

    @property
    def flips(self) -> int:
        """Number of changed edges."""
        return self.edit.add.shape[1] + self.edit.drop.shape[1]


@dataclass(frozen=True, eq=False)
class Pool:
    """A clean dataset and graphs that others made of it.

    Args:
        dataset: The clean graph with labels and split.
        graphs: The attacked ones.
        refused: Sentence by file name of those that could not be taken.
    """

    dataset: Dataset
    graphs: tuple[AttackedGraph, ...]
    refused: Mapping[str, str] = field(default_factory=dict)


def read_clean(path: str | Path, split: Mapping[str, Any] | None = None, *, name: str | None = None) -> Dataset:
    """The largest component of a graph in the npz layout of Nettack's authors (``adj_data``, ..., ``labels``).

    Edges are made undirected and unweighted, loops go, as all who use these files do. Without features every node gets a
    feature of its own.

    Args:
        path: The npz file; of its arrays only the matrices and the labels are read.
        split: ``train``, ``val`` and ``test`` ids in the largest component; the paper's scheme if not given.
        name: Name of the dataset; that of the file if not given.
    """
    path = Path(path)
    keys = [f"{part}_{key}" for part in ("adj", "attr") for key in _MATRIX]
    arrays = read_npz(path, required=[*keys[:4], "labels"], only=[*keys, "labels"])
    adj, labels = _matrix(arrays, "adj_", path), arrays["labels"]
    if adj.shape[0] != adj.shape[1] or labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise DataError(
            f"{path} has an adjacency of shape {list(adj.shape)} and labels of shape {list(labels.shape)} and dtype "
            f"{labels.dtype}, but a square matrix and one whole number per node are needed"
        )
    adj = adj + adj.T
    adj.setdiag(0)
    adj.eliminate_zeros()
    adj.data[:] = 1
    _, part = connected_components(adj, directed=False)
    kept = np.flatnonzero(part == np.bincount(part).argmax())
    x = _matrix(arrays, "attr_", path) if "attr_data" in arrays else identity(adj.shape[0], format="csr")
    if x.shape[0] != adj.shape[0] or len(labels) != adj.shape[0]:
        raise DataError(
            f"{path} has {adj.shape[0]} nodes, {x.shape[0]} rows of features and {len(labels)} labels; equal numbers are needed"
        )
    needed = 4 * len(kept) * x.shape[1]
    if needed > MAX_FEATURE_BYTES:
        raise DataError(
            f"the {x.shape[1]} features of {len(kept)} nodes in {path} would take {needed} bytes of memory, but at most "
            f"{MAX_FEATURE_BYTES} are read"
        )
    with np.errstate(over="ignore"):  # what is too large for float32 is refused as not finite
        features = x[kept].astype(np.float32).toarray()
    return Dataset.from_arrays(
        adj[kept][:, kept], features, labels[kept].astype(np.int64), split=split, name=name or path.stem
    )


def read_adjacency(path: str | Path, clean: Graph) -> tuple[GraphEdit, list[str]]:
    """The edit behind an attacked adjacency matrix of scipy's npz layout, and what had to be repaired.

    Args:
        path: The npz file with ``data``, ``indices``, ``indptr`` and ``shape``.
        clean: The clean graph; nodes are matched by id.
    """
    path = Path(path)
    arrays = read_npz(path, required=_MATRIX, only=_MATRIX)
    if _shape(arrays["shape"]) != (clean.n, clean.n):
        raise DataError(
            f"{path} has a matrix of shape {str(arrays['shape'].tolist())[:60]}, but the clean graph has {clean.n} nodes"
        )
    kept = arrays["data"] != 0
    if kept.all():
        indptr, indices, data = arrays["indptr"], arrays["indices"], arrays["data"]
    else:
        matrix = _matrix(arrays, "", path)
        matrix.eliminate_zeros()
        indptr, indices, data = matrix.indptr, matrix.indices, matrix.data
    adj, notes = adjacency_from_csr(indptr, indices, data, (clean.n, clean.n), mode="canonicalise")
    return GraphEdit.between(Graph(clean.adj, clean.x), Graph(adj, clean.x)), notes


def read_edit(path: str | Path, clean: Graph) -> tuple[GraphEdit, list[str]]:
    """The edit in a file: ours, an attacked adjacency matrix, or rows of injected nodes as in KDD Cup 2020.

    Args:
        path: An npz file.
        clean: The graph that was attacked.
    """
    path = Path(path)
    names = set(read_names(path))
    notes: list[str] = []
    if {"add", "drop", "meta"} <= names:
        edit = GraphEdit.load(path)
    elif {"indptr", "features"} <= names:
        arrays = read_npz(path, required=[*_MATRIX, "features"], only=[*_MATRIX, "features"])
        edit = injection_from_rows(_matrix(arrays, "", path), arrays["features"])
    elif "indptr" in names:
        edit, notes = read_adjacency(path, clean)
    else:
        raise DataError(f"{path} holds {', '.join(sorted(names)[:6])}, but an edit or an attacked adjacency is needed")
    if edit.n != clean.n:
        raise DataError(f"{path} changes a graph of {edit.n} nodes, but the clean one has {clean.n}")
    clean.apply(edit)  # refuses an edge that is there already, or a feature row of another width
    return edit, notes


def read_names(path: str | Path) -> list[str]:
    """Names of the arrays of an npz file."""
    import struct
    import zipfile

    path = Path(path)
    if not path.is_file():
        raise DataError(f"no file {path}; check the path")
    try:
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except zipfile.BadZipFile:
        raise DataError(f"{path} is not an npz file; get it again or check the path") from None
    except (OSError, NotImplementedError, RuntimeError, ValueError, struct.error) as error:
        raise DataError(f"{path} is damaged ({str(error)[:100]}); get it again") from None


def read_pool(folder: str | Path, name: str) -> Pool:
    """A pool in Pro-GNN's layout: ``clean/NAME.npz``, ``splits/NAME_prognn_splits.json``, ``meta`` and ``nettack``.

    Args:
        folder: The folder that has these.
        name: Name of the graph, for instance ``cora``.

    References:
        Jin et al., *Graph Structure Learning for Robust Graph Neural Networks*, KDD 2020.
    """
    folder = Path(folder)
    clean = folder / "clean" / f"{name}.npz"
    if not clean.is_file():
        known = sorted(path.stem for path in clean.parent.glob("*.npz")) if clean.parent.is_dir() else []
        raise DataError(f"{folder} has no clean graph '{name}'; it has {', '.join(known) or 'none'}")
    dataset = read_clean(clean, read_split(folder / "splits" / f"{name}_prognn_splits.json"), name=name)
    graphs, refused = [], {}
    for path in sorted(folder.glob(f"*/{name}_*_adj_*.npz")):
        match = _NAME.fullmatch(path.name)
        if match is None or match["graph"] != name:
            continue
        targets = None
        if match["attack"] == "nettack":
            named = path.parent / f"{name}_nettacked_nodes.json"
            targets = _ids(_read_json(named), "attacked_test_nodes", named, dataset.graph.n)
        try:
            edit, notes = read_adjacency(path, dataset.graph)
        except DataError as error:
            refused[path.name] = str(error)
            continue
        graphs.append(AttackedGraph(path.stem, edit, match["attack"], float(match["rate"]), targets, tuple(notes)))
    return Pool(dataset, tuple(graphs), refused)


def read_split(path: str | Path) -> dict[str, Tensor]:
    """``train``, ``val`` and ``test`` ids of Pro-GNN's JSON layout (``idx_train``, ...)."""
    values = _read_json(Path(path))
    return {part: _ids(values, f"idx_{part}", Path(path)) for part in ("train", "val", "test")}


def _ids(values: Mapping[str, Any], key: str, path: Path, n: int = 2**31) -> Tensor:
    ids = values.get(key)
    if not isinstance(ids, list) or not all(isinstance(each, int) and not isinstance(each, bool) for each in ids):
        raise DataError(f"{path} has no list of ids '{key}'")
    outside = next((each for each in ids if not 0 <= each < n), None)
    if outside is not None:
        raise DataError(f"'{key}' of {path} names node {str(outside)[:20]}, but ids are from 0 to {n - 1}")
    return torch.tensor(ids, dtype=torch.int64)


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise DataError(f"no file {path}; check the path")
    if path.stat().st_size > MAX_JSON_BYTES:
        raise DataError(f"{path} has {path.stat().st_size} bytes, but at most {MAX_JSON_BYTES} are read")
    try:
        values = json.loads(path.read_text())
    except (ValueError, RecursionError):
        raise DataError(f"{path} is no JSON; get it again") from None
    if not isinstance(values, dict):
        raise DataError(f"{path} holds a {type(values).__name__}, but names with lists of ids are needed")
    return values


def _matrix(arrays: Mapping[str, Any], prefix: str, path: Path) -> csr_matrix:
    """A scipy matrix; what would make scipy read outside its arrays is refused."""
    missing = [f"{prefix}{key}" for key in _MATRIX if f"{prefix}{key}" not in arrays]
    if missing:
        raise DataError(f"{path} has no array '{missing[0]}'; get it again")
    data, indices, indptr, shape = (arrays[f"{prefix}{key}"] for key in _MATRIX)
    rows, columns = _shape(shape)
    good = (
        min(rows, columns) >= 0
        and all(each.ndim == 1 and each.dtype.kind in "iu" for each in (indices, indptr))
        and data.ndim == 1
        and data.dtype.kind in "iufb"
        and len(indptr) == rows + 1
        and len(data) == len(indices)
        and (len(indptr) == 0 or (indptr[0] == 0 and indptr[-1] == len(indices) and bool((np.diff(indptr) >= 0).all())))
        and (len(indices) == 0 or (indices.min() >= 0 and indices.max() < columns))
        and bool(np.isfinite(data).all())
    )
    if not good:
        raise DataError(f"{path} holds arrays that are no sparse matrix; get it again")
    return csr_matrix((data, indices, indptr), shape=(rows, columns))


def _shape(given: Any) -> tuple[int, int]:
    """Rows and columns as an array tells them; (-1, -1) if it does not."""
    if given.shape != (2,) or given.dtype.kind not in "iu":
        return -1, -1
    return int(given[0]), int(given[1])
