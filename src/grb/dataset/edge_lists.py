"""Files of edges: two nodes per line, by name or number, and perhaps a weight."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import repeat
from pathlib import Path
from typing import Literal

import numpy as np

from grb.dataset import tables
from grb.dataset.columns import SOURCE, TARGET, WEIGHT, Columns
from grb.dataset.raw_arrays import Array
from grb.dataset.tables import Table, shorten
from grb.errors import DataError

Dangling = Literal["refuse", "drop"]
# whole numbers that float64 holds
EXACT = 2.0**53


def read_edges(
    path: Path,
    header: bool | None,
    n: int,
    where: Mapping[str, int] | None,
    dangling: Dangling,
    notes: list[str],
    columns: Columns,
) -> tuple[Array, Array | None]:
    """Both ends of every edge, [2, m], and weights if there are any.

    Args:
        path: The file.
        header: Whether it has a header; detected if None.
        n: Number of nodes.
        where: Number of every node by its name; None if nodes are numbers from 0 on.
        dangling: What happens to edges of unknown nodes.
        notes: What was decided is added here.
        columns: Names of columns that the user gave.
    """
    named = {name.strip().lower() for name in (columns.source, columns.target) if name is not None}
    table = tables.describe(path, {*SOURCE, *TARGET, *named}, header=header)
    source, target, weight = _ends(table, columns)
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


def _ends(table: Table, columns: Columns) -> tuple[int, int, int | None]:
    """The columns of both nodes and of the weight."""
    given = [columns.find(role, table.header, table.path) for role in ("source", "target", "weight")]
    if given[0] is not None and given[1] is not None:
        if given[0] == given[1]:
            raise DataError(f"source and target are both the column '{columns.source}', but an edge has two nodes")
        return given[0], given[1], given[2]
    if given[0] is not None or given[1] is not None:
        raise DataError(f"source is {columns.source} and target is {columns.target}, but both columns are needed")
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
                f"{table.path} has columns {', '.join(table.header[:6])}, but none named source and target; say which they are "
                "(--source and --target, or columns={'source': ..., 'target': ...})"
            )
        return rest[0], rest[1], weight
    if table.width > 3:
        raise DataError(
            f"{table.path} has {table.width} columns and no header, but two nodes and a weight are three; add a header"
        )
    return 0, 1, 2 if table.width == 3 else None


def _numbered(table: Table, columns: tuple[int, int], n: int, where: Mapping[str, int] | None) -> Array | None:
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
    table: Table, rows: list[list[str]], columns: tuple[int, int], n: int, where: Mapping[str, int] | None
) -> Array:
    if where is None:
        table.blame(lambda row: _no_index(row, columns))
        where = {str(index): index for index in range(n)}
    return np.stack([_places([row[at] for row in rows], where) for at in columns])


def _places(cells: list[str], where: Mapping[str, int]) -> Array:
    """Numbers of nodes by name, -1 for unknown ones; names with spaces around them are looked up once more."""
    found = np.fromiter(map(where.get, cells, repeat(-1)), dtype=np.int64, count=len(cells))
    for at in np.flatnonzero(found < 0).tolist():
        found[at] = where.get(cells[at].strip(), -1)
    return found


def _no_index(row: list[str], columns: tuple[int, int]) -> str | None:
    for at in columns:
        if not re.fullmatch(r"-?[0-9]+", row[at].strip()):
            return f"names node '{shorten(row[at])}', but nodes without names are numbers from 0 on"
    return None


def _dangles(row: list[str], columns: tuple[int, int], n: int, where: Mapping[str, int] | None) -> str | None:
    for at in columns:
        name = row[at].strip()
        if where is not None and name not in where:
            return f"names node '{shorten(name)}', which no table of nodes has; dangling=drop leaves such edges out"
        if where is None and not (re.fullmatch(r"[0-9]{1,18}", name) and int(name) < n):
            return f"names node {shorten(name)}, but there are nodes 0 to {n - 1}; dangling=drop leaves such edges out"
    return None
