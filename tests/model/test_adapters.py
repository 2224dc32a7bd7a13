"""Modules of torch_geometric and plain ones, wrapped: the same logits, every attack, right gradients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, GPSConv, SGConv, global_add_pool
from torch_geometric.nn.models import GAT, GCN, GIN, GraphSAGE, SGFormer

import grb
from grb.attack import AttackContext, run_attack
from grb.attack.build import build_attack
from grb.dataset import Dataset
from grb.dataset.raw_arrays import sparsify
from grb.errors import DataError, GRBError
from grb.graph import CSR, Adjacency, adjacency_from_edges, convert
from grb.model.adapters import Wrapped, wrap
from grb.model.base import predict, prepare
from grb.threat import Modification


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return grb.load_dataset("synth-tiny")


class GPS(nn.Module):
    """The smallest model of GPS layers."""

    def __init__(self, d: int, classes: int) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(d, 8), nn.Linear(8, classes)
        self.layer = GPSConv(8, conv=None, heads=2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.last(self.layer(self.first(x), edge_index))


def made(name: str, d: int, classes: int) -> nn.Module:
    torch.manual_seed(0)
    basic = {"GCN": GCN, "GAT": GAT, "GIN": GIN, "SAGE": GraphSAGE}
    if name in basic:
        return basic[name](d, 8, 2, classes)
    if name == "SGFormer":
        return SGFormer(d, 8, classes)
    return GPS(d, classes)


def edge_index_of(adj: Adjacency) -> Tensor:
    return torch.stack([adj.pattern.row_ids.long(), adj.pattern.indices.long()])


@pytest.mark.parametrize("name", ["GCN", "GAT", "GIN", "SAGE", "SGFormer", "GPS"])
def test_models_of_torch_geometric_give_their_own_logits_and_are_attacked(name: str, dataset: Dataset) -> None:
    graph = dataset.graph
    module = made(name, graph.num_features, dataset.num_classes).eval()
    model = wrap(module)
    own = {} if name != "SGFormer" else {"batch": torch.zeros(graph.n, dtype=torch.int64)}
    with torch.no_grad():
        wanted = module(graph.x, edge_index_of(graph.adj), **own)
    assert torch.allclose(predict(model, graph), wanted, atol=1e-5)
    assert model.has_edge_gradients == (name == "GCN")
    for attack, more in (("pgd", {"iterations": 3}), ("rnd", {}), ("dice", {})):
        result = grb.run_attack(attack, model, dataset, **more)
        assert not result.edit.is_empty
        assert 0 <= grb.evaluate(model, dataset, result)["full"] <= 1


@pytest.mark.parametrize("attack", ["prbcd", "fga"])
def test_attacks_on_edges_follow_weights_or_say_that_there_are_none(attack: str, dataset: Dataset) -> None:
    d, classes = dataset.graph.num_features, dataset.num_classes
    view = dataset.attacker_view("full")
    threat = Modification(edge_ratio=0.05)
    small = {"n_epoch": 2} if attack == "prbcd" else {}
    weighted = AttackContext(view, threat, wrap(made("GCN", d, classes)), "white-box")
    assert not run_attack(build_attack(attack, "synth-tiny", **small), weighted, seed=0).edit.is_empty
    plain = AttackContext(view, threat, wrap(made("GAT", d, classes)), "white-box")
    with pytest.raises(GRBError, match="takes no weights of edges"):
        run_attack(build_attack(attack, "synth-tiny", **small), plain, seed=0)


def test_gradients_of_edges_match_finite_differences(dataset: Dataset) -> None:
    """Float64, every entry of a few edges, against central differences."""
    graph = dataset.graph
    model = wrap(made("GCN", graph.num_features, dataset.num_classes).double().eval())
    x = graph.x.double()  # type: ignore[union-attr]
    values = torch.ones(graph.adj.pattern.entries, dtype=torch.float64)

    def loss(weights: Tensor) -> Tensor:
        return model(x, prepare(model, Adjacency(graph.adj.pattern, weights))).square().sum()

    tracked = values.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(tracked), tracked)
    for entry in range(0, len(values), len(values) // 7):
        step = torch.zeros_like(values)
        step[entry] = 1e-6
        numeric = (loss(values + step) - loss(values - step)).detach() / 2e-6
        assert float(gradient[entry]) == pytest.approx(float(numeric), rel=1e-5, abs=1e-6)


class Plain(nn.Module):
    """A hand-written layer on a sparse adjacency."""

    def __init__(self, d: int, classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(d, classes)

    def forward(self, x: Tensor, adj: Tensor) -> Tensor:
        return torch.sparse.mm(adj, self.linear(x))


def test_a_plain_module_takes_the_adjacency_and_has_gradients(dataset: Dataset) -> None:
    graph = dataset.graph
    module = Plain(graph.num_features, dataset.num_classes)
    model = wrap(module)
    dense = torch.zeros(graph.n, graph.n)
    dense[tuple(edge_index_of(graph.adj))] = 1.0
    with torch.no_grad():
        assert torch.allclose(predict(model, graph), dense @ module.linear(graph.x), atol=1e-5)
    result = grb.run_attack("prbcd", model, dataset, n_epoch=2)
    assert result.budget["edges"] > 0


def test_a_layer_with_a_cache_sees_the_edited_graph(dataset: Dataset) -> None:
    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = SGConv(dataset.graph.num_features, dataset.num_classes, K=2, cached=True)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(x, edge_index)

    model = wrap(Cached())
    before = predict(model, dataset.graph)
    edit = grb.run_attack("rnd", None, dataset).edit
    after = predict(model, dataset.graph.apply(edit))
    assert len(after) == len(before) + edit.num_new
    assert torch.equal(predict(model, dataset.graph), before)


def test_what_cannot_be_wrapped_is_refused_in_one_sentence(dataset: Dataset) -> None:
    with pytest.raises(DataError, match="does not show how it takes a graph"):
        wrap(nn.Linear(2, 2))
    with pytest.raises(GRBError, match="no style 'dgll'"):
        wrap(nn.Linear(2, 2), style="dgll")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="a torch.nn.Module is needed"):
        wrap(len)  # type: ignore[arg-type]
    model = wrap(nn.Linear(2, 2), style="pyg")
    assert wrap(model) is model and isinstance(model, Wrapped)

    class Odd(nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor) -> Any:
            return {"logits": x}

    with pytest.raises(DataError, match="gives a dict"):
        predict(wrap(Odd()), dataset.graph)


@pytest.mark.parametrize(("style", "package"), [("dgl", "dgl"), ("cogdl", "cogdl.data")])
def test_libraries_that_are_not_there_are_named(
    style: Any, package: str, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"model needs {package}"):
        predict(wrap(nn.Linear(2, 2), style=style), dataset.graph)


def test_a_gat_on_cora_is_attacked_in_ten_lines() -> None:
    """That the example runs is seen in test_docs.py."""
    text = (Path(__file__).parents[2] / "examples" / "attack_pyg_gat.py").read_text(encoding="utf-8")
    assert len([line for line in text.partition("\n")[2].splitlines() if line.strip()]) == 10


def test_self_loops_are_added_where_the_module_was_trained_with_them(dataset: Dataset) -> None:
    graph = dataset.graph
    module = Plain(graph.num_features, dataset.num_classes)
    dense = torch.eye(graph.n)
    dense[tuple(edge_index_of(graph.adj))] = 1.0
    with torch.no_grad():
        assert torch.allclose(predict(wrap(module, self_loops=True), graph), dense @ module.linear(graph.x), atol=1e-5)
    values = torch.full((graph.adj.pattern.entries,), 0.5)
    with torch.no_grad():
        model = wrap(module, self_loops=True)
        weighted = model(graph.x, prepare(model, Adjacency(graph.adj.pattern, values)))
        dense = 0.5 * dense + 0.5 * torch.eye(graph.n)
        assert torch.allclose(weighted, dense @ module.linear(graph.x), atol=1e-5)


def test_sparse_features_become_dense_once(dataset: Dataset) -> None:
    sparse = sparsify(torch.eye(dataset.graph.n)[:, :100])
    assert isinstance(sparse, CSR)
    model = wrap(made("GAT", 100, dataset.num_classes).eval())
    first = predict(model, dataset.graph.with_features(sparse))
    kept = model._made_dense
    assert torch.equal(predict(model, dataset.graph.with_features(sparse)), first) and model._made_dense is kept
    dense = dataset.graph.with_features(torch.eye(dataset.graph.n)[:, :100])
    assert torch.allclose(first, predict(model, dense), atol=1e-6)


class OfGraphs(nn.Module):
    """A classifier of whole graphs in the way of torch_geometric's examples."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.conv = GCNConv(features, 16)
        self.head = nn.Linear(16, classes)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        out: Tensor = self.head(global_add_pool(self.conv(x, edge_index, edge_weight).relu(), batch))
        return out


