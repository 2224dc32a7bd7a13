"""Where the raw files of public datasets lie; looks, and reads or writes nothing."""

from __future__ import annotations

import os
from pathlib import Path

from grb.catalogue import canonical
from grb.dataset import registry
from grb.dataset.sources import SOURCES, Source
from grb.errors import MissingDataset


def find(name: str, data_dir: str | os.PathLike[str] | None = None) -> Path:
    """Directory with the ``raw/`` of a dataset (a file for those made of arrays); absent ones are named with a remedy."""
    source = SOURCES[canonical("dataset", name)]
    searched = registry.roots(data_dir)
    for root in searched:
        place = _place(root, source)
        if place is not None:
            return place
    where = ", ".join(str(root) for root in searched)
    raise MissingDataset(f"dataset '{name}' is not on this machine (searched {where}).", advice(source))


def _place(root: Path, source: Source) -> Path | None:
    if source.loader == "nx":
        path = root / "nx" / f"{source.name}_edges.npz"
        return path if path.is_file() else None
    if source.loader == "ogb":
        return root / "ogb" if (root / "ogb" / source.folder).is_dir() else None
    folder = root / source.loader / source.folder
    there = (folder / "raw").is_dir() and any((folder / "raw").iterdir())
    return folder if there and all((folder / "raw" / file).exists() for file in source.files) else None


def advice(source: Source) -> str:
    """How to get the raw files, in one sentence."""
    if source.loader == "nx":
        return f"Put {source.name}_edges.npz (edges, edge_ptr, num_nodes) into <root>/nx and set GRB_DATA=<root>."
    if source.loader == "ogb":
        return f"Let the ogb package download it into <root>/ogb/{source.folder} and set GRB_DATA=<root>."
    folder = "/".join(part for part in (source.loader, source.folder, "raw") if part)
    return f"Put its raw files into <root>/{folder}, or let torch_geometric do it ({source.call}), and set GRB_DATA=<root>."
