"""Models of grb in torch_geometric's hands: the same logits and gradients, refusals in one sentence."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.utils import to_undirected

import grb
from grb.dataset import Dataset
from grb.errors import DataError
from grb.graph import convert
from grb.model.base import predict


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return grb.load_dataset("synth-tiny")


@pytest.mark.parametrize("name", ["gcn", "gat", "gin", "graphsage"])
def test_the_logits_are_those_of_the_model_whatever_the_order_of_edges(name: str, dataset: Dataset) -> None:
    model = grb.train(name, dataset, seed=0, epochs=3).eval()
    edges = convert.to_pyg(dataset.graph).edge_index
    mixed = edges[:, torch.randperm(edges.shape[1], generator=torch.Generator().manual_seed(0))]
    found = grb.to_pyg(model)(dataset.graph.x, mixed, torch.ones(mixed.shape[1]))
    torch.testing.assert_close(found, predict(model, dataset.graph))
    torch.testing.assert_close(grb.to_pyg(model)(dataset.graph.x, edges), found)


def test_gradients_reach_the_weights_of_edges(dataset: Dataset) -> None:
    model = grb.train("gcn", dataset, seed=0, epochs=3).eval()
    edges = convert.to_pyg(dataset.graph).edge_index
    weights = torch.ones(edges.shape[1], requires_grad=True)
    grb.to_pyg(model)(dataset.graph.x, edges, weights).logsumexp(1).sum().backward()
    assert weights.grad is not None
    assert (weights.grad != 0).float().mean() > 0.9


@pytest.mark.parametrize(
    ("edges", "weights", "words"),
    [
        ([[0, 1], [1, 2]], None, "in one direction only"),
        ([[0, 1], [1, 0]], [1.0, 0.5], "of another weight"),
        ([[0, 1, 1], [1, 0, 1]], None, "self-loop"),
        ([[0, 1, 0, 1], [1, 0, 1, 0]], None, "an edge twice"),
    ],
)
def test_what_no_graph_of_grb_has_is_refused(edges: list[list[int]], weights: list[float] | None, words: str) -> None:
    model = grb.to_pyg(grb.train("gcn", grb.load_dataset("synth-tiny"), seed=0, epochs=1))
    given = None if weights is None else torch.tensor(weights)
    with pytest.raises(DataError, match=words):
        model(torch.rand(3, model.model.params["in_features"]), torch.tensor(edges), given)


def test_a_graph_without_edges_is_one(dataset: Dataset) -> None:
    model = grb.to_pyg(grb.train("gcn", dataset, seed=0, epochs=1))
    nothing = to_undirected(torch.empty(2, 0, dtype=torch.int64))
    assert model(dataset.graph.x, nothing).shape == (dataset.num_nodes, dataset.num_classes)
