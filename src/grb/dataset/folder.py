"""Edge lists: a folder with edges.csv and nodes.csv (or labels.csv and features.csv), in the forms that are common.

Every file may have a header or none, be separated by commas, tabs, semicolons or white space, and be gzipped. Nodes have
names or numbers. A row that cannot be read is refused with its line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from grb.dataset import tables
from grb.dataset.raw_arrays import Array, RawArrays
from grb.dataset.tables import Table, shorten
from grb.errors import DataError
from grb.graph.files import read_npz

Dangling = Literal["refuse", "drop"]

# whole numbers that float64 holds
EXACT = 2.0**53
ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
SOURCE = ("source", "src", "from", "u", "head", "start", "node1", "id_1", "citing")
TARGET = ("target", "dst", "to", "v", "tail", "end", "node2", "id_2", "cited")
WEIGHT = ("weight", "w", "value", "edge_weight")
ID = ("id", "node", "node_id", "name", "key")
LABEL = ("label", "labels", "y", "class", "category")
SPLIT = ("split", "part", "set")
PARTS = {
    **{part: part for part in ("train", "val", "test", "easy", "medium", "hard")},
    **dict.fromkeys(("training",), "train"),
    **dict.fromkeys(("valid", "validation", "dev"), "val"),
}


@dataclass(frozen=True)
class Nodes:
    """The columns of a table of nodes; None for those that it does not have."""

    table: Table
    ids: Sequence[str] | None
    x: Array | None
    labels: Sequence[str] | None
    parts: Sequence[str] | None


def is_folder(path: Path) -> bool:
    """Whether this is a folder with a text file of edges."""
    return path.is_dir() and _file(path, "edges") is not None


def from_csv(
    path: str | os.PathLike[str],
    *,
    header: bool | None = None,
    dangling: Dangling = "refuse",
    leave_out: Collection[str] = (),
) -> RawArrays:
    """A folder of text files, or the file of edges in it, as arrays.

    Args:
        path: The folder with ``edges.csv``; or that file by any name, with the others beside it.
        header: Whether the files have headers; detected from their first lines if None.
        dangling: What happens to edges of nodes that no table of nodes has: ``refuse`` or ``drop``.
        leave_out: Names of columns that are not features.
    """
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    edges = _file(folder, "edges") if path.is_dir() else path
    if edges is None:
        raise DataError(f"{folder} has no edges.csv; one line per edge, with the two nodes of it, is needed")
    if dangling not in ("refuse", "drop"):
        raise DataError(f"dangling is '{dangling}', but 'refuse' or 'drop' is needed")
    notes: list[str] = []
    nodes = _nodes(folder, header, {name.lower() for name in leave_out}, notes)
    n, ids = _named(nodes)
    where = {name: index for index, name in enumerate(ids)} if ids is not None else None
    pairs, weights = _edges(edges, header, n, where, dangling, notes)
    x = _features(folder, nodes, where, n, notes)
    labels = _column(nodes, "labels", where, n)
    if labels is None:
        raise DataError(
            f"{folder} has no labels; put a column 'label' into nodes.csv, or a labels.csv (node, label) beside edges.csv"
        )
    y, classes = classes_of(labels)
    split = _split(nodes, where, n)
    splits = [split] if split else []
    return RawArrays(folder.resolve().name, n, pairs, y, weights, x, None, splits, classes, ids, notes)


def classes_of(labels: Sequence[str]) -> tuple[Array, list[str] | None]:
    """Numbers of classes from their names, and the names if they are not just those numbers.

    Numbers stay in their order, other names are sorted; a missing one or -1 is hidden.

    >>> classes_of(["b", "a", "", "b"])[0].tolist(), classes_of(["10", "9", "-1"])[1]
    ([1, 0, -1, 1], ['9', '10'])
    """
    cells = np.array([str(cell).strip() for cell in labels])
    hidden = np.array([tables.is_missing(cell) or cell == "-1" for cell in cells], dtype=bool)
    names = np.unique(cells[~hidden]).tolist()
    if not names:
        raise DataError("no node has a label; at least one class is needed")
    if all(re.fullmatch(r"[+-]?[0-9]{1,1000}", name) for name in names):
        names.sort(key=int)
    index = {name: number for number, name in enumerate(names)}
    y = np.full(len(cells), -1, dtype=np.int64)
    y[~hidden] = [index[cell] for cell in cells[~hidden]]
    return y, None if names == [str(number) for number in range(len(names))] else names


def _file(folder: Path, stem: str) -> Path | None:
    found = [folder / f"{stem}{ending}" for ending in ENDINGS if (folder / f"{stem}{ending}").is_file()]
    if len(found) > 1:
        raise DataError(f"{folder} has {found[0].name} and {found[1].name}; which one is meant? Remove the other")
    return found[0] if found else None


def _nodes(folder: Path, header: bool | None, leave_out: set[str], notes: list[str]) -> list[Nodes]:
    """The tables of nodes that there are; the first one lists the nodes."""
    found = []
    for stem in ("nodes", "labels", "features", "split"):
        path = _file(folder, stem)
        if path is not None:
            table = tables.describe(path, {*ID, *LABEL, *SPLIT}, header=header)
            found.append(_table(stem, table, leave_out, notes))
    if not found:
        raise DataError(
            f"{folder} has edges and no nodes; a nodes.csv (node, features, label), or a labels.csv (node, label), is needed"
        )
    named = {name for each in found for name in each.table.header or ()}
    for name in sorted(leave_out - named):
        raise DataError(f"column '{name}' is to be left out, but there are {', '.join(sorted(named)) or 'no names'}")
    for what in ("x", "labels", "parts"):
        files_with = [each.table.path.name for each in found if getattr(each, what) is not None]
        if len(files_with) > 1:
            word = {"x": "features", "labels": "labels", "parts": "a split"}[what]
            raise DataError(f"{files_with[0]} and {files_with[1]} both have {word}; leave it out of one")
    return found


def _table(stem: str, table: Table, leave_out: set[str], notes: list[str]) -> Nodes:
    roles = _roles(stem, table)
    dropped = [name for name in table.header or () if name in leave_out]
    for name in dropped:
        if table.column((name,)) in roles.values():
            raise DataError(f"column '{name}' of {table.path} is no feature, so that it cannot be left out; rename it")
    if dropped:
        notes.append(f"{table.path.name}: column {', '.join(dropped)} left out, as asked")
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
    numbered = stem in ("nodes", "features") and features
    x = tables.numbers(table, features, "features (leave_out names columns that are none)") if numbered else None
    if x is not None and len(x) != rows:
        raise DataError(f"{table.path} has {rows} rows, but {len(x)} rows of numbers; quote no line breaks")
    return Nodes(table, ids, x, columns.get("label"), columns.get("split"))


def _roles(stem: str, table: Table) -> dict[str, int | None]:
    """Which columns are the node's name, its label and its part of a split; the others are features."""
    if table.header is not None:
        roles = {"id": table.column(ID), "label": table.column(LABEL), "split": table.column(SPLIT)}
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


