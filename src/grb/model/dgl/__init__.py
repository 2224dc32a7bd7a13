"""Graphs as DGL wants them; DGL itself is imported when the first one is made."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from grb import _lazy
from grb.errors import MissingExtra

# what tests/model/test_bridges.py installs and runs
INSTALL = "pip install dgl==1.1.3"


def graph_of(rows: Tensor, columns: Tensor, n: int) -> Any:
    """A DGLGraph with an edge for every entry, in their order."""
    try:
        import dgl
    except (ImportError, OSError) as error:  # a library that was built for another torch is an OSError
        raise MissingExtra(f"a DGL model needs dgl. Install it with: {INSTALL}") from error
    return dgl.graph((rows, columns), num_nodes=n, device=rows.device)


# ready models, whose modules import DGL when one is made
__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "GAT": "grb.model.dgl.gat",
        "GCN": "grb.model.dgl.gcn",
        "GIN": "grb.model.dgl.gin",
        "GRAND": "grb.defense.grand",
    },
)
