"""Ready models of DGL's layers; DGL itself is imported when the first one is made."""

from __future__ import annotations

from grb import _lazy
from grb.model.bridges import INSTALL_DGL as INSTALL
from grb.model.bridges import dgl_graph as graph_of

__getattr__, __dir__ = _lazy.attach(
    __name__,
    {
        "GAT": "grb.model.dgl.gat",
        "GCN": "grb.model.dgl.gcn",
        "GIN": "grb.model.dgl.gin",
        "GRAND": "grb.defense.grand",
    },
)
