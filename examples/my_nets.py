"""Modules of your own, in a file that others can import too: ``my_nets:GAT`` names the first one on boards."""

import torch
from torch import nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv


class GAT(nn.Module):
    """As in the examples of torch_geometric: log-probabilities from x and edge_index."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = GATConv(features, 8, heads=2), GATConv(16, classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return functional.log_softmax(self.second(functional.elu(self.first(x, edge_index)), edge_index), dim=1)


class OfData(nn.Module):
    """The other common way: one Data in."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = GCNConv(features, 16), GCNConv(16, classes)

    def forward(self, data: Data) -> torch.Tensor:
        hidden = functional.relu(self.first(data.x, data.edge_index))
        return functional.log_softmax(self.second(hidden, data.edge_index), dim=1)


if __name__ == "__main__":
    print(GAT(8, 2), OfData(8, 2))
