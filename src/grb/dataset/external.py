"""Public datasets from raw files on this machine: found below ``$GRB_DATA``, read once, kept as one npz in the cache.

Nothing is downloaded and nothing is written beside the raw files. Graphs are made undirected, edge attributes are dropped;
``Dataset.notes`` say so.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from grb.catalogue import canonical
from grb.dataset import raw, registry
from grb.dataset.locate import find
from grb.dataset.partition import Split
from grb.dataset.scheme import Folds, Predefined, Random, Scheme
from grb.dataset.sources import SOURCES, Source
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.dataset.dataset import Dataset

# raised when the arrays of a dataset change
VERSION = 1


def load(name: str, data_dir: str | os.PathLike[str] | None = None) -> Dataset:
    """A dataset of :data:`~grb.dataset.sources.SOURCES` by name, with its own splits, folds or random splits.

    Its first split is in force; :meth:`Dataset.with_split` gives the others.

    Args:
        data_dir: Where to look before ``$GRB_DATA`` and the cache.
    """
    from grb.dataset.dataset import Dataset

    name = canonical("dataset", name)
    source = SOURCES[name]
    found = _kept(name, source, find(name, data_dir))
    scheme = scheme_of(found, source.splitting)
    return Dataset.of_graph(
        found.graph, scheme, name=name, title=source.title, task=source.task, notes=list(found.notes)
    )


def scheme_of(found: raw.Raw, splitting: str) -> Scheme:
    """Where the splits of a dataset come from."""
    graph = found.graph
    assert graph.y is not None
    items = graph.n if graph.ptr is None else graph.num_graphs
    if splitting == "folds":
        return Folds(graph.y)
    if splitting == "random":
        return Random(items)
    return Predefined([Split.build(train, val, {"full": test}, items) for train, val, test in found.splits])


def _kept(name: str, source: Source, place: Path) -> raw.Raw:
    """From the cache if the raw files are those that it was made from, else from them."""
    path = registry.home() / "data" / "external" / f"{name}-{_stamp(place, source)}.npz"
    if path.is_file():
        try:
            return raw.load(path)
        except DataError:
            path.unlink(missing_ok=True)  # torn or foreign: made again
    found = _read(source, place)
    raw.save(found, path)
    for other in path.parent.glob(f"{name}-????????????.npz"):
        if other != path:
            other.unlink(missing_ok=True)
    return found


def _read(source: Source, place: Path) -> raw.Raw:
    if source.loader == "nx":
        from grb.dataset import pathlengths

        return pathlengths.read(place, source.options["bins"])
    if source.loader == "ogb":
        from grb.dataset import ogb, ogb_nodes

        return (ogb_nodes if source.task == "node" else ogb).read(source, place)
    from grb.dataset import pyg

    with tempfile.TemporaryDirectory(prefix="grb-raw-") as stage:
        return pyg.read(source, place, Path(stage))


def _stamp(place: Path, source: Source) -> str:
    """Changes when the raw files do: of their names, sizes and times, so that large ones need not be read."""
    folder = place / source.folder if source.loader == "ogb" else place / "raw"
    listed = sorted(folder.rglob("*")) if place.is_dir() else [place]
    digest = hashlib.sha256(f"{VERSION} {source}".encode())
    for path in listed:
        if path.is_file():
            facts = path.stat()
            digest.update(f"{path.name} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:12]
