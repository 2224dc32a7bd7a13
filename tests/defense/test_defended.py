from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import grb
from grb.dataset import Dataset
from grb.defense import Cosine, Defended, Jaccard, Transform
from grb.errors import DataError, UnknownName
from grb.graph import Graph, GraphEdit, adjacency_from_edges
from grb.model.base import predict
from grb.model.torch import GCN


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return grb.load_dataset("synth-tiny")


def random_graph(n: int = 25, d: int = 4) -> Graph:
    rng = np.random.default_rng(0)
    adj, _ = adjacency_from_edges(np.argwhere(np.triu(rng.random((n, n)) < 0.2, 1)).T, n)
    return Graph(adj, torch.from_numpy(rng.normal(size=(n, d)).astype(np.float32)))


def gcn(d: int = 4) -> GCN:
    return GCN(d, 3, [5], generator=torch.Generator().manual_seed(0)).eval()


def test_it_is_the_model_on_the_preprocessed_graph() -> None:
    graph, model = random_graph(), gcn()
    for part in (Jaccard(0.3), Cosine(), Transform("tanh")):
        assert torch.equal(predict(Defended(model, part), graph), predict(model, part(graph)))
    assert not torch.equal(predict(Defended(model, Cosine()), graph), predict(model, graph))


def test_injected_nodes_meet_the_part_too() -> None:
    graph, model = random_graph(), gcn()
    assert isinstance(graph.x, Tensor)
    against = -graph.x[:1] * 10  # as unlike node 0 as can be
    attacked = graph.apply(GraphEdit(n=graph.n, add=torch.tensor([[0], [graph.n]]), new_x=against))
    clean, defended = predict(model, graph)[0], Defended(model, Cosine(0.0))
    assert not torch.allclose(predict(model, attacked)[0], clean)
    torch.testing.assert_close(predict(defended, attacked)[:1], predict(defended, graph)[:1])


def test_features_decide_once_while_they_stay_the_same() -> None:
    calls: list[Graph] = []

    def counting(graph: Graph) -> Graph:
        calls.append(graph)
        return Cosine()(graph)

    graph, defended = random_graph(), Defended(gcn(), counting)
    op = defended.prepare(graph.adj)
    assert isinstance(graph.x, Tensor)
    first = defended(graph.x, op)
    assert torch.equal(defended(graph.x, op), first) and len(calls) == 1
    graph.x[0] = -graph.x[0]  # the same object with other values
    assert not torch.equal(defended(graph.x, op), first) and len(calls) == 2
    defended(graph.x.clone(), op)
    assert len(calls) == 3
    leaf = graph.x.clone().requires_grad_()
    for _ in range(2):  # gradients of an earlier pass must not be found again
        torch.autograd.grad(defended(leaf, op).sum(), leaf)
    assert len(calls) == 5


def test_gradients_of_features_equal_finite_differences() -> None:
    graph = random_graph()
    assert isinstance(graph.x, Tensor)
    defended, x = Defended(gcn().double(), Cosine(0.2)), graph.x.double()
    op = defended.prepare(graph.adj)
    leaf = x.clone().requires_grad_()
    (analytic,) = torch.autograd.grad(defended(leaf, op).square().sum(), leaf)
    for place in ((0, 0), (3, 2), (11, 1), (24, 3)):
        shift = torch.zeros_like(x)
        shift[place] = 1e-6
        with torch.no_grad():
            above, below = (defended(x + sign * shift, op).square().sum() for sign in (1, -1))
        assert float(analytic[place]) == pytest.approx(float((above - below) / 2e-6), rel=1e-5, abs=1e-7)


def test_a_node_cut_off_gets_a_direction_only_from_the_relaxed_model() -> None:
    graph, model = random_graph(), gcn()
    defended = Defended(model, Jaccard())
    wired = GraphEdit(n=graph.n, add=torch.tensor([[0, 1], [graph.n, graph.n]]), new_x=torch.zeros(1, 4))
    attacked = graph.apply(wired)

    def gradient(victim: torch.nn.Module) -> tuple[Tensor, Tensor]:
        assert isinstance(attacked.x, Tensor)
        leaf = attacked.x.clone().requires_grad_()
        logits = victim(leaf, victim.prepare(attacked.adj))  # type: ignore[operator]
        (found,) = torch.autograd.grad(logits[0].square().sum(), leaf)
        return logits, found[-1]

    logits, own = gradient(defended)
    same_logits, relaxed = gradient(defended.relaxed())
    assert torch.equal(logits, same_logits)
    assert not own.any() and relaxed.any()