def _named(nodes: Sequence[Nodes]) -> tuple[int, list[str] | None]:
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


def _column(
    nodes: Sequence[Nodes], what: Literal["labels", "parts"], where: dict[str, int] | None, n: int
) -> list[str] | None:
    for each in nodes:
        cells = getattr(each, what)
        if cells is not None:
            placed = np.full(n, "", dtype=object)
            placed[_rows_of(each, where, n)] = cells
            return placed.tolist()
    return None


def _features(
    folder: Path, nodes: Sequence[Nodes], where: dict[str, int] | None, n: int, notes: list[str]
) -> Array | None:
    for each in nodes:
        if each.x is not None:
            placed = np.full((n, each.x.shape[1]), np.nan, dtype=np.float32)
            placed[_rows_of(each, where, n)] = each.x
            return placed
    path = folder / "features.npz"
    if not path.is_file():
        return None
    stored = read_npz(path, required=["data"])["data"]
    if stored.ndim != 2 or len(stored) != n:
        raise DataError(
            f"{path} has shape {list(stored.shape)}, but [{n}, d] is needed, rows in the order of the nodes"
        )
    notes.append("features from features.npz, rows in the order of the nodes")
    return stored


def _split(nodes: Sequence[Nodes], where: dict[str, int] | None, n: int) -> dict[str, Array]:
    cells = _column(nodes, "parts", where, n)
    if cells is None:
        return {}
    parts = np.array([PARTS.get(cell.lower(), "") for cell in cells])
    found = {part: np.flatnonzero(parts == part) for part in dict.fromkeys(PARTS.values())}
    split = {part: ids for part, ids in found.items() if len(ids)}
    if "train" not in split or len(split) < 2:
        raise DataError(f"the split has {', '.join(split) or 'no part'}, but train and some test nodes are needed")
    return split


