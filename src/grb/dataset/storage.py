"""A dataset as a directory of four npz files, the layout of GRB: reading it, and writing it whole or not at all.

``adj.npz`` is a scipy CSR matrix, ``features.npz`` and ``labels.npz`` hold one array ``data``, ``index.npz`` holds the ids
``index_train``, ``index_val``, ``index_test_easy``, ``index_test_medium``, ``index_test_hard`` and ``index_test``.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from grb import catalogue
from grb.dataset import registry
from grb.dataset.original_names import KINDS, OriginalNames
from grb.dataset.raw_arrays import RawArrays, count_classes
from grb.dataset.splits import split_from_parts
from grb.errors import DataError
from grb.graph import Adjacency, Graph, adjacency_from_csr
from grb.graph.files import read_npz, write_npz
from grb.graph.validate import check_features, check_labels

if TYPE_CHECKING:
    from grb.dataset.dataset import Dataset

Array = np.ndarray[Any, Any]
PARTS = {
    "train": "index_train",
    "val": "index_val",
    "easy": "index_test_easy",
    "medium": "index_test_medium",
    "hard": "index_test_hard",
    "full": "index_test",
}
NAMES = "names.npz"
# a stage that nobody has touched for a day belongs to a process that was killed
ABANDONED = 24 * 3600.0


def read_adjacency(directory: str | os.PathLike[str]) -> tuple[Adjacency, list[str]]:
    """The edges of a dataset's directory, and notes on what was repaired."""
    stored = read_npz(Path(directory) / "adj.npz", required=["indices", "indptr", "shape", "data"])
    return adjacency_from_csr(stored["indptr"], stored["indices"], stored["data"], stored["shape"])


def read_directory(directory: str | os.PathLike[str], *, features: bool = True) -> RawArrays:
    """The arrays of a dataset's directory.

    Args:
        directory: Directory with ``adj.npz``, ``labels.npz``, ``index.npz`` and ``features.npz``.
        features: Read the features; without them ``features.npz`` may be missing.
    """
    directory = Path(directory)
    adj, notes = read_adjacency(directory)
    labels = check_labels(read_npz(directory / "labels.npz", required=["data"])["data"], adj.n)
    index = read_npz(directory / "index.npz", required=["index_train", "index_val"])
    split = {part: index[key] for part, key in PARTS.items() if key in index}
    x = None
    if features:
        x = check_features(read_npz(directory / "features.npz", required=["data"])["data"], adj.n)
    raw = RawArrays(directory.resolve().name, adj.n, adj, labels, x=x, splits=[split], notes=notes)
    return _named(raw, directory / NAMES) if (directory / NAMES).is_file() else raw


def _named(raw: RawArrays, path: Path) -> RawArrays:
    """With the names that the user's own files had."""
    sizes = {"nodes": raw.n, "classes": count_classes(raw.y), "features": 0 if raw.x is None else raw.x.shape[1]}
    stored = read_npz(path, required=[], allowed=KINDS)
    if raw.x is None:
        stored.pop("features", None)
    names = OriginalNames.from_arrays(stored, sizes, path)
    return replace(raw, ids=names.nodes, classes=names.classes, feature_names=names.features)


def check_directory(name: str, directory: Path) -> None:
    """Refuse a directory whose files are broken, or are not those of the paper's dataset of that name."""
    raw = read_directory(directory)
    graph, _ = raw.graph()
    split_from_parts(raw.splits[0], raw.n).check_labelled(raw.y)
    if name in catalogue.preset("datasets"):
        check_statistics(graph, name, f"the files of '{name}'")


def check_statistics(graph: Graph, paper: str, what: str) -> None:
    """Refuse a graph whose sizes are not those that the paper prints for its dataset ``paper``."""
    expected = catalogue.preset("datasets")[paper]
    classes = 0 if graph.y is None else count_classes(graph.y)
    found = {"nodes": graph.n, "edges": graph.num_edges, "features": graph.num_features, "classes": classes}
    for key, value in found.items():
        if value != expected[key]:
            raise DataError(f"{what} have {value} {key}, but {paper} of the paper has {expected[key]}; get them again")


def index_arrays(parts: Mapping[str, Any]) -> dict[str, Array]:
    """The arrays of an ``index.npz`` from the parts of a split; ``index_test``, if not given, is all test nodes."""
    arrays = {str(key): np.asarray(ids) for key, ids in parts.items()}
    if "index_test" in arrays:
        return arrays
    tests = [arrays[PARTS[band]] for band in ("easy", "medium", "hard")]
    return {**arrays, "index_test": np.sort(np.concatenate(tests))}


