"""Graphs as DGL wants them; DGL itself is imported when the first one is made."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from grb.errors import require


def graph_of(rows: Tensor, columns: Tensor, n: int) -> Any:
    """A DGLGraph with an edge for every entry, in their order."""
    dgl = require("dgl", extra="all", what="a DGL model")
    return dgl.graph((rows, columns), num_nodes=n, device=rows.device)
