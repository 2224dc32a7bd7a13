"""Datasets by reference: a catalogue name, code, or the path of edge lists, an npz file or GRB's layout, and custom ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from grb.catalogue import resolve
from grb.dataset import cleaning, folder, frames, pyg, storage
from grb.dataset.dataset import Dataset
from grb.dataset.raw_arrays import Array, RawArrays
from grb.dataset.registry import TEXT_SUFFIXES, is_path
from grb.dataset.splits import Random
from grb.errors import DataError, UnknownName
from grb.graph import Graph
from grb.graph.files import read_npz

PARTS = ("train", "val", "test", "easy", "medium", "hard", "full")
ALLOWED = ("edge_index", "edge_weight", "edge_attr", "x", "y", "ptr", *PARTS[:-1])


def load_dataset(
    name: str,
    *,
    mode: str = "full",
    feat_norm: str | None = "arctan",
    data_dir: str | os.PathLike[str] | None = None,
    split: Literal["own", "difficulty"] = "own",
) -> Dataset:
    """A dataset by catalogue name (plug-ins included), by ``package.module:function``, or by the path of a folder or file.

    Args:
        name: What :func:`~grb.dataset.dataset_reference` gives; :func:`from_path` says what a folder or file may hold.
        mode: Difficulty of the test nodes: easy, medium, hard or full.
        feat_norm: Feature normalisation of the datasets of GRB; all others keep their features.
        data_dir: Directory to search before ``$GRB_DATA`` and the cache.
        split: ``difficulty`` draws the paper's easy, medium and hard test nodes (seed 0) instead of the dataset's own split.
    """
    if split not in ("own", "difficulty"):
        raise UnknownName("split", str(split), ("own", "difficulty"), advice="Allowed: own, difficulty.")
    if split == "difficulty":
        loaded = load_dataset(name, feat_norm=feat_norm, data_dir=data_dir)
        return loaded.with_difficulty().with_mode(mode)
    if is_path(name):
        return from_path(name).with_mode(mode)
    loader = resolve("dataset", name)
    if loader is Dataset:
        return Dataset(name, data_dir, mode=mode, feat_norm=feat_norm)
    dataset = loader()
    if not isinstance(dataset, Dataset):
        dataset = from_pyg(dataset, name.rpartition(":")[2])
    return dataset.with_mode(mode)


def from_path(path: str | os.PathLike[str]) -> Dataset:
    """A dataset from an npz file of arrays, from edge lists (:mod:`grb.dataset.folder`), or from a directory of GRB's layout.

    An npz file has ``edge_index`` [2, m] and ``y`` (of nodes, or of graphs), and optionally ``x`` [n, d], ``ptr`` of a
    collection [graphs + 1], ``edge_weight`` [m], ``edge_attr`` [m, f], and ids ``train``, ``val``, ``test``. All but complete
    directories are cleaned with the default :class:`~grb.dataset.CleaningOptions`; ``notes`` say what was done.
    """
    path = Path(path)
    if path.is_dir() and storage.is_complete(path):
        return Dataset.from_npz(path, feat_norm=None)
    return Dataset.from_raw(cleaning.clean(read_raw(path)).arrays)


def read_raw(path: str | os.PathLike[str], **options: Any) -> RawArrays:
    """The arrays of a path before any cleaning; ``options`` go to :func:`grb.dataset.folder.from_csv`."""
    path = Path(path)
    if path.name.endswith(TEXT_SUFFIXES) or folder.is_folder(path) or frames.is_folder(path):
        return frames.read_tables(path, **options)
    named = [name for name, value in options.items() if value]
    if named:
        raise DataError(f"{named[0]} is about text files, but {path} has none; leave it out")
    if not path.exists():
        raise DataError(
            f"{path} does not exist; a folder with edges.csv, edges.parquet or adj.npz, or a file of arrays, is needed"
        )
    if path.is_dir():
        if not (path / "adj.npz").is_file():
            raise DataError(f"{path} has neither edges.csv nor adj.npz; one of them is needed")
        return _read_directory(path)
    return _read_arrays(path)


def from_pyg(data: Any, name: str) -> Dataset:
    """A dataset from a ``Data``, or from a sequence of them such as any dataset of torch_geometric."""
    from torch_geometric.data import Data

    items = [data] if isinstance(data, Data) else _items(data, name)
    first = items[0]
    if len(items) == 1:
        masks = all(getattr(first, f"{part}_mask", None) is not None for part in PARTS[:3])
        return Dataset.from_raw(pyg.single(first, name, predefined=masks, edge_features=True).with_own_scheme())
    task = "node" if len(first.y) == first.num_nodes and first.num_nodes > 1 else "graph"
    return Dataset.from_raw(pyg.collection(items, name, task, edge_features=True).with_own_scheme())


def _items(data: Any, name: str) -> Sequence[Any]:
    try:
        items = [data[i] for i in range(len(data))]
    except (TypeError, KeyError, IndexError):
        items = []
    if not items or not all(hasattr(item, "edge_index") for item in items):
        raise DataError(
            f"dataset '{name}' made a {type(data).__name__}, but a grb Dataset, or Data of torch_geometric, is needed"
        )
    return items


def _read_arrays(path: Path) -> RawArrays:
    """One npz file: ``edge_index`` and ``y``; perhaps ``edge_weight``, ``edge_attr``, ``x``, ``ptr``, and ids of a split."""
    stored = read_npz(path, required=["edge_index", "y"], allowed=ALLOWED)
    y = stored["y"]
    sizes = None
    n = len(stored["x"]) if "x" in stored else len(y)
    if "ptr" in stored:
        sizes = _sizes(stored["ptr"], path)
        n = int(sizes.sum())
    split = {part: stored[part] for part in PARTS if part in stored}
    if split and ("train" not in split or len(split) < 3):
        raise DataError(f"{path} has a part of a split only; give train, val and test, or none of them")
    # one graph without a split gets random ones
    scheme = Random(n) if not split and sizes is None else None
    weights, x = stored.get("edge_weight"), stored.get("x")
    splits = [split] if split else []
    found = RawArrays(path.stem, n, stored["edge_index"], y, weights, x, sizes, splits, scheme=scheme)
    return replace(found, edge_features=stored.get("edge_attr"))


def _sizes(ptr: Array, path: Path) -> Array:
    sizes = ptr[1:] - ptr[:-1] if ptr.ndim == 1 and ptr.dtype.kind in "iu" else np.zeros(0)
    if len(sizes) < 1 or ptr[0] != 0 or sizes.min() < 0:
        raise DataError(f"ptr of {path} must rise from 0, one number more than there are graphs")
    return sizes


def _read_directory(directory: Path) -> RawArrays:
    """adj.npz, labels.npz and, if they are there, features.npz and index.npz; edges may be directed, a split may lack."""
    stored = read_npz(directory / "adj.npz", required=["indices", "indptr", "shape", "data"])
    indptr, indices, data, shape = (stored[key] for key in ("indptr", "indices", "data", "shape"))
    n = int(shape[0]) if shape.shape == (2,) and shape[0] == shape[1] else -1
    whole = indptr.ndim == indices.ndim == 1 and indptr.dtype.kind in "iu" and indices.dtype.kind in "iu"
    counts = np.diff(indptr) if whole else np.zeros(0, dtype=np.int64)
    if not whole or n < 0 or len(indptr) != n + 1 or indptr[0] != 0 or indptr[-1] != len(indices) or (counts < 0).any():
        raise DataError(f"{directory / 'adj.npz'} is no square CSR matrix: indptr does not fit shape and indices")
    x = None
    if (directory / "features.npz").is_file():
        x = read_npz(directory / "features.npz", required=["data"])["data"]
    split = {}
    if (directory / "index.npz").is_file():
        index = read_npz(directory / "index.npz", required=["index_train", "index_val"])
        split = {part: index[key] for part, key in storage.PARTS.items() if key in index}
    y = read_npz(directory / "labels.npz", required=["data"])["data"]
    edges = np.stack([np.repeat(np.arange(n), counts), indices.astype(np.int64)])
    weights = None if (data == 1).all() else data
    return RawArrays(directory.resolve().name, n, edges, y, weights, x, splits=[split] if split else [])


class CustomDataset(Dataset):
    """A custom graph under the spelling of the GRB authors' package; :meth:`Dataset.from_arrays` does the same.

    Args:
        adj: A scipy sparse matrix; directed edges, self-loops and duplicates are repaired and noted in ``notes``.
        features: Features, [n, d].
        labels: Classes [n], or a 0/1 matrix [n, labels].
        train_mask: Boolean mask [n] or ids; with ``val_mask`` and ``test_mask``, or none of the three: then the papers'
            difficulties are drawn.
        val_mask: As ``train_mask``.
        test_mask: As ``train_mask``.
        name: Name shown in tables.
        mode: As in :class:`Dataset`.
        feat_norm: As in :class:`Dataset`.
        seed: Random seed of the difficulties.

    >>> from scipy.sparse import eye_array
    >>> CustomDataset(eye_array(10, k=1), [[1.0]] * 10, [0, 1] * 5, name="path").num_test
    3
    """

    def __init__(
        self,
        adj: Any,
        features: Any,
        labels: Any,
        train_mask: Any = None,
        val_mask: Any = None,
        test_mask: Any = None,
        name: str = "custom",
        mode: str = "full",
        feat_norm: str | None = None,
        seed: int = 0,
    ) -> None:
        masks = {"train": train_mask, "val": val_mask, "test": test_mask}
        given = {part: mask for part, mask in masks.items() if mask is not None}
        if given and len(given) < len(masks):
            absent = [f"{part}_mask" for part in masks if part not in given]
            raise DataError(f"{absent[0]} is missing; give train_mask, val_mask and test_mask, or none of them")
        graph, notes = Graph.build(adj, features, labels, mode="canonicalise")
        made = Dataset._make(graph, given or None, notes, name=name, mode=mode, feat_norm=feat_norm, seed=seed)
        self.__dict__.update(made.__dict__)
