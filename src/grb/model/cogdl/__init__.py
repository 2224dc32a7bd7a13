"""Graphs as CogDL wants them; CogDL itself is imported when the first one is made."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from grb.errors import require


def graph_of(rows: Tensor, columns: Tensor, values: Tensor | None, n: int) -> Any:
    """A CogDL graph with an edge for every entry."""
    data = require("cogdl.data", extra="all", what="a CogDL model")
    graph = data.Graph(edge_index=(rows, columns), num_nodes=n)
    if values is not None:
        graph.edge_weight = values
    return graph


def with_features(graph: Any, x: Tensor) -> Any:
    """The same graph with these features."""
    graph.x = x
    return graph
