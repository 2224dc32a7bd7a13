"""Tables of nodes: names, features, labels, parts of a split and times, in one file or in several."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from grb.dataset import tables
from grb.dataset.categories import encode, split_numeric
from grb.dataset.columns import ID, LABEL, SPLIT, Columns, identifiers
from grb.dataset.raw_arrays import Array
from grb.dataset.tables import Table, shorten
from grb.dataset.time_split import as_times, time_split
from grb.errors import DataError
from grb.graph.files import read_npz

ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
PARTS = {
    **{part: part for part in ("train", "val", "test", "easy", "medium", "hard")},
    **dict.fromkeys(("training",), "train"),
    **dict.fromkeys(("valid", "validation", "dev"), "val"),
}
FEATURES = "features (unless it is named, as in --id COLUMN --label COLUMN of `grb data check`, or left out)"


@dataclass(frozen=True)
class Nodes:
    """The columns of a table of nodes; None for those that it does not have."""

    table: Table
    ids: Sequence[str] | None
    x: Array | None
    labels: Sequence[str] | None
    parts: Sequence[str] | None
    times: Sequence[str] | None = None
    feature_names: Sequence[str] | None = None


def find_file(folder: Path, stem: str) -> Path | None:
    """The text file of that name in a folder, with any of the usual endings."""
    found = [folder / f"{stem}{ending}" for ending in ENDINGS if (folder / f"{stem}{ending}").is_file()]
    if len(found) > 1:
        raise DataError(f"{folder} has {found[0].name} and {found[1].name}; which one is meant? Remove the other")
    return found[0] if found else None


def read_nodes(
    folder: Path, header: bool | None, leave_out: set[str], notes: list[str], columns: Columns
) -> list[Nodes]:
    """The tables of nodes that there are; the first one lists the nodes."""
    named = {name.strip().lower() for name in (columns.id, columns.label, columns.split, columns.time) if name}
    paths = {stem: find_file(folder, stem) for stem in ("nodes", "labels", "features", "split")}
    described = {
        stem: tables.describe(path, {*ID, *LABEL, *SPLIT, *named}, header=header)
        for stem, path in paths.items()
        if path is not None
    }
    if not described:
        raise DataError(
            f"{folder} has edges and no nodes; a nodes.csv (node, features, label), or a labels.csv (node, label), is needed"
        )
    known = {name for table in described.values() for name in table.header or ()}
    for name in sorted(leave_out - known):
        raise DataError(f"column '{name}' is to be left out, but there are {', '.join(sorted(known)) or 'no names'}")
    for name in sorted(named - known):
        raise DataError(f"no table of nodes has a column '{name}'; there are {', '.join(sorted(known)) or 'no names'}")
    found = [_table(stem, table, leave_out, notes, columns) for stem, table in described.items()]
    for what in ("x", "labels", "parts"):
        files_with = [each.table.path.name for each in found if getattr(each, what) is not None]
        if len(files_with) > 1:
            word = {"x": "features", "labels": "labels", "parts": "a split"}[what]
            raise DataError(f"{files_with[0]} and {files_with[1]} both have {word}; leave it out of one")
    return found


def _table(stem: str, table: Table, leave_out: set[str], notes: list[str], given: Columns) -> Nodes:
    roles = _roles(stem, table, given)
    leave_out = leave_out | _other_identifiers(stem, table, roles, leave_out, notes)
    dropped = [name for name in table.header or () if name in leave_out]
    for name in dropped:
        if table.column((name,)) in roles.values():
            raise DataError(f"column '{name}' of {table.path} is no feature, so that it cannot be left out; rename it")
    if dropped:
        notes.append(f"{table.path.name}: column {', '.join(dropped)} left out")
    features = [
        at
        for at in range(table.width)
        if at not in roles.values() and (table.header is None or table.header[at] not in leave_out)
    ]
    wanted = {role: at for role, at in roles.items() if at is not None}
    columns: dict[str, list[str]] = {role: [] for role in wanted}
    rows = 0
    for chunk in table.chunks():
        rows += len(chunk)
        for role, at in wanted.items():
            columns[role].extend([row[at].strip() for row in chunk])
    ids = columns.get("id")
    if ids is not None and len(set(ids)) != len(ids):
        _blame_twice(table, wanted["id"])
    if "split" in columns and not set(map(str.lower, columns["split"])) <= {*PARTS, *tables.MISSING}:
        at = wanted["split"]
        table.blame(lambda row: _no_part(row[at]))
    x, names = _numbers(table, features, notes) if stem in ("nodes", "features") and features else (None, None)
    if x is not None and len(x) != rows:
        raise DataError(f"{table.path} has {rows} rows, but {len(x)} rows of numbers; quote no line breaks")
    return Nodes(table, ids, x, columns.get("label"), columns.get("split"), columns.get("time"), names)


def _numbers(table: Table, features: list[int], notes: list[str]) -> tuple[Array, list[str] | None]:
    """Features as numbers, [rows, d], and their names; columns of a few words become one column of 0 and 1 per word."""
    if table.header is None:
        return tables.numbers(table, features, FEATURES), None
    numeric, words = split_numeric(table, features)
    x = tables.numbers(table, numeric, FEATURES)
    names = [table.header[at] for at in numeric]
    if words:
        encoded, more = encode(words, [table.header[at] for at in features if at not in numeric])
        notes.append(f"{table.path.name}: {len(words)} columns of words became {len(more)} columns of 0 and 1")
        x, names = np.concatenate([x, encoded], axis=1), [*names, *more]
    return x, names


def _other_identifiers(
    stem: str, table: Table, roles: Mapping[str, int | None], leave_out: set[str], notes: list[str]
) -> set[str]:
    """Names of further columns that identify something: as features they would be memorised."""
    if stem not in ("nodes", "features") or table.header is None:
        return set()
    found = {table.header[at] for at in identifiers(table.header) if at not in roles.values()} - leave_out
    if found:
        notes.append(
            f"{table.path.name}: {', '.join(sorted(found))} identifies something and is no feature; rename it if it is one"
        )
    return found


def _roles(stem: str, table: Table, given: Columns) -> dict[str, int | None]:
    """Which columns are the node's name, its label, its part of a split and its time; the others are features."""
    if table.header is not None:
        # a column that was named for one role is not guessed for another
        taken = [at for role in ("id", "label", "split", "time") if (at := _given(role, table, given)) is not None]

        def role(name: str, known: Collection[str]) -> int | None:
            own = _given(name, table, given)
            found = own if own is not None else table.column(known)
            return found if own is not None or found not in taken else None

        roles = {"id": role("id", ID), "label": role("label", LABEL), "split": role("split", SPLIT)}
        roles["time"] = _given("time", table, given)
        if roles["id"] is None:
            free = [at for at in identifiers(table.header) if at not in roles.values()]
            roles["id"] = free[0] if len(free) == 1 or (free and free[0] == 0) else None
        if stem in ("labels", "split") and roles[stem.removesuffix("s")] is None:
            rest = [at for at in range(table.width) if at not in roles.values()]
            roles[stem.removesuffix("s")] = rest[-1] if rest else None
            if roles["id"] is None and len(rest) == 2:
                roles["id"] = rest[0]
        return roles
    last = table.width - 1
    if stem == "features":
        return {}
    if stem == "nodes":
        return {"id": 0, "label": last} if last else {"label": 0}
    if last > 1:
        raise DataError(
            f"{table.path} has {table.width} columns and no header, but one or two (node, {stem}) are needed"
        )
    return {"id": 0, stem.removesuffix("s"): 1} if last else {stem.removesuffix("s"): 0}


