"""Data frames of pandas, and Parquet files, as arrays: one row per node, one row per edge."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grb.dataset import folder
from grb.dataset.categories import MOST, encode
from grb.dataset.columns import ID, LABEL, SOURCE, SPLIT, TARGET, WEIGHT, Columns, identifiers
from grb.dataset.folder import classes_of
from grb.dataset.node_tables import parts_of
from grb.dataset.raw_arrays import Array, RawArrays
from grb.dataset.tables import is_missing
from grb.dataset.time_split import as_times, time_split
from grb.errors import DataError, require


def from_frames(
    nodes: Any,
    edges: Any,
    *,
    columns: Mapping[str, str | None] | Columns | None = None,
    leave_out: Sequence[str] = (),
    name: str = "custom",
) -> RawArrays:
    """Arrays from two data frames of pandas.

    Args:
        nodes: One row per node: its id, its label, features (numbers, booleans, dates are refused, words become columns of 0
            and 1), and perhaps its part of a split or a time. Without an id column the index names the nodes.
        edges: One row per edge: the ids of both ends, and perhaps a weight.
        columns: Names of columns by role where they are not the usual ones.
        leave_out: Columns that are no features.
        name: Name shown in tables.
    """
    for what, frame in (("nodes", nodes), ("edges", edges)):
        if not hasattr(frame, "columns") or not hasattr(frame, "iloc"):
            raise DataError(f"{what} is a {type(frame).__name__}, but a pandas DataFrame is needed")
    roles = Columns.of(columns)
    notes: list[str] = []
    header = [str(column) for column in nodes.columns]
    found = _roles(header, roles)
    ids = _texts(nodes.iloc[:, found["id"]]) if found["id"] is not None else [str(each) for each in nodes.index]
    if len(set(ids)) != len(ids):
        twice = Counter(ids).most_common(1)[0][0]
        raise DataError(f"two rows of nodes have the id '{twice}', but every node has one row")
    if found["label"] is None:
        raise DataError(f"nodes have no label column; give columns={{'label': NAME}}, one of {', '.join(header[:12])}")
    y, classes = classes_of(_texts(nodes.iloc[:, found["label"]]))
    x, feature_names = _features(nodes, header, found, leave_out, notes)
    pairs, weights = _edges(edges, roles, ids)
    splits = [split] if (split := _split(nodes, found, y, notes)) else []
    return RawArrays(
        name, len(ids), pairs, y, weights, x, None, splits, classes, ids, notes, feature_names=feature_names
    )


def is_folder(path: Path) -> bool:
    """Whether this is a folder with nodes.parquet and edges.parquet."""
    return all((path / f"{part}.parquet").is_file() for part in ("nodes", "edges"))


def read_tables(
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str | None] | Columns | None = None,
    leave_out: Sequence[str] = (),
    **text: Any,
) -> RawArrays:
    """Arrays of a folder of Parquet files, or of text files (:func:`grb.dataset.folder.from_csv`), of which ``text`` is."""
    path = Path(path)
    if not is_folder(path) or folder.is_folder(path):
        return folder.from_csv(path, columns=columns, leave_out=leave_out, **text)
    named = [name for name, value in text.items() if value not in (None, "refuse")]
    if named:
        raise DataError(f"{named[0]} is about text files, but {path} has Parquet files; leave it out")
    nodes, edges = (read_parquet(path / f"{part}.parquet") for part in ("nodes", "edges"))
    return from_frames(nodes, edges, columns=columns, leave_out=leave_out, name=path.resolve().name)


def read_parquet(path: str | os.PathLike[str]) -> Any:
    """A Parquet file as a data frame; needs the extra ``parquet``."""
    require("pyarrow", extra="parquet", what="a Parquet file")
    pandas = require("pandas", extra="parquet", what="a Parquet file")
    if not Path(path).is_file():
        raise DataError(f"{path} does not exist; a Parquet file, as DataFrame.to_parquet writes it, is needed")
    try:
        return pandas.read_parquet(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is no Parquet file ({str(error)[:80]})") from None


def _roles(header: Sequence[str], roles: Columns) -> dict[str, int | None]:
    lower = [name.strip().lower() for name in header]
    known = {"id": ID, "label": LABEL, "split": SPLIT, "time": ()}
    given = {role: roles.find(role, header, "the frame of nodes") for role in known}
    found: dict[str, int | None] = {}
    for role, names in known.items():
        guesses = [at for at, name in enumerate(lower) if name in names and at not in given.values()]
        found[role] = given[role] if given[role] is not None else (guesses[0] if guesses else None)
    if found["id"] is None:
        free = [at for at in identifiers(header) if at not in found.values()]
        found["id"] = free[0] if len(free) == 1 or (free and free[0] == 0) else None
    return found


def _texts(column: Any) -> list[str]:
    """Cells as text; whole numbers that a missing value has made floats are whole again."""
    if column.dtype.kind == "f" and np.all(np.isnan(column) | (column % 1 == 0)):
        return ["" if np.isnan(cell) else str(int(cell)) for cell in column]
    if column.dtype.kind == "b":
        return [str(int(cell)) for cell in column]
    return ["" if cell is None or cell != cell else str(cell).strip() for cell in column]


def _features(
    nodes: Any, header: Sequence[str], found: Mapping[str, int | None], leave_out: Sequence[str], notes: list[str]
) -> tuple[Array | None, list[str] | None]:
    dropped = {name.strip().lower() for name in leave_out}
    if unknown := dropped - {name.strip().lower() for name in header}:
        raise DataError(f"column '{sorted(unknown)[0]}' is to be left out, but there are {', '.join(header[:12])}")
    others = [at for at in identifiers(header) if at not in found.values()]
    if others:
        notes.append(f"{', '.join(header[at] for at in others)} identifies something and is no feature")
    used = {*found.values(), *others}
    kept = [at for at in range(len(header)) if at not in used and header[at].strip().lower() not in dropped]
    numbers, names, words, titles = [], [], [], []
    for at in kept:
        column = nodes.iloc[:, at]
        if column.dtype.kind in "iufb":
            numbers.append(column.to_numpy().astype(np.float32))
            names.append(header[at])
            continue
        cells = _texts(column)
        different = len({cell for cell in cells if not is_missing(cell)})
        if column.dtype.kind == "M" or different > min(MOST, max(2, len(cells) // 2)):
            raise DataError(
                f"column '{header[at]}' holds {column.dtype} with {different} different values, but features are numbers or a "
                f"few words; encode it, or leave_out=['{header[at]}']"
            )
        words.append(cells)
        titles.append(header[at])
    if words:
        encoded, more = encode(words, titles)
        notes.append(f"{len(words)} columns of words became {len(more)} columns of 0 and 1")
        numbers += list(encoded.T)
        names += more
    return (np.stack(numbers, axis=1), names) if numbers else (None, None)


def _edges(edges: Any, roles: Columns, ids: Sequence[str]) -> tuple[Array, Array | None]:
    header = [str(column) for column in edges.columns]
    lower = [name.strip().lower() for name in header]
    ends: list[int] = []
    for role, known in (("source", SOURCE), ("target", TARGET)):
        at = roles.find(role, header, "the frame of edges")
        guesses = [place for place, name in enumerate(lower) if name in known]
        if at is None and not guesses:
            raise DataError(
                f"edges have columns {', '.join(header[:6])}, but none named {role}; give columns={{'{role}': NAME}}"
            )
        ends.append(at if at is not None else guesses[0])
    where = {name: index for index, name in enumerate(ids)}
    pairs = []
    for at in ends:
        cells = _texts(edges.iloc[:, at])
        places = np.fromiter((where.get(cell, -1) for cell in cells), dtype=np.int64, count=len(cells))
        if (places < 0).any():
            row = int(np.flatnonzero(places < 0)[0])
            raise DataError(f"row {row} of edges names node '{cells[row]}', which the frame of nodes does not have")
        pairs.append(places)
    at = roles.find("weight", header, "the frame of edges")
    if at is None:
        at = next((place for place, name in enumerate(lower) if name in WEIGHT and place not in ends), None)
    return np.stack(pairs), None if at is None else edges.iloc[:, at].to_numpy().astype(np.float32)


def _split(nodes: Any, found: Mapping[str, int | None], y: Array, notes: list[str]) -> dict[str, Array]:
    if found["split"] is not None:
        return parts_of(_texts(nodes.iloc[:, found["split"]]))
    if found["time"] is None:
        return {}
    name = str(nodes.columns[found["time"]])
    notes.append(f"split by time: the earliest by '{name}' train, the latest test")
    return time_split(as_times(_texts(nodes.iloc[:, found["time"]]), name), y >= 0)
