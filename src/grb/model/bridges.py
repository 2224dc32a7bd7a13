"""Graphs as DGL and CogDL want them; either library is imported when the first one is made."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from grb.errors import MissingExtra

# what tests/model/test_bridges.py installs and runs; cogdl 0.6 imports grave, which later versions of matplotlib break
INSTALL_DGL = "pip install dgl==1.1.3"
INSTALL_COGDL = 'pip install cogdl==0.6 "matplotlib<3.9"'


def dgl_graph(rows: Tensor, columns: Tensor, n: int) -> Any:
    """A DGLGraph with an edge for every entry, in their order."""
    try:
        import dgl
    except (ImportError, OSError) as error:  # a library that was built for another torch is an OSError
        raise MissingExtra(f"a DGL model needs dgl. Install it with: {INSTALL_DGL}") from error
    return dgl.graph((rows, columns), num_nodes=n, device=rows.device)


def cogdl_graph(rows: Tensor, columns: Tensor, values: Tensor | None, x: Tensor) -> Any:
    """A CogDL graph with an edge for every entry and these features."""
    try:
        from cogdl.data import Graph
    except (ImportError, OSError) as error:
        raise MissingExtra(f"a CogDL model needs cogdl.data. Install it with: {INSTALL_COGDL}") from error
    graph = Graph(x=x, edge_index=(rows, columns), num_nodes=len(x))
    if values is not None:
        graph.edge_weight = values
    return graph
