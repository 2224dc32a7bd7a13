"""Arrays of a dataset between its source and :class:`grb.dataset.Dataset`, and one npz file that caches them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from grb.dataset.original_names import OriginalNames
from grb.dataset.splits import Folds, Predefined, Random, Scheme, split_from_parts
from grb.errors import DataError
from grb.graph import CSR, Adjacency, Graph, Pattern, adjacency_from_edges
from grb.graph.edge_features import with_edge_features
from grb.graph.files import read_npz, write_npz
from grb.graph.validate import check_features, check_ids, check_labels, check_ptr

if TYPE_CHECKING:
    from grb.dataset.dataset import Dataset

Array = np.ndarray[Any, Any]
PARTS = ("train", "val", "test")
# below this fraction of non-zero entries the sparse kernel is faster than a dense product
SPARSE = 0.05
NARROW = 64


@dataclass(frozen=True, eq=False)
class RawArrays:
    """Arrays of one dataset, as its source has them or after cleaning.

    Args:
        name: Name shown in tables.
        n: Number of nodes.
        edges: Pairs of nodes in any direction, [2, m]; or an adjacency that was checked already.
        y: Classes of nodes (or graphs), -1 where hidden; a 0/1 matrix; or values to predict, numbers that are not whole.
        weights: Edge weights, [m].
        x: Features, [n, d], NaN where missing; None without features. A tensor or sparse matrix stays as it is, of an
            array mostly empty features become a sparse matrix.
        sizes: Number of nodes of every graph of a collection; None for a single graph.
        splits: Ids of ``train``, ``val`` and ``test`` (or ``easy``, ``medium``, ``hard``, ``full``), of graphs in a
            collection; empty without a split.
        classes: Names of the classes, if they differ from their numbers.
        ids: Names of the nodes, if they differ from their indices.
        notes: What reading has repaired and decided already.
        scheme: Source of numbered splits; None for the one split in ``splits``.
        feature_names: Names of the feature columns, if they have any.
        edge_features: Features of the edges as listed, [m, f] or [m]; an adjacency has its own.
    """

    name: str
    n: int
    edges: Array | Adjacency
    y: Any
    weights: Array | None = None
    x: Any = None
    sizes: Any = None
    splits: Sequence[Mapping[str, Any]] = ()
    classes: Sequence[str] | None = None
    ids: Sequence[str] | None = None
    notes: Sequence[str] = ()
    scheme: Scheme | None = None
    feature_names: Sequence[str] | None = None
    edge_features: Any = None

    @property
    def names(self) -> OriginalNames:
        """Names of nodes, classes and features as the source has them."""
        plain = self.ids is not None and all(name == str(index) for index, name in enumerate(self.ids))
        return OriginalNames(None if plain else self.ids, self.classes, self.feature_names)

    @property
    def edge_index(self) -> Array:
        """Edges as listed, [2, m]; both directions of an adjacency."""
        if not isinstance(self.edges, Adjacency):
            return np.asarray(self.edges)
        pattern = self.edges.pattern
        return np.stack([pattern.row_ids.long().numpy(), pattern.indices.long().numpy()])

    def checked_split(self) -> dict[str, Array]:
        """The ids of every part of the first split; empty without a split, refused where they do not fit."""
        items = self.n if self.sizes is None else len(self.sizes)
        first = self.splits[0] if self.splits else {}
        return {part: check_ids(ids, items, f"part '{part}'").numpy() for part, ids in first.items()}

    def graph(self) -> tuple[Graph, list[str]]:
        """The checked graph and its notes; directed edges, self-loops and duplicates are repaired and noted."""
        notes = list(self.notes)
        x = self.x
        if x is None:
            x = torch.ones(self.n, 1)
            notes.append("there are no node features: every node got a constant one")
        if isinstance(self.edges, Adjacency):
            adj = self.edges
        else:
            adj, repaired = adjacency_from_edges(
                self.edges, self.n, values=self.weights, mode="canonicalise", directed=True
            )
            notes += repaired
            if self.edge_features is not None:
                adj, decided = with_edge_features(adj, self.edges, self.edge_features)
                notes += decided
        ptr = None if self.sizes is None else check_ptr(np.concatenate([[0], np.cumsum(self.sizes)]), self.n)
        count = self.n if ptr is None or len(self.y) == self.n else len(ptr) - 1
        if not isinstance(x, CSR):
            checked = check_features(x, self.n)
            x = checked if isinstance(x, Tensor) else sparsify(checked)
        graph = Graph(adj, x, check_labels(self.y, count, values=True), ptr)
        graph._check_boundaries()
        return graph, notes

    def with_own_scheme(self) -> RawArrays:
        """The same with its own splits in turn; without any, folds of classified graphs and random splits of others."""
        items = self.n if self.sizes is None else len(self.sizes)
        if self.splits:
            scheme: Scheme = Predefined([split_from_parts(split, items) for split in self.splits])
        elif self.sizes is not None and len(self.y) == items:
            scheme = Folds(check_labels(self.y, items, values=True))
        else:
            scheme = Random(items)
        return replace(self, scheme=scheme)


def from_dataset(dataset: Dataset) -> RawArrays:
    """The arrays of a loaded dataset; what was repaired in loading is in its notes."""
    graph = dataset.graph
    split = {"train": dataset.split.train, "val": dataset.split.val, **dataset.split.test}
    return RawArrays(
        dataset.name,
        graph.n,
        graph.adj,
        dataset.labels.numpy(),
        None if graph.adj.values is None else graph.adj.values.numpy(),
        graph.x if isinstance(graph.x, CSR) else graph.x.numpy(),
        None if graph.ptr is None else graph.ptr.diff().numpy(),
        [{part: ids.numpy() for part, ids in split.items()}],
        dataset.names.classes,
        dataset.names.nodes,
        dataset.notes,
        dataset.scheme,
        dataset.names.features,
    )


def is_values(labels: Tensor) -> bool:
    """Whether labels are values to predict (a regression) and not classes.

    >>> is_values(torch.tensor([0.5, 2.0])), is_values(torch.tensor([0, 2]))
    (True, False)
    """
    return labels.dim() == 1 and labels.is_floating_point()


def count_classes(labels: Tensor) -> int:
    """Number of classes of a vector of classes, or of the columns of a 0/1 matrix; 1 for values to predict."""
    if is_values(labels):
        return 1
    return int(labels.max()) + 1 if labels.dim() == 1 else int(labels.shape[1])


def sparsify(x: Tensor) -> Tensor | CSR:
    """Features as a sparse matrix where that is faster, else as they are.

    >>> type(sparsify(torch.eye(200))).__name__, type(sparsify(torch.ones(2, 200))).__name__
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