def _given(role: str, table: Table, given: Columns) -> int | None:
    """Place of a column that the user named, if this table has it; another table may."""
    name = getattr(given, role)
    header = table.header or ()
    return header.index(name.strip().lower()) if name and name.strip().lower() in header else None


def _no_part(cell: str) -> str | None:
    if cell.strip().lower() in PARTS or tables.is_missing(cell):
        return None
    return f"has part '{shorten(cell)}', but {', '.join(dict.fromkeys(PARTS.values()))} are known"


def _blame_twice(table: Table, at: int) -> None:
    seen: set[str] = set()

    def fault(row: list[str]) -> str | None:
        name = row[at].strip()
        if name in seen:
            return f"names node '{shorten(name)}' again, but every node has one row"
        seen.add(name)
        return None

    table.blame(fault)


def node_names(nodes: Sequence[Nodes]) -> tuple[int, list[str] | None]:
    """Number of nodes, and their names unless they are numbered by their rows."""
    first = nodes[0]
    rows = len(first.ids or first.labels or first.parts or (() if first.x is None else first.x))
    if first.ids is None:
        return rows, None
    return rows, list(first.ids)


def _rows_of(nodes: Nodes, where: dict[str, int] | None, n: int) -> Array:
    """The node of every row of a table."""
    if nodes.ids is None:
        rows = len(nodes.labels or nodes.parts or (() if nodes.x is None else nodes.x))
        if rows != n:
            raise DataError(f"{nodes.table.path} has {rows} rows and no names of nodes, but there are {n} nodes")
        return np.arange(n)
    if where is None:
        where = {str(index): index for index in range(n)}
    try:
        return np.array([where[name] for name in nodes.ids], dtype=np.int64)
    except KeyError:
        known, at = where, nodes.table.column(ID) or 0
        nodes.table.blame(lambda row: _unknown(row[at], known))
        raise


