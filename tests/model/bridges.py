"""Checks of modules of DGL and CogDL behind ``grb.wrap``, run by test_bridges.py in an environment that has those libraries.

``python bridges.py dgl`` (or ``cogdl``) prints what every check found as JSON.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import grb
import grb.trainer
from grb.errors import DataError
from grb.graph import Adjacency
from grb.model.adapters import Wrapped, wrap
from grb.model.base import predict, prepare
from grb.threat import Injection, Modification

EXACT = 1e-5


@cache
def dataset() -> grb.Dataset:
    return grb.load_dataset("synth-tiny")


def entries(adj: Adjacency) -> tuple[Tensor, Tensor]:
    return adj.pattern.row_ids.long(), adj.pattern.indices.long()


def fitted(run: Callable[[Tensor], Tensor], module: nn.Module) -> nn.Module:
    """Trained as its own library would, on the whole graph."""
    x, y, train = dataset().graph.x, dataset().labels, dataset().index_train
    optimizer = torch.optim.Adam(module.parameters(), lr=0.01, weight_decay=5e-4)
    module.train()
    for _ in range(100):
        optimizer.zero_grad()
        functional.cross_entropy(run(x)[train], y[train]).backward()
        optimizer.step()
    return module.eval()


class Convolutions(nn.Module):
    """Two GraphConv, with weights of edges."""

    def __init__(self, d: int, classes: int) -> None:
        super().__init__()
        from dgl.nn.pytorch import GraphConv

        self.first, self.last = GraphConv(d, 16, activation=torch.relu), GraphConv(16, classes)

    def forward(self, graph: Any, x: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return self.last(graph, self.first(graph, x, edge_weight=edge_weight), edge_weight=edge_weight)


class Attention(nn.Module):
    """Two GATConv, which are given no weights of edges here."""

    def __init__(self, d: int, classes: int) -> None:
        super().__init__()
        from dgl.nn.pytorch import GATConv

        self.first, self.last = GATConv(d, 8, 2), GATConv(16, classes, 1)

    def forward(self, graph: Any, x: Tensor) -> Tensor:
        return self.last(graph, functional.elu(self.first(graph, x).flatten(1))).mean(1)


@cache
def dgl_graph() -> Any:
    """With self-loops, as DGL's own examples have it."""
    import dgl

    return dgl.add_self_loop(dgl.graph(entries(dataset().graph.adj), num_nodes=dataset().num_nodes))


@cache
def dgl_model(kind: type[nn.Module]) -> tuple[Wrapped, Tensor]:
    """A wrapped module and the logits of the module alone."""
    torch.manual_seed(0)
    module = kind(dataset().num_features, dataset().num_classes)
    fitted(lambda x: module(dgl_graph(), x), module)
    with torch.no_grad():
        return wrap(module, self_loops=True), module(dgl_graph(), dataset().graph.x)


@cache
def cogdl_model(kind: str = "GCN") -> tuple[Wrapped, Tensor]:
    from cogdl.data import Graph
    from cogdl.models.nn.gat import GAT
    from cogdl.models.nn.gcn import GCN

    d, classes = dataset().num_features, dataset().num_classes
    torch.manual_seed(0)
    module = GCN(d, 16, classes, 2, 0.5) if kind == "GCN" else GAT(d, 8, classes, 2, 0.5, 0.5, 0.2, 2, False, 1)

    def run(x: Tensor) -> Tensor:
        graph = Graph(x=x, edge_index=entries(dataset().graph.adj), num_nodes=dataset().num_nodes)
        graph.add_remaining_self_loops()
        return module(graph)

    fitted(run, module)
    with torch.no_grad():
        return wrap(module, self_loops=True), run(dataset().graph.x)


def same_logits(model: Wrapped, wanted: Tensor) -> None:
    gap = float((predict(model, dataset().graph) - wanted).abs().max())
    assert gap <= EXACT, f"logits differ by {gap}"
    assert grb.evaluate(model, dataset())["full"] > 0.5, grb.evaluate(model, dataset())


def loses_to_injection(model: Wrapped) -> None:
    clean = grb.evaluate(model, dataset())["full"]
    limits = Injection(nodes=20, edges_per_node=10, feature_range=(-0.9, 0.9))
    attacked = grb.run_attack("pgd", model, dataset(), threat=limits, iterations=50)
    assert grb.evaluate(model, dataset(), attacked)["full"] < clean - 0.1


def loses_to_edges(model: Wrapped) -> None:
    assert model.has_edge_gradients
    clean = grb.evaluate(model, dataset())["full"]
    attacked = grb.run_attack("prbcd", model, dataset(), threat=Modification(edge_ratio=0.15), n_epoch=60)
    assert grb.evaluate(model, dataset(), attacked)["full"] < clean - 0.15


def zero_is_absent(model: Wrapped, wanted: Tensor) -> None:
    """Candidates of weight zero change nothing, though the module counts edges."""
    graph = dataset().graph
    edit = grb.run_attack("rnd", None, dataset(), threat=Injection(30, 10, (-0.9, 0.9))).edit
    wide = graph.apply(edit).adj
    old = torch.stack(entries(wide)).max(0).values < graph.n
    x = torch.cat([graph.x, torch.randn(30, graph.num_features, generator=torch.Generator().manual_seed(0))])
    with torch.no_grad():
        logits = model(x, prepare(model, Adjacency(wide.pattern, old.float())))[: graph.n]
    gap = float((logits - wanted).abs().max())
    assert gap <= EXACT * max(1.0, float(wanted.abs().max())), f"logits differ by {gap}"