def save(raw: RawArrays, path: Path) -> RawArrays:
    """Write checked arrays as one npz file, and return them."""
    graph, notes = raw.graph()
    assert graph.y is not None
    arrays: dict[str, Array] = {
        "indptr": graph.adj.pattern.indptr.numpy(),
        "indices": graph.adj.pattern.indices.numpy(),
        "y": graph.y.numpy(),
        "notes": np.frombuffer(json.dumps(notes).encode(), dtype=np.uint8),
    }
    if graph.ptr is not None:
        arrays["ptr"] = graph.ptr.numpy()
    if graph.adj.features is not None:
        arrays["edge_features"] = graph.adj.features.numpy()
    if isinstance(graph.x, Tensor):
        arrays["x"] = graph.x.numpy()
    else:
        pattern = graph.x.pattern
        arrays |= {"x_indptr": pattern.indptr.numpy(), "x_indices": pattern.indices.numpy()}
        arrays["x_columns"] = np.array([pattern.columns])
        if graph.x.values is not None:
            arrays["x_values"] = graph.x.values.numpy()
    for number, split in enumerate(raw.splits):
        arrays |= {f"{part}_{number}": np.asarray(split[part]) for part in PARTS}
    write_npz(path, arrays)
    return replace(raw, edges=graph.adj, x=graph.x, y=graph.y, notes=notes, edge_features=None)


def load(path: Path, name: str) -> RawArrays:
    """Read back what :func:`save` has written."""
    stored = read_npz(path, required=["indptr", "indices", "y", "notes"])
    try:
        n = len(stored["indptr"]) - 1
        pattern = _pattern(stored, "indptr", "indices", n)
        adj = Adjacency(Pattern(pattern.indptr, pattern.indices, n, symmetric=True))
        if "edge_features" in stored:
            carried = stored["edge_features"]
            if carried.ndim != 2 or len(carried) != pattern.entries:
                raise ValueError("edge features do not fit the edges")
            adj = replace(adj, features=torch.from_numpy(carried))
        if "x" in stored:
            x: Tensor | CSR = torch.from_numpy(stored["x"])
        else:
            values = stored.get("x_values")
            columns = _pattern(stored, "x_indptr", "x_indices", int(stored["x_columns"][0]))
            x = CSR(columns, None if values is None else torch.from_numpy(values))
        sizes = check_ptr(stored["ptr"], n).diff().numpy() if "ptr" in stored else None
        count = sum(part.startswith("train_") for part in stored)
        splits = [{part: stored[f"{part}_{i}"] for part in PARTS} for i in range(count)]
        notes = json.loads(stored["notes"].tobytes())
        return RawArrays(name, n, adj, torch.from_numpy(stored["y"]), x=x, sizes=sizes, splits=splits, notes=notes)
    except (KeyError, ValueError, IndexError) as error:
        raise DataError(f"{path} is not a dataset that grb has cached ({str(error)[:80]}); remove it") from None


def _pattern(stored: dict[str, Array], starts: str, columns: str, width: int) -> Pattern:
    """A checked pattern, because an index out of range makes torch read foreign memory."""
    indptr, indices = stored[starts], stored[columns]
    ends = len(indptr) and indptr[0] == 0 and indptr[-1] == len(indices) and (np.diff(indptr) >= 0).all()
    if not ends or (len(indices) and (indices.min() < 0 or indices.max() >= width)):
        raise ValueError(f"'{columns}' does not fit '{starts}'")
    return Pattern(torch.from_numpy(indptr), torch.from_numpy(indices), width)
