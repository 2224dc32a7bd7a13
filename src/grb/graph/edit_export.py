"""Edits for other tools: one CSV row per change, or a networkx graph of what changes; by the user's own ids."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grb.atomic import write_atomic
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.graph.edit import GraphEdit

HEADER = ("change", "source", "target", "feature", "value")


def to_csv(
    edit: GraphEdit,
    path: str | os.PathLike[str],
    nodes: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
) -> Path:
    """Write an edit as CSV: rows ``add`` and ``drop`` have two nodes, ``inject`` and ``set`` a node, a feature and its value.

    Args:
        edit: What changes.
        path: The file.
        nodes: Original ids, e.g. ``dataset.names.nodes``; numbers if None. Injected nodes are called ``injected-0``, ...
        features: Names of the columns, e.g. ``dataset.names.features``; numbers if None.
    """
    names = _names(edit, nodes)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADER)
    for change, pairs in (("add", edit.add), ("drop", edit.drop)):
        writer.writerows([change, _cell(names(u)), _cell(names(v)), "", ""] for u, v in pairs.T.tolist())
    changed = (
        [] if edit.set_ids is None or edit.set_x is None else list(zip(edit.set_ids.tolist(), edit.set_x.tolist()))
    )
    new = [] if edit.new_x is None else [(edit.base + at, row) for at, row in enumerate(edit.new_x.tolist())]
    for change, rows in (("inject", new), ("set", changed)):
        for node, row in rows:
            for column, value in enumerate(row):
                title = str(column) if features is None else features[column]
                writer.writerow([change, _cell(names(node)), "", _cell(str(title)), repr(value)])
    return write_atomic(path, out.getvalue().encode())


def to_networkx(edit: GraphEdit, nodes: Sequence[str] | None = None) -> Any:
    """The changed edges as a networkx graph: edges have ``change`` (add or drop), nodes ``injected`` and perhaps ``x``."""
    import networkx

    names = _names(edit, nodes)
    graph = networkx.Graph()
    for at in range(edit.num_new):
        assert edit.new_x is not None
        graph.add_node(names(edit.base + at), injected=True, x=edit.new_x[at].tolist())
    if edit.set_ids is not None and edit.set_x is not None:
        for node, row in zip(edit.set_ids.tolist(), edit.set_x.tolist(), strict=True):
            graph.add_node(names(node), injected=False, x=row)
    for change, pairs in (("add", edit.add), ("drop", edit.drop)):
        for u, v in pairs.T.tolist():
            for node in (u, v):
                if names(node) not in graph:
                    graph.add_node(names(node), injected=False)
            graph.add_edge(names(u), names(v), change=change)
    return graph


def _names(edit: GraphEdit, nodes: Sequence[str] | None) -> Any:
    if nodes is not None and len(nodes) != edit.n:
        raise DataError(f"there are {len(nodes)} names of nodes, but the edit is for a graph of {edit.n}")

    def name(node: int) -> Any:
        if node >= edit.base:
            return f"injected-{node - edit.base}"
        return node if nodes is None else nodes[node]

    return name


def _cell(value: Any) -> Any:
    """A spreadsheet takes a cell that begins like a formula for one; a quote in front keeps it text."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
