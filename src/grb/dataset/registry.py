"""Where datasets are found: the environment is read at call time, nothing is written, nothing is downloaded here."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from grb.catalogue import canonical
from grb.errors import MissingDataset

FILES = ("adj.npz", "features.npz", "labels.npz", "index.npz")
EMBEDDED = ("synth-cora", "synth-tiny", "synth-graphs")
REBUILT = {"flickr-rebuilt": "flickr", "reddit-rebuilt": "reddit"}


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
    """Directory with all four npz files of a GRB dataset, or with those of them that are asked for.

    Looked for as ``<root>/GRB/<name>``, ``<root>/<name>`` and, for ``data_dir`` alone, the directory itself.
    """
    name = canonical("dataset", name)
    places = [place for root in roots(data_dir) for place in (root / "GRB" / name, root / name)]
    if data_dir is not None:
        places.insert(0, Path(data_dir).expanduser())
    incomplete = ""
    for place in places:
        missing = [file for file in files if not (place / file).is_file()]
        if not missing:
            return place
        if len(missing) < len(files) and not incomplete:
            incomplete = f" {place} lacks {', '.join(missing)}."
            if missing == ["features.npz"]:
                incomplete += " Its graph, labels and split are there (grb.dataset.storage.read_structure reads them)."
    searched = ", ".join(str(root) for root in roots(data_dir))
    raise MissingDataset(
        f"dataset '{name}' is not on this machine (searched {searched}).{incomplete}",
        f"Run `grb data get {name}` (with `--from DIR` if you have its files), or put {', '.join(FILES)} into "
        f"<root>/GRB/{name} and set GRB_DATA=<root>, or try the embedded 'synth-cora'.",
    )
