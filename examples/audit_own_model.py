"""A student's way: a GAT and a module that takes a Data, trained outside grb; audited, compared with defenses, on a page.

Run it with the name of a folder to keep the report there.
"""

import sys
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv

import grb


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


def train(module: nn.Module, data: Data, ask: object) -> nn.Module:
    """A plain loop of torch; the masks of the data say which nodes may be seen."""
    torch.manual_seed(0)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(60):
        module.train()
        optimizer.zero_grad()
        functional.nll_loss(ask(module)[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
    return module.eval()


data = grb.load_dataset("synth-tiny").to_pyg()  # your own Data, with train_mask, val_mask and test_mask
dataset = grb.Dataset.from_pyg(data, name="my-graph")  # takes these masks: no test node was trained on
classes = int(data.y.max()) + 1
gat = train(GAT(data.num_features, classes), data, lambda module: module(data.x, data.edge_index))
of_data = train(OfData(data.num_features, classes), data, lambda module: module(data))

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp())
for name, module in (("GAT", gat), ("OfData", of_data)):
    options = {"effort": "quick", "scenarios": ["injection"], "corrupt": False, "surrogates": ()}
    report = grb.audit(module, dataset, name=name, **options)
    report.save(folder / f"{name}.html")
    print(report.headline)

for name in ("gcn", "gcn+ln", "gcnguard"):  # the same questions to three defenses, trained here
    model = grb.train(name, dataset, epochs=60)
    report = grb.audit(model, dataset, name=name, **options)
    worst, clean = (report.values[part]["values"]["accuracy"] for part in ("worst_case", "clean"))
    print(f"{name:10} clean {clean:.2f}  worst case {worst:.2f}")
print("reports in", folder)