def edge_gradients(model: Wrapped) -> None:
    """In float64 against central differences, every entry of a few edges; gradients of features beside them."""
    graph = dataset().graph
    model.double()
    try:
        x = graph.x.double().requires_grad_()
        values = torch.ones(graph.adj.pattern.entries, dtype=torch.float64)

        def loss(features: Tensor, weights: Tensor) -> Tensor:
            return model(features, prepare(model, Adjacency(graph.adj.pattern, weights))).square().sum()

        tracked = values.clone().requires_grad_()
        by_x, by_edge = torch.autograd.grad(loss(x, tracked), (x, tracked))
        assert float(by_edge.abs().max()) > 0 and float(by_x.abs().max()) > 0
        for entry in range(0, len(values), len(values) // 7):
            step = torch.zeros_like(values)
            step[entry] = 1e-6
            numeric = float((loss(x, values + step) - loss(x, values - step)).detach()) / 2e-6
            assert abs(float(by_edge[entry]) - numeric) <= 1e-5 * max(1.0, abs(numeric)), (entry, numeric)
        for row, column in ((0, 0), (7, 3), (100, 11)):
            step = torch.zeros_like(x)
            step[row, column] = 1e-6
            numeric = float((loss(x + step, values) - loss(x - step, values)).detach()) / 2e-6
            assert abs(float(by_x[row, column]) - numeric) <= 1e-5 * max(1.0, abs(numeric)), (row, column, numeric)
    finally:
        model.float()


def refuses_edges(model: Wrapped) -> None:
    try:
        grb.run_attack("prbcd", model, dataset(), threat=Modification(edge_ratio=0.05), n_epoch=2)
    except DataError as error:
        assert "takes no weights of edges" in str(error), error
    else:
        raise AssertionError("an attack on edges ran without their gradients")


def ready(library: str, name: str, *, edges: bool = True) -> None:
    """A model of ``grb.model.dgl`` or ``grb.model.cogdl`` in our Trainer and under our attacks, without any conversion."""
    import importlib

    torch.manual_seed(0)
    d, classes = dataset().num_features, dataset().num_classes
    make = getattr(importlib.import_module(f"grb.model.{library}"), name)
    model = make(d, classes, hidden_features=16, n_layers=2, dropout=0.3)
    adam = torch.optim.Adam(model.parameters(), lr=0.01)
    trainer = grb.trainer.Trainer(dataset=dataset(), optimizer=adam, loss=functional.cross_entropy)
    trainer.train(model=model, n_epoch=100, train_mode="inductive")
    assert trainer.evaluate(model) > 0.5, trainer.evaluate(model)
    loses_to_injection(model)
    if edges:
        loses_to_edges(model)


CHECKS: dict[str, dict[str, Callable[[], None]]] = {
    "dgl": {
        "a ready GCN trains and loses to injected nodes and changed edges": lambda: ready("dgl", "GCN"),
        "a ready GAT trains and loses to injected nodes and changed edges": lambda: ready("dgl", "GAT"),
        "a ready GIN trains and loses to injected nodes and changed edges": lambda: ready("dgl", "GIN"),
        "GraphConv has its own logits": lambda: same_logits(*dgl_model(Convolutions)),
        "GraphConv loses to injected nodes": lambda: loses_to_injection(dgl_model(Convolutions)[0]),
        "GraphConv loses to changed edges": lambda: loses_to_edges(dgl_model(Convolutions)[0]),
        "GraphConv has the gradients of finite differences": lambda: edge_gradients(dgl_model(Convolutions)[0]),
        "GraphConv does not count candidates": lambda: zero_is_absent(*dgl_model(Convolutions)),
        "GATConv has its own logits": lambda: same_logits(*dgl_model(Attention)),
        "GATConv loses to injected nodes": lambda: loses_to_injection(dgl_model(Attention)[0]),
        "GATConv without weights refuses attacks on edges": lambda: refuses_edges(dgl_model(Attention)[0]),
    },
    "cogdl": {
        "a ready GCN trains and loses to injected nodes and changed edges": lambda: ready("cogdl", "GCN"),
        "a ready GAT trains and loses to injected nodes": lambda: ready("cogdl", "GAT", edges=False),
        "GCN has its own logits": lambda: same_logits(*cogdl_model()),
        "GCN loses to injected nodes": lambda: loses_to_injection(cogdl_model()[0]),
        "GCN loses to changed edges": lambda: loses_to_edges(cogdl_model()[0]),
        "GCN has the gradients of finite differences": lambda: edge_gradients(cogdl_model()[0]),
        "GCN does not count candidates": lambda: zero_is_absent(*cogdl_model()),
        "GAT has its own logits": lambda: same_logits(*cogdl_model("GAT")),
        "GAT loses to injected nodes": lambda: loses_to_injection(cogdl_model("GAT")[0]),
        "GAT refuses attacks on edges": lambda: refuses_edges(cogdl_model("GAT")[0]),
    },
}


def main(library: str) -> None:
    found = {}
    for name, check in CHECKS[library].items():
        try:
            check()
            found[name] = ""
        except Exception:  # told to the test, which fails with it
            found[name] = traceback.format_exc()
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
