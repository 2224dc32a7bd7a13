"""The models of the GRB papers in plain torch on grb's sparse kernel."""

from grb import _lazy
from grb.model.torch.appnp import APPNP
from grb.model.torch.chebnetii import ChebNetII
from grb.model.torch.gat import GAT
from grb.model.torch.gcn import GCN
from grb.model.torch.gin import GIN
from grb.model.torch.gprgnn import GPRGNN
from grb.model.torch.gps import GPS
from grb.model.torch.graphsage import GraphSAGE
from grb.model.torch.mlp import MLP
from grb.model.torch.sgcn import SGC, SGCN
from grb.model.torch.sgformer import SGFormer
from grb.model.torch.tagcn import TAGCN

# of the papers' era
__getattr__ = _lazy.attach(__name__, {"GCNGC": "grb.compat.models"})[0]
__all__ = [
    "APPNP",
    "GAT",
    "GCN",
    "GIN",
    "GPRGNN",
    "GPS",
    "MLP",
    "SGC",
    "SGCN",
    "TAGCN",
    "ChebNetII",
    "GraphSAGE",
    "SGFormer",
]
