"""Edge lists: a folder with edges.csv and nodes.csv (or labels.csv and features.csv), in the forms that are common.

Every file may have a header or none, be separated by commas, tabs, semicolons or white space, and be gzipped. Nodes have
names or numbers. A row that cannot be read is refused with its line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from grb.dataset import tables
from grb.dataset.columns import Columns
from grb.dataset.edge_lists import Dangling, read_edges
from grb.dataset.node_tables import column_of, features_of, find_file, node_names, read_nodes, split_of
from grb.dataset.raw_arrays import Array, RawArrays
from grb.errors import DataError


def is_folder(path: Path) -> bool:
    """Whether this is a folder with a text file of edges."""
    return path.is_dir() and find_file(path, "edges") is not None


def from_csv(
    path: str | os.PathLike[str],
    *,
    header: bool | None = None,
    dangling: Dangling = "refuse",
    leave_out: Collection[str] = (),
    columns: Mapping[str, str | None] | Columns | None = None,
) -> RawArrays:
    """A folder of text files, or the file of edges in it, as arrays.

    Args:
        path: The folder with ``edges.csv``; or that file by any name, with the others beside it.
        header: Whether the files have headers; detected from their first lines if None.
        dangling: What happens to edges of nodes that no table of nodes has: ``refuse`` or ``drop``.
        leave_out: Names of columns that are not features.
        columns: Names of columns by role where they are not the usual ones, see :class:`~grb.dataset.columns.Columns`.
    """
    path = Path(path)
    folder = path if path.is_dir() else path.parent
    edges = find_file(folder, "edges") if path.is_dir() else path
    if edges is None:
        raise DataError(f"{folder} has no edges.csv; one line per edge, with the two nodes of it, is needed")
    if dangling not in ("refuse", "drop"):
        raise DataError(f"dangling is '{dangling}', but 'refuse' or 'drop' is needed")
    notes: list[str] = []
    roles = Columns.of(columns)
    nodes = read_nodes(folder, header, {name.lower() for name in leave_out}, notes, roles)
    n, ids = node_names(nodes)
    where = {name: index for index, name in enumerate(ids)} if ids is not None else None
    pairs, weights = read_edges(edges, header, n, where, dangling, notes, roles)
    x, feature_names = features_of(folder, nodes, where, n, notes)
    labels = column_of(nodes, "labels", where, n)
    if labels is None:
        raise DataError(
            f"{folder} has no labels; put a column 'label' into nodes.csv, say which column it is (--label NAME, or "
            "columns={'label': NAME}), or put a labels.csv (node, label) beside edges.csv"
        )
    y, classes = classes_of(labels)
    split = split_of(nodes, where, n, y, roles, notes)
    splits = [split] if split else []
    name = folder.resolve().name
    return RawArrays(name, n, pairs, y, weights, x, None, splits, classes, ids, notes, feature_names=feature_names)


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
