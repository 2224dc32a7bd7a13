"""Names of datasets and where their files are: imports nothing heavy, writes nothing, downloads nothing.

The environment is read at call time.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from grb.catalogue import canonical, entries
from grb.dataset.sources import SOURCES, Source
from grb.errors import DataError, MissingDataset, UnknownName

if TYPE_CHECKING:
    from grb.dataset.dataset import Dataset

Difficulty = Literal["easy", "medium", "hard", "full"]
DIFFICULTIES: tuple[Difficulty, ...] = ("easy", "medium", "hard", "full")
FILES = ("adj.npz", "features.npz", "labels.npz", "index.npz")
EMBEDDED = ("synth-cora", "synth-tiny", "synth-graphs")
REBUILT = {"flickr-rebuilt": "flickr", "reddit-rebuilt": "reddit"}
TEXT_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")


def check_difficulty(mode: str) -> Difficulty:
    """The name of a difficulty; any other name is refused."""
    for known in DIFFICULTIES:
        if mode == known:
            return known
    raise UnknownName("difficulty", str(mode), DIFFICULTIES, advice=f"Allowed: {', '.join(DIFFICULTIES)}.")


def is_path(name: object) -> bool:
    """Whether this names a file or directory and not an entry of the catalogue."""
    return isinstance(name, str) and (name.endswith((".npz", *TEXT_SUFFIXES)) or os.sep in name)


def dataset_reference(name: str, dataset: Dataset | None = None) -> str:
    """What another process finds a dataset by; :func:`~grb.dataset.load_dataset` accepts all three forms.

    Args:
        name: A catalogue name or alias, ``package.module:function``, or the path of a folder or file.
        dataset: The loaded dataset, if there is one; only a clearer refusal is made from it.

    Returns:
        The catalogue name, ``package.module:function``, or the absolute path.

    >>> dataset_reference("synth-tiny"), dataset_reference("my_package.data:load")
    ('synth-tiny', 'my_package.data:load')
    """
    if is_path(name):
        return str(Path(name).absolute())
    if ":" in name:
        return name
    try:
        return canonical("dataset", name)
    except UnknownName:
        if dataset is None:
            raise
        raise DataError(
            f"dataset '{name}' exists in this process only, so that no other process finds it; write it with "
            "grb.dataset.storage.save and use its path, or name the function that makes it as package.module:function"
        ) from None


def has_files(name: str) -> bool:
    """Whether a dataset of the catalogue is read from the four files of GRB; others are embedded, raw files or code."""
    return name not in (*EMBEDDED, *SOURCES) and entries("dataset")[name].target == "grb.dataset.dataset:Dataset"


def home() -> Path:
    """``$GRB_HOME``, or ``grb`` in the user's cache directory."""
    if os.environ.get("GRB_HOME"):
        return Path(os.environ["GRB_HOME"]).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "grb"


def roots(data_dir: str | os.PathLike[str] | None = None) -> list[Path]:
    """Directories searched for datasets, in order: the argument, ``$GRB_DATA``, the cache."""
    listed = [Path(part).expanduser() for part in os.environ.get("GRB_DATA", "").split(os.pathsep) if part]
    first = [] if data_dir is None else [Path(data_dir).expanduser()]
    return [*first, *listed, home() / "data"]


def offline() -> bool:
    """Whether ``$GRB_OFFLINE`` forbids the network."""
    return os.environ.get("GRB_OFFLINE", "") not in ("", "0")


def find(name: str, data_dir: str | os.PathLike[str] | None = None, *, files: Collection[str] = FILES) -> Path:
    """Directory of a dataset (a file for datasets made of one npz file of arrays); a missing one is refused with a remedy.

    GRB datasets are looked for as ``<root>/GRB/<name>``, ``<root>/<name>`` and, for ``data_dir`` alone, the directory
    itself; others by the place of their raw files below a root.

    Args:
        name: A dataset of the catalogue.
        data_dir: Directory to search before ``$GRB_DATA`` and the cache.
        files: Files that the directory of a GRB dataset must have.
    """
    name = canonical("dataset", name)
    searched = roots(data_dir)
    if name in SOURCES:
        places = [_raw_place(root, SOURCES[name]) for root in searched]
    else:
        places = [place for root in searched for place in (root / "GRB" / name, root / name)]
        if data_dir is not None:
            places.insert(0, Path(data_dir).expanduser())
    incomplete = ""
    for place in places:
        missing = _missing(place, name, files)
        if not missing:
            return place
        if len(missing) < len(files) and name not in SOURCES and not incomplete:
            incomplete = f" {place} lacks {', '.join(missing)}."
            if missing == ["features.npz"]:
                incomplete += " grb.dataset.storage.read_directory(directory, features=False) reads its other files."
    what = f"dataset '{name}' is not on this machine (searched {', '.join(map(str, searched))}).{incomplete}"
    raise MissingDataset(what, advice(name))


def _raw_place(root: Path, source: Source) -> Path:
    if source.loader == "nx":
        return root / "nx" / f"{source.name}_edges.npz"
    return root / "ogb" if source.loader == "ogb" else root / source.loader / source.folder


def source_files(place: Path, source: Source) -> list[Path]:
    """The raw files of a public dataset, sorted."""
    folder = place / source.folder if source.loader == "ogb" else place / "raw"
    return sorted(path for path in (folder.rglob("*") if place.is_dir() else [place]) if path.is_file())


def _missing(place: Path, name: str, files: Collection[str]) -> list[str]:
    """What the place of a dataset lacks."""
    source = SOURCES.get(name)
    if source is None:
        return [file for file in files if not (place / file).is_file()]
    if source.loader == "nx":
        return [] if place.is_file() else [place.name]
    if source.loader == "ogb":
        return [] if (place / source.folder).is_dir() else [source.folder]
    raw = place / "raw"
    if not raw.is_dir() or not any(raw.iterdir()):
        return ["raw"]
    return [file for file in source.files if not (raw / file).exists()]


def advice(name: str) -> str:
    """How to get the files of a dataset, in one sentence."""
    source = SOURCES.get(name)
    if source is None:
        return (
            f"Run `grb data get {name}` (with `--from DIR` if you have its files), or put {', '.join(FILES)} into "
            f"<root>/GRB/{name} and set GRB_DATA=<root>, or try the embedded 'synth-cora'."
        )
    if source.loader == "nx":
        return f"Put {source.name}_edges.npz (edges, edge_ptr, num_nodes) into <root>/nx and set GRB_DATA=<root>."
    if source.loader == "ogb":
        return f"Let the ogb package download it into <root>/ogb/{source.folder} and set GRB_DATA=<root>."
    folder = "/".join(part for part in (source.loader, source.folder, "raw") if part)
    return f"Put its raw files into <root>/{folder}, or let torch_geometric do it ({source.call}), and set GRB_DATA=<root>."