def _unknown(name: str, known: Collection[str]) -> str | None:
    return None if name.strip() in known else f"names node '{shorten(name)}', which no table of nodes has"


def column_of(
    nodes: Sequence[Nodes], what: Literal["labels", "parts", "times"], where: dict[str, int] | None, n: int
) -> list[str] | None:
    """The cells of a column in the order of the nodes; None if no table has it."""
    for each in nodes:
        cells = getattr(each, what)
        if cells is not None:
            placed = np.full(n, "", dtype=object)
            placed[_rows_of(each, where, n)] = cells
            return placed.tolist()
    return None


def features_of(
    folder: Path, nodes: Sequence[Nodes], where: dict[str, int] | None, n: int, notes: list[str]
) -> tuple[Array | None, Sequence[str] | None]:
    """Features in the order of the nodes, [n, d], and their names; None without any."""
    for each in nodes:
        if each.x is not None:
            placed = np.full((n, each.x.shape[1]), np.nan, dtype=np.float32)
            placed[_rows_of(each, where, n)] = each.x
            return placed, each.feature_names
    path = folder / "features.npz"
    if not path.is_file():
        return None, None
    stored = read_npz(path, required=["data"])["data"]
    if stored.ndim != 2 or len(stored) != n:
        raise DataError(
            f"{path} has shape {list(stored.shape)}, but [{n}, d] is needed, rows in the order of the nodes"
        )
    notes.append("features from features.npz, rows in the order of the nodes")
    return stored, None


def split_of(
    nodes: Sequence[Nodes], where: dict[str, int] | None, n: int, y: Array, columns: Columns, notes: list[str]
) -> dict[str, Array]:
    """Ids of the parts of a split, from a column of parts or by time; empty without either."""
    times = column_of(nodes, "times", where, n)
    cells = column_of(nodes, "parts", where, n) if columns.time is None or columns.split is not None else None
    if cells is None and times is None:
        return {}
    if cells is None:
        assert times is not None and columns.time is not None
        notes.append(f"split by time: the earliest by '{columns.time}' train, the latest test")
        return time_split(as_times(times, columns.time), y >= 0)
    return parts_of(cells)


def parts_of(cells: Sequence[str]) -> dict[str, Array]:
    """Ids of the parts of a split from the part of every node; nodes without one are in none."""
    parts = np.array([PARTS.get(str(cell).strip().lower(), "") for cell in cells])
    found = {part: np.flatnonzero(parts == part) for part in dict.fromkeys(PARTS.values())}
    split = {part: ids for part, ids in found.items() if len(ids)}
    if "train" not in split or len(split) < 2:
        raise DataError(f"the split has {', '.join(split) or 'no part'}, but train and some test nodes are needed")
    return split
