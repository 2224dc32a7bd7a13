"""The models of the GRB papers in plain torch on grb's sparse kernel."""

from grb.model.torch.gcn import GCN
from grb.model.torch.mlp import MLP

__all__ = ["GCN", "MLP"]
