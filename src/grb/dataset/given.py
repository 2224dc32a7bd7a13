"""A dataset as it was given: plain arrays before anything is repaired or chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from grb.dataset import storage
from grb.dataset.scheme import Random, Scheme
from grb.errors import DataError
from grb.graph import CSR
from grb.graph.files import read_npz
from grb.graph.validate import check_ids

if TYPE_CHECKING:
    from grb.dataset.dataset import Dataset

Array = np.ndarray[Any, Any]
ALLOWED = ("edge_index", "edge_weight", "x", "y", "ptr", "train", "val", "test", "easy", "medium", "hard")
PARTS = ("train", "val", "test", "easy", "medium", "hard", "full")


@dataclass(frozen=True, eq=False)
class Given:
    """Arrays of one dataset, with all faults that they have.

    Args:
        name: For tables.
        n: Number of nodes.
        edges: Pairs of nodes in any direction, [2, m].
        y: Classes of nodes (or graphs), -1 where hidden; or a 0/1 matrix.
        weights: Of edges, [m].
        x: Features, [n, d]; NaN where missing; None if there are none.
        sizes: Nodes of every graph of a collection; None for a single graph.
        split: Ids of ``train``, ``val`` and ``test`` (or ``easy``, ``medium``, ``hard``); empty without a split.
        classes: Names of the classes, if they had others than their numbers.
        ids: Names of the nodes, if they had others than their places.
        notes: What reading has found and decided already.
        scheme: Where further splits of it come from, if it was a dataset already.
    """

    name: str
    n: int
    edges: Array
    y: Array
    weights: Array | None = None
    x: Array | CSR | None = None
    sizes: Array | None = None
    split: Mapping[str, Array] = field(default_factory=dict)
    classes: Sequence[str] | None = None
    ids: Sequence[str] | None = None
    notes: Sequence[str] = ()
    scheme: Scheme | None = None

    def node(self, place: int) -> str:
        """What the giver calls a node."""
        return f"'{self.ids[place]}'" if self.ids is not None else str(place)


def of_dataset(dataset: Dataset) -> Given:
    """A dataset that is loaded already; what was repaired then is in its notes."""
    graph = dataset.graph
    pattern = graph.adj.pattern
    x = graph.x if isinstance(graph.x, CSR) else graph.x.numpy()
    weights = None if graph.adj.values is None else graph.adj.values.numpy()
    split = {"train": dataset.split.train, "val": dataset.split.val, **dataset.split.test}
    return Given(
        dataset.name,
        graph.n,
        np.stack([pattern.row_ids.long().numpy(), pattern.indices.long().numpy()]),
        dataset.labels.numpy(),
        weights,
        x,
        None if graph.ptr is None else graph.ptr.diff().numpy(),
        {part: ids.numpy() for part, ids in split.items()},
        notes=dataset.notes,
        scheme=dataset.scheme,
    )


def from_arrays_file(path: Path) -> Given:
    """One npz file: ``edge_index`` and ``y``; if there are any ``edge_weight``, ``x``, ``ptr``, and ids of a split."""
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
    # one graph without a split has the random one that it has wherever its path is a dataset's name
    scheme = Random(n) if not split and sizes is None else None
    weights, x = stored.get("edge_weight"), stored.get("x")
    return Given(path.stem, n, stored["edge_index"], y, weights, x, sizes, split, scheme=scheme)


def _sizes(ptr: Array, path: Path) -> Array:
    sizes = ptr[1:] - ptr[:-1] if ptr.ndim == 1 and ptr.dtype.kind in "iu" else np.zeros(0)
    if len(sizes) < 1 or ptr[0] != 0 or sizes.min() < 0:
        raise DataError(f"ptr of {path} must rise from 0, one number more than there are graphs")
    return sizes


def from_directory(directory: Path) -> Given:
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
    return Given(directory.resolve().name, n, edges, y, weights, x, None, split)


def checked_split(given: Given) -> Mapping[str, Array]:
    """The ids of every part, or a sentence on the one that does not fit."""
    items = given.n if given.sizes is None else len(given.sizes)
    return {part: check_ids(ids, items, f"part '{part}'").numpy() for part, ids in given.split.items()}
