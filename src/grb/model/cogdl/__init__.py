"""Graphs as CogDL wants them; CogDL itself is imported when the first one is made."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from grb import _lazy
from grb.errors import MissingExtra

# what tests/model/test_bridges.py installs and runs; cogdl 0.6 imports grave, which later versions of matplotlib break
INSTALL = 'pip install cogdl==0.6 "matplotlib<3.9"'


def graph_of(rows: Tensor, columns: Tensor, values: Tensor | None, x: Tensor) -> Any:
    """A CogDL graph with an edge for every entry and these features."""
    try:
        from cogdl.data import Graph
    except (ImportError, OSError) as error:
        raise MissingExtra(f"a CogDL model needs cogdl.data. Install it with: {INSTALL}") from error
    graph = Graph(x=x, edge_index=(rows, columns), num_nodes=len(x))
    if values is not None:
        graph.edge_weight = values
    return graph


# ready models, whose module imports CogDL when one is made
__getattr__, __dir__ = _lazy.attach(__name__, dict.fromkeys(("GAT", "GCN"), "grb.model.cogdl.gcn"))
