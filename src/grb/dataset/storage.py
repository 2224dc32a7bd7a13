"""A dataset as a directory of four npz files, the layout of GRB: reading it, writing it, and putting it in its place whole.

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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from grb.dataset import registry
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
# a stage that nobody has touched for a day belongs to a process that was killed
ABANDONED = 24 * 3600.0


@dataclass(frozen=True, eq=False)
class Structure:
    """Everything of a dataset but its features.

    Args:
        adj: The edges.
        labels: Classes [n], or a 0/1 matrix [n, labels].
        index: Ids of ``train``, ``val`` and those of ``easy``, ``medium``, ``hard`` and ``full`` that the files have.
        notes: What was repaired.
    """

    adj: Adjacency
    labels: Tensor
    index: Mapping[str, Array]
    notes: list[str]

    def mean_degrees(self) -> dict[str, float]:
        """Mean number of neighbours of all nodes and of each part of the split."""
        degrees = self.adj.degrees.double().numpy()
        return {"all": float(degrees.mean()), **{part: float(degrees[ids].mean()) for part, ids in self.index.items()}}


def read_adjacency(directory: str | os.PathLike[str]) -> tuple[Adjacency, list[str]]:
    """The edges of a dataset's directory, and notes on what was repaired."""
    stored = read_npz(Path(directory) / "adj.npz", required=["indices", "indptr", "shape", "data"])
    return adjacency_from_csr(stored["indptr"], stored["indices"], stored["data"], stored["shape"])


def read_structure(directory: str | os.PathLike[str]) -> Structure:
    """Graph, labels and split of a dataset's directory; it need not have features."""
    directory = Path(directory)
    adj, notes = read_adjacency(directory)
    labels = check_labels(read_npz(directory / "labels.npz", required=["data"])["data"], adj.n)
    stored = read_npz(directory / "index.npz", required=["index_train", "index_val"])
    index = {part: stored[key] for part, key in PARTS.items() if key in stored}
    return Structure(adj, labels, index, notes)


def read_features(directory: str | os.PathLike[str], n: int) -> Tensor:
    """Features of a dataset's directory, [n, d]."""
    return check_features(read_npz(Path(directory) / "features.npz", required=["data"])["data"], n)


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
    """Write any dataset of one graph as a directory in the layout of GRB, whole or not at all; its path is a name of it.

    Features are written as they are used, so that they are not normalised again when they are read.
    """
    final = Path(directory)
    if dataset.graph.ptr is not None:
        raise DataError(f"'{dataset.name}' is a collection of graphs, but the layout of GRB has one graph")
    if final.exists() and (not final.is_dir() or any(final.iterdir())):
        raise DataError(f"{final} exists already; choose another place, or remove it")
    parts = {"train": dataset.split.train, "val": dataset.split.val, **dataset.split.test}
    graph = dataset.graph.with_features(dataset.features)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(dir=final.parent, prefix=f".{final.name}.", suffix=".part"))
    except OSError as error:
        raise DataError(f"cannot write {final}: {error.strerror}; choose another place") from None
    try:
        write_directory(stage, graph, {PARTS[part]: ids.numpy() for part, ids in parts.items()})
        _publish(stage, final, force=False)
    except OSError as error:
        raise DataError(f"cannot write {final}: {error.strerror}; choose another place") from None
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    return final


def place(name: str) -> Path:
    """Where the cache keeps a dataset."""
    return registry.home() / "data" / "GRB" / name


def is_complete(directory: Path) -> bool:
    return all((directory / file).is_file() for file in registry.FILES)


@contextmanager
def staged(name: str, *, force: bool = False) -> Iterator[Path]:
    """A temporary directory that becomes the cache's directory of a dataset if the block succeeds, and vanishes if not.

    So a dataset is in the cache whole or not at all. If another process has put it there meanwhile, that one stays, unless
    ``force`` asks for this one; an incomplete directory is replaced.
    """
    final = place(name)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        _sweep(final)
        stage = Path(tempfile.mkdtemp(dir=final.parent, prefix=f".{name}.", suffix=".part"))
    except OSError as error:
        raise DataError(f"cannot write {final}: {error.strerror}; set GRB_HOME to another place") from None
    try:
        yield stage
        _publish(stage, final, force)
    except OSError as error:
        raise DataError(f"cannot write {final}: {error.strerror}; make room or set GRB_HOME to another place") from None
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
