"""The arrays of a dataset by its catalogue name: embedded, in the layout of GRB, or from public raw files.

Public raw files are found below ``$GRB_DATA``, read once, and cached as one npz file. Nothing is written beside them. Their
graphs are made undirected, edge attributes are dropped; the notes say so.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import replace
from pathlib import Path

from grb import catalogue
from grb.dataset import ogb, pathlengths, pyg, raw_arrays, registry, storage, synthetic
from grb.dataset.fresh import fresh
from grb.dataset.raw_arrays import RawArrays
from grb.dataset.registry import SOURCES, Source
from grb.errors import DataError, MissingDataset

# raised when the arrays of a dataset change
VERSION = 2


def read_named(name: str, data_dir: str | os.PathLike[str] | None = None) -> RawArrays:
    """The arrays of a dataset of the catalogue.

    Args:
        name: A name that ``grb ls datasets`` shows, plug-ins excepted.
        data_dir: Directory to search before ``$GRB_DATA`` and the cache.
    """
    name = catalogue.canonical("dataset", name)
    if name in registry.FRESH:
        return replace(fresh(read_named(registry.FRESH[name], data_dir)), name=name)
    if name in SOURCES:
        return _cached(name, SOURCES[name], registry.find(name, data_dir)).with_own_scheme()
    if name in registry.EMBEDDED:
        return synthetic.load(name)
    raw = replace(storage.read_directory(_directory(name, data_dir)), name=name)
    if name in catalogue.preset("datasets"):
        storage.check_statistics(raw.graph()[0], name, f"the files of '{name}'")
    if name in registry.REBUILT:
        note = "rebuilt from its public source under our own split; not the files of GRB"
        raw = replace(raw, notes=[*raw.notes, note])
    return raw


def _directory(name: str, data_dir: str | os.PathLike[str] | None) -> Path:
    """The directory of a dataset; if it is nowhere on this machine, it is downloaded unless ``$GRB_OFFLINE`` is set."""
    try:
        return registry.find(name, data_dir)
    except MissingDataset as missing:
        from grb.dataset import download  # the network is rarely needed

        return download.obtain(name, missing)


def _cached(name: str, source: Source, place: Path) -> RawArrays:
    """From the cache if the raw files are those that it was made from, else from them."""
    path = registry.home() / "data" / "external" / f"{name}-{_stamp(place, source)}.npz"
    if path.is_file():
        try:
            return raw_arrays.load(path, name)
        except DataError:
            path.unlink(missing_ok=True)  # torn or foreign: made again
    found = raw_arrays.save(replace(_read(source, place), name=name), path)
    for other in path.parent.glob(f"{name}-????????????.npz"):
        if other != path:
            other.unlink(missing_ok=True)
    return found


def _read(source: Source, place: Path) -> RawArrays:
    if source.loader == "nx":
        return pathlengths.read(place, source.title, source.options["bins"])
    if source.loader == "ogb":
        return ogb.read(source, place)
    with tempfile.TemporaryDirectory(prefix="grb-raw-") as stage:
        return pyg.read(source, place, Path(stage))


def _stamp(place: Path, source: Source) -> str:
    """Changes when the names, sizes or times of the raw files do, so that large ones need not be read."""
    digest = hashlib.sha256(f"{VERSION} {source}".encode())
    for path in registry.source_files(place, source):
        facts = path.stat()
        digest.update(f"{path.name} {facts.st_size} {facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:12]
