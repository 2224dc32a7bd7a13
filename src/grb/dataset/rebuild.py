"""flickr and reddit from the public files that torch_geometric reads, under our own split.

The public graphs have as many nodes, edges, features and classes as grb-flickr and grb-reddit, which is checked. The split of
GRB's files cannot be had from them: here it is the paper's splitting scheme with a fixed seed, and the features are those of
the source. So scores differ from scores on GRB's files, and the names differ too: ``flickr-rebuilt``, ``reddit-rebuilt``.

The raw files are looked for in ``<root>/Flickr/raw`` and ``<root>/Reddit2/raw`` for every root of ``$GRB_DATA``, then in the
cache, then downloaded by us: torch_geometric's own download does not check certificates.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from grb.dataset import registry, storage
from grb.dataset.splits import difficulty_split
from grb.dataset.transfer import DownloadError, Limits, Progress, Refused, download, host
from grb.errors import DataError, UnknownName
from grb.graph import Graph, convert

SEED = 0
"""Random seed of the split; part of what the names ``flickr-rebuilt`` and ``reddit-rebuilt`` mean, so it never changes."""

# raw file -> attribute of torch_geometric's class with its id on Google Drive
RAW = {"adj_full.npz": "adj_full_id", "feats.npy": "feats_id", "class_map.json": "class_map_id", "role.json": "role_id"}
GOOGLE = "https://drive.usercontent.google.com/download?id={}&confirm=t"


@dataclass(frozen=True)
class Source:
    """A public dataset: its class in ``torch_geometric.datasets`` and the paper's dataset made from the same graph."""

    pyg: str
    paper: str


# Reddit2, not Reddit: it has the 11,606,919 edges of the paper, Reddit has five times as many
SOURCES = {"flickr": Source("Flickr", "grb-flickr"), "reddit": Source("Reddit2", "grb-reddit")}


def rebuild(
    name: str,
    root: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    progress: Progress | None = None,
    limits: Limits | None = None,
) -> Path:
    """Make ``flickr-rebuilt`` or ``reddit-rebuilt`` and put it into the cache.

    Args:
        name: ``flickr`` or ``reddit``.
        root: Directory for torch_geometric, with the raw files in ``raw/`` or without; in the cache if not given.
        force: Make it again even if the cache has it.
        progress: Called for every piece that arrives.
        limits: Limits of every download.

    Returns:
        The directory with its four npz files.

    Raises:
        DownloadError: If the raw files are not here and cannot be got.
        DataError: If they are not those of the paper's graph.
    """
    if name not in SOURCES:
        raise UnknownName("rebuild", name, SOURCES, advice=f"Allowed: {', '.join(SOURCES)}.")
    source, final = SOURCES[name], f"{name}-rebuilt"
    if storage.is_complete(storage.cache_directory(final)) and not force:
        return storage.cache_directory(final)
    folder = Path(root).expanduser() if root is not None else registry.home() / "data" / source.pyg
    _provide_raw(final, source, folder / "raw", progress, limits or Limits())
    graph = _graph(final, source, folder)
    index = difficulty_split(graph.adj.degrees.numpy(), np.random.default_rng(SEED))
    with storage.staged(final, force=force) as stage:
        storage.write_directory(stage, graph, index)
    return storage.cache_directory(final)


def _provide_raw(final: str, source: Source, raw: Path, progress: Progress | None, limits: Limits) -> None:
    """Fill ``raw`` from ``$GRB_DATA`` or the network; whatever is there already stays."""
    absent = [file for file in RAW if not (raw / file).is_file()]
    if not absent:
        return
    try:
        raw.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot write {raw}: {error.strerror}; set GRB_HOME to another directory") from None
    for place in (root / source.pyg / "raw" for root in registry.roots()[:-1]):
        if all((place / file).is_file() for file in absent):
            for file in absent:
                _link(place / file, raw / file)
            return
    if registry.offline():
        raise DownloadError(
            final, f"GRB_OFFLINE forbids the network, and no root of GRB_DATA has {source.pyg}/raw/{absent[0]}"
        )
    pyg = _pyg_class(source)
    for file in absent:
        url = GOOGLE.format(getattr(pyg, RAW[file]))
        try:
            download(url, raw / file, limits=limits, progress=progress)
        except Refused as refused:
            raise DownloadError(
                final, f"{host(url)}: {file} {refused}; its raw files may also be in <root>/{source.pyg}/raw"
            ) from None


def _link(file: Path, target: Path) -> None:
    """A link where there can be one: torch_geometric writes beside its raw files, and ``$GRB_DATA`` stays as it is."""
    with contextlib.suppress(FileExistsError):
        try:
            os.symlink(file.absolute(), target)
        except FileExistsError:
            raise
        except OSError:
            shutil.copyfile(file, target)


def _pyg_class(source: Source) -> Any:
    import torch_geometric.datasets

    return getattr(torch_geometric.datasets, source.pyg)


def _graph(final: str, source: Source, folder: Path) -> Graph:
    try:
        data = _pyg_class(source)(str(folder))[0]
    except Exception as error:  # whatever torch_geometric, numpy or json say about a broken file
        reason = " ".join(str(error).split())[:100]
        raise DataError(
            f"{final} cannot be made from {folder} ({type(error).__name__}: {reason}); "
            "delete that directory and try again"
        ) from None
    graph, _ = convert.from_pyg(data, mode="canonicalise")
    if graph.y is None or graph.y.dim() != 1:
        raise DataError(f"{final} needs one class per node, but {source.pyg} in {folder} has none")
    storage.check_statistics(graph, source.paper, f"the raw files of {final}")
    return graph