def write_directory(directory: Path, graph: Graph, parts: Mapping[str, Any]) -> None:
    """Write a graph and its difficulty split in the layout of GRB; scipy and numpy read it too."""
    assert isinstance(graph.x, Tensor) and graph.y is not None
    pattern = graph.adj.pattern
    values = np.ones(pattern.entries, dtype=np.float32) if graph.adj.values is None else graph.adj.values.numpy()
    csr = {
        "indices": pattern.indices.numpy(),
        "indptr": pattern.indptr.numpy(),
        "format": np.array(b"csr"),
        "shape": np.array(pattern.shape, dtype=np.int64),
        "data": values,
    }
    write_npz(directory / "adj.npz", csr)
    write_npz(directory / "features.npz", {"data": graph.x.numpy()})
    write_npz(directory / "labels.npz", {"data": graph.y.numpy()})
    write_npz(directory / "index.npz", index_arrays(parts))


def save(dataset: Dataset, directory: str | os.PathLike[str]) -> Path:
    """Write any dataset of one graph as a directory in the layout of GRB, whole or not at all; ``load_dataset`` takes its path.

    Features are written as they are used, so that they are not normalised again when they are read.
    """
    final = Path(directory)
    if dataset.graph.ptr is not None:
        raise DataError(f"'{dataset.name}' is a collection of graphs, but the layout of GRB has one graph")
    if final.exists() and (not final.is_dir() or any(final.iterdir())):
        raise DataError(f"{final} exists already; choose another path, or remove it")
    parts = {"train": dataset.split.train, "val": dataset.split.val, **dataset.split.test}
    graph = dataset.graph.with_features(dataset.features)
    if graph.adj.features is not None:
        raise DataError(f"'{dataset.name}' has edge features, but the layout of GRB has none; write an npz of arrays")
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(dir=final.parent, prefix=f".{final.name}.", suffix=".part"))
    except OSError as error:
        raise DataError(f"cannot write {final}: {error.strerror}; choose another path") from None
    try:
        write_directory(stage, graph, {PARTS[part]: ids.numpy() for part, ids in parts.items()})
        if not dataset.names.is_empty:
            write_npz(stage / NAMES, dataset.names.to_arrays())
        _publish(stage, final, force=False)
    except OSError as error:
        raise DataError(f"cannot write {final}: {error.strerror}; choose another path") from None
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return final


def cache_directory(name: str) -> Path:
    """Directory in which the cache keeps a dataset."""
    return registry.home() / "data" / "GRB" / name


def is_complete(directory: Path) -> bool:
    """Whether a directory has all four files of the layout of GRB."""
    return all((directory / file).is_file() for file in registry.FILES)


@contextmanager
def staged(name: str, *, force: bool = False) -> Iterator[Path]:
    """A temporary directory that becomes the cache's directory of a dataset if the block succeeds, and vanishes if not.

    So a dataset is in the cache whole or not at all. If another process has put it there meanwhile, that one stays, unless
    ``force`` asks for this one; an incomplete directory is replaced.
    """
    final = cache_directory(name)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        _sweep(final)
        stage = Path(tempfile.mkdtemp(dir=final.parent, prefix=f".{name}.", suffix=".part"))
    except OSError as error:
        raise DataError(f"cannot write {final}: {error.strerror}; set GRB_HOME to another directory") from None
    try:
        yield stage
        _publish(stage, final, force)
    except OSError as error:
        raise DataError(
            f"cannot write {final}: {error.strerror}; make room or set GRB_HOME to another directory"
        ) from None
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _publish(stage: Path, final: Path, force: bool) -> None:
    umask = os.umask(0)
    os.umask(umask)
    stage.chmod(0o777 & ~umask)
    _sync(stage)
    aside = stage.with_suffix(".old.part")
    for _ in range(10):  # more than once only if other processes do the same at the same moment
        try:
            os.rename(stage, final)  # a directory takes the place of none or of an empty one, never of a full one
            break
        except OSError:
            if not final.exists():
                raise
        if is_complete(final) and not force:
            return
        try:
            os.rename(final, aside)
        except FileNotFoundError:
            continue
        shutil.rmtree(aside, ignore_errors=True)
    else:
        raise DataError(f"{final} is written by several processes at once; try again")
    _sync(final.parent)


def _sync(directory: Path) -> None:
    if not hasattr(os, "O_DIRECTORY"):
        return  # Windows cannot open a directory
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sweep(final: Path) -> None:
    for stage in final.parent.glob(f".{final.name}.*.part"):
        try:
            if time.time() - stage.stat().st_mtime > ABANDONED:
                shutil.rmtree(stage, ignore_errors=True)
        except OSError:
            continue  # its owner was faster
