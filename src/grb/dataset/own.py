"""Datasets of the user's own: edge lists, arrays in npz files, directories in GRB's layout, or what torch_geometric has."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grb.dataset import folder, pyg, raw, storage
from grb.dataset import given as arrays
from grb.dataset.given import Given
from grb.dataset.partition import Split
from grb.dataset.scheme import Folds, Predefined, Random, Scheme
from grb.errors import DataError
from grb.graph import Graph

if TYPE_CHECKING:
    from grb.dataset.dataset import Dataset

TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


def is_path(name: object) -> bool:
    """Whether this names a file or directory and not an entry of the catalogue."""
    return isinstance(name, str) and (name.endswith((".npz", *TEXT)) or os.sep in name)


def from_path(path: str | os.PathLike[str]) -> Dataset:
    """A dataset from an npz file of arrays, from edge lists (:mod:`grb.dataset.folder`), or from a directory of GRB's layout.

    An npz file has ``edge_index`` [2, m] and ``y`` (of nodes, or of graphs), and if there are any ``x`` [n, d], ``ptr`` of a
    collection [graphs + 1], ``edge_weight`` [m], and ids ``train``, ``val``, ``test``. All but complete directories get what
    the default :class:`~grb.dataset.choices.Choices` make of them; ``notes`` say what that was.
    """
    from grb.dataset.dataset import Dataset

    path = Path(path)
    if path.is_dir() and storage.is_complete(path):
        return Dataset.from_npz(path, feat_norm=None)
    from grb.dataset.choices import prepare

    return prepare(given(path)).dataset


def given(path: str | os.PathLike[str], **reading: Any) -> Given:
    """The arrays of a path as they are, before any choice; ``reading`` goes to :func:`grb.dataset.folder.from_csv`."""
    path = Path(path)
    if path.name.endswith(TEXT) or folder.is_folder(path):
        return folder.from_csv(path, **reading)
    named = [name for name, value in reading.items() if value]
    if named:
        raise DataError(f"{named[0]} is about text files, but {path} has none; leave it out")
    if not path.exists():
        raise DataError(f"{path} does not exist; a folder with edges.csv or adj.npz, or a file of arrays, is needed")
    if path.is_dir():
        if not (path / "adj.npz").is_file():
            raise DataError(f"{path} has neither edges.csv nor adj.npz; one of them is needed")
        return arrays.from_directory(path)
    return arrays.from_arrays_file(path)


def from_pyg(data: Any, name: str) -> Dataset:
    """A dataset from a ``Data``, or from a sequence of them such as any dataset of torch_geometric."""
    from torch_geometric.data import Data

    items = [data] if isinstance(data, Data) else _items(data, name)
    if len(items) == 1:
        one = items[0]
        masks = all(getattr(one, f"{part}_mask", None) is not None for part in pyg.PARTS)
        return _dataset(pyg.single(one, "predefined" if masks else "random"), name)
    first = items[0]
    task = "node" if len(first.y) == first.num_nodes and first.num_nodes > 1 else "graph"
    return _dataset(pyg.collection(items, task), name)


def _items(data: Any, name: str) -> Sequence[Any]:
    try:
        items = [data[place] for place in range(len(data))]
    except (TypeError, KeyError, IndexError):
        items = []
    if not items or not all(hasattr(item, "edge_index") for item in items):
        raise DataError(
            f"dataset '{name}' made a {type(data).__name__}, but a grb Dataset, or Data of torch_geometric, is needed"
        )
    return items


def _dataset(found: raw.Raw, name: str) -> Dataset:
    from grb.dataset.dataset import Dataset

    graph = found.graph
    assert graph.y is not None
    graphs = graph.ptr is not None and len(graph.y) == graph.num_graphs
    scheme = _scheme(found, graph)
    return Dataset.of_graph(graph, scheme, name=name, task="graph" if graphs else "node", notes=list(found.notes))


def _scheme(found: raw.Raw, graph: Graph) -> Scheme:
    items = graph.n if graph.ptr is None else graph.num_graphs
    if found.splits:
        return Predefined([Split.build(train, val, {"full": test}, items) for train, val, test in found.splits])
    if graph.y is not None and len(graph.y) == graph.num_graphs and graph.ptr is not None:
        return Folds(graph.y)
    return Random(items)