def _edges(
    path: Path, header: bool | None, n: int, where: dict[str, int] | None, dangling: Dangling, notes: list[str]
) -> tuple[Array, Array | None]:
    table = tables.describe(path, {*SOURCE, *TARGET}, header=header)
    source, target, weight = _ends(table)
    used = {source, target, weight}
    unused = [name for at, name in enumerate(table.header or ()) if at not in used]
    if unused:
        notes.append(f"{path.name}: column {', '.join(unused)} not used")
    head = "read as a header" if table.header else "is an edge, there is no header"
    notes.append(f"{path.name}: the first line {head}")
    ends = _numbered(table, (source, target), n, where)
    if ends is None:
        ends = np.concatenate([_looked_up(table, rows, (source, target), n, where) for rows in table.chunks()], axis=1)
    keep = (ends >= 0).all(axis=0)
    if not keep.all():
        if dangling == "refuse":
            table.blame(lambda row: _dangles(row, (source, target), n, where))
        notes.append(f"{int((~keep).sum())} edges of nodes that no table has dropped (dangling=drop)")
    weights = None if weight is None else tables.numbers(table, [weight], "weights")[:, 0]
    if weights is not None and not np.isfinite(weights).all():
        at = weight or 0
        table.blame(lambda row: None if _finite(row[at]) else f"has weight '{shorten(row[at])}', but it must be finite")
    return ends[:, keep], None if weights is None else weights[keep]


def _finite(cell: str) -> bool:
    return tables.is_number(cell) and bool(np.isfinite(np.float32(cell)))


def _ends(table: Table) -> tuple[int, int, int | None]:
    """The columns of both nodes and of the weight."""
    if table.width < 2:
        raise DataError(f"{table.path} has one column, but an edge has two nodes; separate them by a comma")
    if table.header is not None:
        source, target = table.column(SOURCE), table.column(TARGET)
        if source is not None and target is not None:
            return source, target, table.column(WEIGHT)
        weight = table.column(WEIGHT)
        rest = [at for at in range(table.width) if at != weight]
        if len(rest) != 2:
            raise DataError(
                f"{table.path} has columns {', '.join(table.header[:6])}, but none named source and target; name them so"
            )
        return rest[0], rest[1], weight
    if table.width > 3:
        raise DataError(
            f"{table.path} has {table.width} columns and no header, but two nodes and a weight are three; add a header"
        )
    return 0, 1, 2 if table.width == 3 else None


def _numbered(table: Table, columns: tuple[int, int], n: int, where: dict[str, int] | None) -> Array | None:
    """Both ends by numpy's parser, -1 where a node is unknown; None if nodes have names that are no plain numbers."""
    names = None
    if where is not None:
        try:
            names = np.array([int(name) for name in where], dtype=np.int64)
        except (ValueError, OverflowError):
            return None
        if any(str(number) != name for number, name in zip(names.tolist(), where)):
            return None
    # all columns, so that a row of another width is no number; as floats where a weight is among them
    found = tables.fast(table, None, np.int64 if table.width == 2 else np.float64)
    if found is None or found.shape[1] != table.width:  # the slower way names the row
        return None
    found = found[:, list(columns)]
    if found.dtype.kind == "f":
        if not (np.abs(found) < EXACT).all() or (found % 1).any():
            return None
        found = found.astype(np.int64)
    ends = found.T
    if names is None:
        return np.where((ends >= 0) & (ends < n), ends, -1)
    order = np.argsort(names)
    place = np.searchsorted(names, ends, sorter=order).clip(max=len(names) - 1)
    return np.where(names[order[place]] == ends, order[place], -1)


def _looked_up(
    table: Table, rows: list[list[str]], columns: tuple[int, int], n: int, where: dict[str, int] | None
) -> Array:
    if where is None:
        table.blame(lambda row: _no_index(row, columns))
        where = {str(index): index for index in range(n)}
    get = where.get
    return np.array([[get(row[at].strip(), -1) for row in rows] for at in columns], dtype=np.int64)


def _no_index(row: list[str], columns: tuple[int, int]) -> str | None:
    for at in columns:
        if not re.fullmatch(r"-?[0-9]+", row[at].strip()):
            return f"names node '{shorten(row[at])}', but nodes without names are numbers from 0 on"
    return None


def _dangles(row: list[str], columns: tuple[int, int], n: int, where: dict[str, int] | None) -> str | None:
    for at in columns:
        name = row[at].strip()
        if where is not None and name not in where:
            return f"names node '{shorten(name)}', which no table of nodes has; dangling=drop leaves such edges out"
        if where is None and not (re.fullmatch(r"[0-9]{1,18}", name) and int(name) < n):
            return f"names node {shorten(name)}, but there are nodes 0 to {n - 1}; dangling=drop leaves such edges out"
    return None