def test_a_classifier_of_graphs_is_attacked_graph_by_graph() -> None:
    fold = grb.load_dataset("synth-graphs").with_split(0)
    torch.manual_seed(0)
    net = OfGraphs(fold.num_features, fold.num_classes)
    model = grb.wrap(net, pools=True)
    data = convert.to_pyg(fold.graph)
    sizes = fold.graph.ptr.diff()
    batch = torch.arange(len(sizes)).repeat_interleave(sizes)
    torch.testing.assert_close(predict(model, fold.graph), net(data.x, data.edge_index, batch).detach())
    for attack in ("fga", "dice", "fgsm"):
        options = {"iterations": 3} if attack == "fgsm" else {}
        result = grb.run_attack(attack, model, fold, seed=0, **options)
        edited = fold.graph.apply(result.edit)
        after = torch.arange(len(sizes)).repeat_interleave(edited.ptr.diff())
        alone = net(edited.x, convert.to_pyg(edited).edge_index, after)
        torch.testing.assert_close(predict(model, edited), alone.detach())
        assert grb.evaluate(model, fold, result)["full"] <= 1


def test_pooling_is_refused_where_it_cannot_be() -> None:
    with pytest.raises(DataError, match=r"pools=True needs a forward\(x, edge_index, batch\)"):
        grb.wrap(GPS(3, 2), pools=True)
    fold = grb.load_dataset("synth-graphs").with_split(0)
    with pytest.raises(DataError, match="classifies nodes, but"):
        grb.run_attack("fga", grb.wrap(OfGraphs(fold.num_features, 3)), fold)
    empty = grb.wrap(OfGraphs(3, 2), pools=True)
    op = empty.prepare(adjacency_from_edges([[0], [1]], 2)[0])
    with pytest.raises(DataError, match="1 rows of logits for 2 graphs"):
        empty(torch.rand(2, 3), op, torch.tensor([0, 2, 2]))


