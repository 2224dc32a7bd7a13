"""torch_geometric's GCN, trained by its own recipe on the true Planetoid Cora, wrapped and attacked."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn.models import GCN

import grb
from grb.dataset import Dataset
from grb.model.adapters import Wrapped
from grb.model.base import predict
from grb.threat import Injection, Modification
from helpers import find_dataset

pytestmark = pytest.mark.skipif(
    find_dataset("Planetoid/Cora") is None, reason="needs Planetoid Cora: no root of GRB_DATA holds Planetoid/Cora"
)


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return grb.load_dataset("planetoid-cora")


@pytest.fixture(scope="module")
def trained(dataset: Dataset) -> tuple[Wrapped, torch.Tensor]:
    """Two layers of 16, dropout, Adam with weight decay, 200 epochs, rows of features that sum to one."""
    graph = dataset.graph
    edge_index = torch.stack([graph.adj.pattern.row_ids, graph.adj.pattern.indices]).long()
    x, y = graph.x if isinstance(graph.x, torch.Tensor) else graph.x @ torch.eye(graph.num_features), dataset.labels
    torch.manual_seed(0)
    net = GCN(x.shape[1], 16, num_layers=2, out_channels=dataset.num_classes, dropout=0.5)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(200):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x, edge_index)[dataset.index_train], y[dataset.index_train]).backward()
        optimizer.step()
    with torch.no_grad():
        return grb.wrap(net), net.eval()(x, edge_index)


def test_the_logits_are_its_own(dataset: Dataset, trained: tuple[Wrapped, torch.Tensor]) -> None:
    model, wanted = trained
    assert torch.allclose(predict(model, dataset.graph), wanted, atol=1e-5)
    assert grb.evaluate(model, dataset)["full"] > 0.78


def test_it_loses_five_points_to_prbcd_and_ten_to_injection(
    dataset: Dataset, trained: tuple[Wrapped, torch.Tensor]
) -> None:
    model, _ = trained
    clean = grb.evaluate(model, dataset)["full"]
    edges = grb.run_attack("prbcd", model, dataset, threat=Modification(edge_ratio=0.05), n_epoch=15)
    assert clean - grb.evaluate(model, dataset, edges)["full"] >= 0.05
    x = dataset.graph.x
    low, high = (float(x.min()), float(x.max())) if isinstance(x, torch.Tensor) else (0.0, 1.0)
    limits = Injection(nodes=60, edges_per_node=20, feature_range=(low, high))  # Table 12, grb-cora, full
    nodes = grb.run_attack("pgd", model, dataset, threat=limits, iterations=40)
    assert clean - grb.evaluate(model, dataset, nodes)["full"] >= 0.10
