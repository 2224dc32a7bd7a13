"""Ready models of CogDL; CogDL itself is imported when the first one is made."""

from __future__ import annotations

from grb import _lazy
from grb.model.bridges import INSTALL_COGDL as INSTALL
from grb.model.bridges import cogdl_graph as graph_of

__getattr__, __dir__ = _lazy.attach(__name__, dict.fromkeys(("GAT", "GCN"), "grb.model.cogdl.gcn"))