def test_what_does_not_fit_the_dataset_is_said_in_one_sentence(dataset: Dataset) -> None:
    narrow = wrap(GCN(dataset.num_features + 1, 4, num_layers=1, out_channels=dataset.num_classes))
    with pytest.raises(DataError, match="was made for another number of features than the"):
        grb.evaluate(narrow, dataset)
    two = wrap(GCN(dataset.num_features, 4, num_layers=1, out_channels=2))
    with pytest.raises(DataError, match=r"'GCN' gives logits of shape .*each of which needs a column"):
        grb.evaluate(two, dataset)
    with pytest.raises(DataError, match=r"becomes a model by grb\.wrap\(model\)"):
        grb.evaluate(two.module, dataset)


def test_a_dataset_goes_to_torch_geometric_with_its_masks(dataset: Dataset) -> None:
    data = dataset.to_pyg()
    back = Dataset.from_pyg(data, feat_norm=None, own_split=True)
    assert torch.equal(back.graph.adj.edges(), dataset.graph.adj.edges())
    assert torch.equal(back.index_train, dataset.index_train) and torch.equal(back.index_test, dataset.index_test)
    graphs = grb.load_dataset("synth-graphs")
    assert [int(each.y) for each in graphs.to_pyg()] == graphs.labels.tolist()


class OfData(nn.Module):
    """As examples of torch_geometric are written: one ``Data`` in, log-probabilities out."""

    def __init__(self, d: int, classes: int, *, weighted: bool) -> None:
        super().__init__()
        self.layer, self.weighted = GCNConv(d, classes), weighted

    def forward(self, data: Any) -> Tensor:
        weight = getattr(data, "edge_weight", None) if self.weighted else None
        return torch.log_softmax(self.layer(data.x, data.edge_index, weight), dim=1)


@pytest.mark.parametrize("weighted", [True, False])
def test_modules_of_one_data_need_no_argument(weighted: bool, dataset: Dataset) -> None:
    graph = dataset.graph
    torch.manual_seed(0)
    module = OfData(graph.num_features, dataset.num_classes, weighted=weighted).eval()
    model = wrap(module)
    assert model.style == "data"
    with torch.no_grad():
        assert torch.allclose(predict(model, graph), module(dataset.to_pyg()), atol=1e-6)
    assert not grb.run_attack("fgsm", model, dataset, iterations=2).edit.is_empty
    view, threat = dataset.attacker_view("full"), Modification(edge_ratio=0.05)
    context = AttackContext(view, threat, model, "white-box")
    if weighted:
        edit = run_attack(build_attack("fga", dataset.name), context, seed=0).edit
        same = wrap(module.layer, style="pyg")
        again = AttackContext(view, threat, same, "white-box")
        assert torch.equal(edit.add, run_attack(build_attack("fga", dataset.name), again, seed=0).edit.add)
    else:
        with pytest.raises(DataError, match="takes no weights of edges"):
            run_attack(build_attack("fga", dataset.name), context, seed=0)


def test_modules_of_several_node_types_are_refused_in_a_sentence() -> None:
    class Hetero(nn.Module):
        def forward(self, x_dict: Any, edge_index_dict: Any) -> Any:
            return x_dict

    with pytest.raises(DataError, match=r"takes nodes of several types.*to_homogeneous"):
        wrap(Hetero())
