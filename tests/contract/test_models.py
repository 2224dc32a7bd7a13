"""Every catalogued model keeps the same promises."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from grb.catalogue import entries, preset, resolve
from grb.defense import Defended
from grb.graph import Adjacency, Graph, adjacency_from_edges
from grb.graph.edit import sparse_features
from grb.model.base import GraphModel, predict, run_stages
from grb.model.build import build, settings
from grb.trainer import load_model, save_model
from grb.trainer.loop import _remembering

CLASSES, FEATURES = 4, 9
WITHOUT_NORM = ("sgc", "r-gcn", "gcnguard", "gatguard", "gcn-svd", "grand", "sgformer", "gps")
# weights along edges that depend on earlier layers or on neighbours of neighbours, and edges that depend on features
WITHOUT_STAGES = (
    "gcnguard",
    "gatguard",
    "egnnguard",
    "rung",
    "elasticgnn",
    "softmedian-gdc",
    "sgformer",
    "gps",
    "pro-gnn",
)
OPTIONS = [
    *[(name, {}) for name in entries("model")],
    *[(f"{name}+ln", {}) for name in entries("model") if name not in WITHOUT_NORM],
    ("gcn", {"residual": True, "hidden_features": [9, 9, 6]}),
    ("gat", {"residual": True, "hidden_features": [6, 6], "heads": 2}),
    ("tagcn", {"residual": True, "k": 3}),
    ("graphsage", {"aggregate": "mean"}),
    ("gin", {"hidden_features": [5]}),
    ("sgcn", {"hidden_features": [5, 5, 5], "k": 1}),
    ("grand", {"input_dropout": 0.0, "k": 2}),
    ("rung", {"variant": "code", "gamma": 1.0}),
    ("elasticgnn", {"norm": "l1", "lambda1": 0.1}),
    ("gprgnn", {"coefficients": "random", "k": 3}),
    ("gps", {"heads": 2}),
    ("sgformer", {"graph_weight": 0.5, "alpha": 0.9}),
    ("gat-transform-cosine", {"function": "unit"}),
]


@pytest.fixture(params=OPTIONS, ids=lambda option: "-".join([option[0], *option[1]]))
def model(request: pytest.FixtureRequest) -> GraphModel:
    name, changes = request.param
    if name != "sgc":
        changes = {"hidden_features": [8, 6], "dropout": 0.3, **changes}
        chosen = settings(name, "grb-cora").override(**changes)
        made = build(chosen, FEATURES, CLASSES, torch.Generator().manual_seed(0))
    else:
        made = resolve("model", name)(FEATURES, CLASSES, generator=torch.Generator().manual_seed(0))
    for module in made.modules():
        if isinstance(module, torch.nn.BatchNorm1d):
            module.running_mean.uniform_(-0.3, 0.3)
            module.running_var.uniform_(0.5, 1.5)
    return made.eval()


@pytest.fixture
def graph() -> Graph:
    """Twelve nodes; 10 and 11 are isolated."""
    rng = np.random.default_rng(3)
    upper = np.triu(rng.random((10, 10)) < 0.3, 1)
    adj, _ = adjacency_from_edges(np.argwhere(upper).T, 12)
    return Graph.build(adj, rng.normal(size=(12, FEATURES)), np.arange(12) % CLASSES)[0]


def test_logits_are_finite_also_for_isolated_nodes(model: GraphModel, graph: Graph) -> None:
    logits = predict(model, graph)
    assert logits.shape == (12, CLASSES)
    assert torch.isfinite(logits).all()


def test_a_graph_without_edges_works(model: GraphModel, graph: Graph) -> None:
    empty, _ = adjacency_from_edges(np.zeros((2, 0), dtype=np.int64), 12)
    assert torch.isfinite(predict(model, Graph(empty, graph.x))).all()


def test_no_activation_on_logits(model: GraphModel, graph: Graph) -> None:
    lowest = []
    for seed in range(6):
        model.reset_parameters(torch.Generator().manual_seed(seed))
        lowest.append(float(predict(model, graph).min()))
    assert min(lowest) < 0


def test_renumbering_nodes_renumbers_logits(model: GraphModel, graph: Graph) -> None:
    order = torch.randperm(12, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(
        predict(model, graph.subgraph(order)), predict(model, graph)[order], rtol=1e-4, atol=1e-5
    )


def test_stages_equal_the_forward_pass(model: GraphModel, graph: Graph) -> None:
    stages = model.stages()
    if model.name in WITHOUT_STAGES or isinstance(model, Defended):
        assert stages is None
        return
    assert stages is not None
    assert isinstance(graph.x, Tensor)
    with torch.no_grad():
        by_stages = run_stages(stages, graph.x, model.prepare(graph.adj))
    torch.testing.assert_close(by_stages, predict(model, graph), rtol=1e-4, atol=1e-5)


def test_sparse_features_give_the_same_logits(model: GraphModel, graph: Graph) -> None:
    assert isinstance(graph.x, Tensor)
    x = graph.x * (graph.x > 0)
    sparse = predict(model, Graph(graph.adj, sparse_features(x)))
    torch.testing.assert_close(sparse, predict(model, Graph(graph.adj, x)), rtol=1e-4, atol=1e-5)


def test_remembered_products_change_nothing(model: GraphModel, graph: Graph) -> None:
    assert isinstance(graph.x, Tensor)
    op = _remembering(model.prepare(graph.adj), graph.x)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(model(graph.x, op), predict(model, graph), rtol=1e-4, atol=1e-5)


def test_gradients_reach_features_and_every_parameter(model: GraphModel, graph: Graph) -> None:
    assert isinstance(graph.x, Tensor)
    x = graph.x.clone().requires_grad_()
    model.train()
    model(x, model.prepare(graph.adj)).square().sum().backward()
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()
    assert x.grad.abs().sum() > 0
    missing = [
        name for name, value in model.named_parameters() if value.grad is None or not value.grad.isfinite().all()
    ]
    assert missing == []


def test_gradients_of_edge_values_equal_finite_differences(model: GraphModel, graph: Graph) -> None:
    if model.name in ("mlp", "gcn-svd", "softmedian-gdc"):
        pytest.skip("an MLP has no edges, eigenvectors of GCN-SVD and PageRank of SoftMedian-GDC are constants")
    model = model.double()
    assert isinstance(graph.x, Tensor)
    x, edges = graph.x.double(), graph.adj.num_edges
    pairs = torch.rand(edges, generator=torch.Generator().manual_seed(2), dtype=torch.float64) + 0.5

    def loss(weights: Tensor) -> Tensor:
        adj = Adjacency(graph.adj.pattern, _both_directions(graph.adj, weights))
        return (model(x, model.prepare(adj)) * torch.arange(CLASSES)).sum()

    leaf = pairs.clone().requires_grad_()
    (analytic,) = torch.autograd.grad(loss(leaf), leaf)
    step = 1e-6
    for edge in range(0, edges, 3):
        shift = torch.zeros(edges, dtype=torch.float64)
        shift[edge] = step
        with torch.no_grad():
            numeric = (loss(pairs + shift) - loss(pairs - shift)) / (2 * step)
        assert abs(float(numeric - analytic[edge])) <= 1e-5 * max(1.0, abs(float(numeric)))


def _both_directions(adj: Adjacency, weights: Tensor) -> Tensor:
    """Weight of every directed entry from the weight of its undirected edge."""
    low = torch.minimum(adj.pattern.row_ids, adj.pattern.indices).long()
    high = torch.maximum(adj.pattern.row_ids, adj.pattern.indices).long()
    edges = adj.edges()
    return weights[torch.searchsorted(edges[0] * adj.n + edges[1], low * adj.n + high)]


def test_checkpoint_gives_the_same_model_back(model: GraphModel, graph: Graph, tmp_path) -> None:
    loaded = load_model(save_model(model, tmp_path / "model.safetensors"))
    assert type(loaded) is type(model)
    assert torch.equal(predict(loaded, graph), predict(model, graph))


def test_same_generator_same_weights(model: GraphModel) -> None:
    first, second = (dict(_redrawn(model, seed)) for seed in (5, 5))
    third = dict(_redrawn(model, 6))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], third[name]) for name in first)


def _redrawn(model: GraphModel, seed: int) -> list[tuple[str, Tensor]]:
    model.reset_parameters(torch.Generator().manual_seed(seed))
    return [(name, value.detach().clone()) for name, value in model.named_parameters()]


TABLES = {dataset: table for dataset, table in preset("models").items() if dataset != "training"}
ROWS = [
    (dataset, name, row["parameters"])
    for dataset, table in TABLES.items()
    for name, row in table.items()
    if name.removesuffix("+ln") in entries("model")
]


@pytest.mark.parametrize(("dataset", "name", "parameters"), ROWS)
def test_number_of_parameters_is_the_papers(dataset: str, name: str, parameters: int) -> None:
    facts = preset("datasets")[dataset]
    with torch.device("meta"):
        made = build(settings(name, dataset), facts["features"], facts["classes"])
    assert sum(value.numel() for value in made.parameters()) == parameters


def test_all_rows_of_the_tables_are_covered() -> None:
    assert len(ROWS) == 80