def test_fgsm_breaks_a_filter_only_through_the_relaxed_model(dataset: Dataset) -> None:
    model = grb.train("gcn-jaccard", dataset, epochs=40, seed=0)
    assert isinstance(model, Defended)
    stuck = grb.run_attack("fgsm", model, dataset, iterations=20)
    adaptive = grb.run_attack("fgsm", model.relaxed(), dataset, iterations=20)
    assert stuck.edit.new_x is not None and not stuck.edit.new_x.any()
    assert adaptive.edit.new_x is not None and adaptive.edit.new_x.any()
    assert grb.evaluate(model, dataset, adaptive)["full"] <= grb.evaluate(model, dataset, stuck)["full"]


def test_any_model_and_several_parts_by_name(dataset: Dataset, tmp_path: Path) -> None:
    model = grb.train("GAT-transform-cosine+LN", dataset, epochs=2, heads=2, threshold=0.3, function="unit")
    assert isinstance(model, Defended) and isinstance(model.model, Defended)
    assert model.title == "gat-transform-cosine+ln" and model.name == "gat-transform-cosine"
    assert model.part == Cosine(0.3) and model.model.part == Transform("unit")
    assert model.params["heads"] == 2 and model.params["layer_norm"] is True
    loaded = grb.load_model(grb.save_model(model, tmp_path / "model.safetensors"))
    assert loaded.params == model.params
    assert torch.equal(predict(loaded, dataset.graph), predict(model, dataset.graph))


def test_it_has_the_settings_of_its_model() -> None:
    from grb.model.build import settings

    for name, plain in (("gcn-jaccard", "gcn"), ("gat-cosine+ln", "gat+ln"), ("r-gcn-cosine+at", "r-gcn")):
        assert settings(name, "grb-flickr").params == settings(plain, "grb-flickr").params


def test_the_penalty_of_the_model_is_kept() -> None:
    from grb.defense.robustgcn import RobustGCN

    graph = random_graph()
    model = Defended(RobustGCN(4, 3, [5], generator=torch.Generator().manual_seed(0)), Cosine()).train()
    model(graph.x, model.prepare(graph.adj))
    assert float(model.penalty().detach()) > 0  # type: ignore[union-attr]
    assert Defended(gcn(), Cosine()).penalty() == 0


def test_what_makes_no_sense_is_refused(dataset: Dataset) -> None:
    with pytest.raises(DataError, match="an mlp uses no edges"):
        grb.train("mlp-jaccard", dataset)
    with pytest.raises(DataError, match="both gcn-jaccard and its preprocess part take 'threshold'"):
        grb.train("gcn-jaccard-cosine", dataset)
    with pytest.raises(DataError, match="has '-jaccard' twice; keep one of them"):
        grb.train("gcn-jaccard-jaccard", dataset)
    with pytest.raises(UnknownName, match="no model 'gcn-at'"):
        grb.train("gcn-at", dataset)
    with pytest.raises(DataError, match="'gcn-jaccard' does not take 'heads'; it takes .*threshold"):
        grb.train("gcn-jaccard", dataset, heads=2)
    with pytest.raises(DataError, match="threshold is 2, but"):
        grb.train("gcn-jaccard", dataset, threshold=2)


def test_a_part_of_your_own_works_but_is_not_saved_under_a_name_that_means_another(tmp_path: Path) -> None:
    own = type("Jaccard", (Jaccard,), {})  # another class of the same name
    graph = random_graph()
    for part in (own(), lambda graph: graph):
        model = Defended(gcn(), part)
        assert torch.isfinite(predict(model, graph)).all()
        with pytest.raises(UnknownName, match="no model 'gcn-"):
            grb.save_model(model, tmp_path / "model.safetensors")
    assert list(tmp_path.iterdir()) == []
    assert grb.load_model(grb.save_model(Defended(gcn(), Jaccard(0.2)), tmp_path / "ok.safetensors")).part == Jaccard(
        0.2
    )
