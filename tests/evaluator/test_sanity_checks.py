from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import grb
from grb.attack.base import Step
from grb.catalogue import entries
from grb.dataset import Dataset
from grb.errors import DataError
from grb.evaluator.probe import Probe, _wired
from grb.evaluator.sanity_checks import check_model, check_trace, probabilities, random_forward
from grb.evaluator.score_checks import Flag
from grb.graph import Graph
from grb.graph.edit import sparse_features
from grb.names import TRANSDUCTIVE


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return grb.load_dataset("synth-tiny")


@pytest.fixture(scope="module")
def gcn(dataset: Dataset) -> nn.Module:
    return grb.train("gcn", dataset, epochs=10)


class Spoilt(nn.Module):
    """A model with a planted defect; not one of ours, so it has nothing but prepare and forward."""

    def __init__(self, model: nn.Module, forward: Callable[..., Tensor]) -> None:
        super().__init__()
        self.model, self.spoil = model, forward

    def prepare(self, adj: Any) -> Any:
        return self.model.prepare(adj)  # type: ignore[operator]

    def forward(self, x: Tensor, op: Any) -> Tensor:
        return self.spoil(self.model, x, op)


def names(flags: list[Flag]) -> list[str]:
    return [flag.name for flag in flags]


# ---------------------------------------------------------------- models


@pytest.mark.parametrize("name", [*entries("model"), "gcn+ln", "gat+ln", "gin+ln", "gcn+at"])
def test_honest_models_raise_nothing(dataset: Dataset, name: str) -> None:
    small = {} if name == "sgc" else {"hidden_features": [8, 8]}
    seen = "transductive" if name in TRANSDUCTIVE else "inductive"
    model = grb.train(name, dataset, epochs=5, train_mode=seen, **small)
    assert check_model(model, dataset, mode="full") == []


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.sign()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


DEFECTS: dict[str, tuple[Callable[..., Tensor], set[str]]] = {
    "noise": (lambda model, x, op: model(x + 0.1 * torch.randn(x.shape), op), {"random-forward"}),
    "dropout that stays on": (
        lambda model, x, op: model(nn.functional.dropout(x, 0.2, training=True), op),
        {"random-forward"},
    ),
    "softmax": (lambda model, x, op: torch.softmax(model(x, op), 1), {"probabilities-not-logits"}),
    "detach": (lambda model, x, op: model(x.detach(), op), {"zero-gradient", "masked-gradient"}),
    "no_grad": (torch.no_grad()(lambda model, x, op: model(x, op)), {"zero-gradient", "masked-gradient"}),
    "sign": (lambda model, x, op: model(x.sign(), op), {"zero-gradient", "masked-gradient"}),
    "half detached": (lambda model, x, op: model((x + x.detach()) / 2, op), {"masked-gradient"}),
    "straight through": (lambda model, x, op: model(StraightThrough.apply(x), op), {"masked-gradient"}),
    "scaled backward": (lambda model, x, op: model(-x + (2 * x).detach(), op), {"masked-gradient"}),
    "not finite": (lambda model, x, op: model(x, op) / 0, {"not-finite"}),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_found_and_nothing_else(dataset: Dataset, gcn: nn.Module, defect: str) -> None:
    spoil, expected = DEFECTS[defect]
    for seed in range(3):
        assert set(names(check_model(Spoilt(gcn, spoil), dataset, mode="full", seed=seed))) == expected


def test_noise_from_a_generator_of_its_own_is_found(dataset: Dataset, gcn: nn.Module) -> None:
    generator = torch.Generator().manual_seed(0)

    def noisy(model: nn.Module, x: Tensor, op: Any) -> Tensor:
        return model(x, op) + 0.01 * torch.randn(len(x), 1, generator=generator)

    assert "random-forward" in names(check_model(Spoilt(gcn, noisy), dataset))


def test_a_model_that_ignores_edges_has_no_dead_gradients(dataset: Dataset) -> None:
    """Injected nodes have exactly zero gradients there, and rightly so."""
    model = grb.train("mlp", dataset, epochs=5).eval()
    view = dataset.attacker_view("full")
    assert isinstance(view.graph.x, Tensor)
    probe = Probe.make(model, view.graph, view.targets, 4, torch.Generator().manual_seed(0))
    assert (probe.gradient[4:] == 0).all() and not (probe.gradient[:4] == 0).all(1).any()
    assert [probe.matters(row) for row in range(8)] == [True] * 4 + [False] * 4


def test_sentences_say_what_was_measured_what_is_allowed_and_what_to_do(dataset: Dataset, gcn: nn.Module) -> None:
    (flag,) = check_model(Spoilt(gcn, DEFECTS["half detached"][0]), dataset, mode="full")
    assert flag.message == (
        "along 6 of 6 directions the loss does not rise as its gradient says (off by 50%, while 10% is allowed); look "
        "for detach() or a custom backward pass in forward, or attack without gradients"
    )
    assert flag.numbers["wrong"] == 6 and flag.numbers["median_error"] == pytest.approx(0.5, abs=0.05)
    assert json.loads(json.dumps(flag.to_dict())) == {
        "name": flag.name,
        "message": flag.message,
        "numbers": dict(flag.numbers),
    }
    assert str(flag).startswith("masked-gradient: along 6 of 6")


def test_the_model_and_the_random_state_are_left_as_they_were(dataset: Dataset) -> None:
    model = grb.train("gcn", dataset, epochs=2, dropout=0.5).train()
    next(model.parameters()).requires_grad_(False)
    before = [(p.clone(), p.requires_grad, p.grad) for p in model.parameters()]
    state = torch.get_rng_state()
    check_model(model, dataset)
    assert all(module.training for module in model.modules())
    after = [(p, p.requires_grad, p.grad) for p in model.parameters()]
    assert all(torch.equal(a[0], b[0]) and a[1:] == b[1:] for a, b in zip(before, after, strict=True))
    assert torch.equal(torch.get_rng_state(), state)


def test_a_defenders_view_and_a_graph_with_sparse_features_work(dataset: Dataset, gcn: nn.Module) -> None:
    assert check_model(gcn, dataset.defender_view()) == []
    view = dataset.attacker_view()
    assert isinstance(view.graph.x, Tensor)
    sparse = Graph(view.graph.adj, sparse_features(view.graph.x), view.graph.y)
    none = torch.empty(0, dtype=torch.int64)
    everyone = type(view)(sparse, none, none, none, view.nodes, view.num_classes)
    assert check_model(gcn, everyone) == []
    detached = Spoilt(gcn, DEFECTS["detach"][0])
    assert "zero-gradient" in names(check_model(detached, everyone))


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_graphs_of_very_few_nodes_work(dataset: Dataset, gcn: nn.Module, nodes: int) -> None:
    graph = dataset.graph.subgraph(torch.arange(nodes))
    none = torch.empty(0, dtype=torch.int64)
    view = type(dataset.attacker_view())(graph, none, none, none, torch.arange(nodes), dataset.num_classes)
    assert check_model(gcn, view) == []
    assert "masked-gradient" in names(check_model(Spoilt(gcn, DEFECTS["half detached"][0]), view))


POOL_DEFECTS: dict[str, tuple[Callable[..., Tensor], str]] = {
    "detached": (lambda model, x, op: model(x.detach(), op), "zero-gradient"),
    "half detached": (lambda model, x, op: model(0.5 * x + 0.5 * x.detach(), op), "masked-gradient"),
    "rounded": (lambda model, x, op: model((x * 10).round() / 10, op), "zero-gradient"),
    "noisy": (lambda model, x, op: model(x + 0.1 * torch.randn_like(x), op), "random-forward"),
    "softmax": (lambda model, x, op: model(x, op).softmax(1), "probabilities-not-logits"),
}


class SpoiltPool(Spoilt):
    """The same for models of whole graphs."""

    pools = True

    def forward(self, x: Tensor, op: Any, ptr: Any = None) -> Tensor:
        return self.spoil(lambda rows, edges: self.model(rows, edges, ptr), x, op)


@pytest.mark.parametrize("name", ["gin-pool", "gcn-pool", "gat-pool", "mlp-pool", "tagcn-pool"])
def test_honest_models_of_whole_graphs_raise_nothing(name: str) -> None:
    graphs = grb.load_dataset("synth-graphs")
    model = grb.train(name, graphs, epochs=3)
    for seed in range(3):
        assert check_model(model, graphs, seed=seed) == []


@pytest.mark.parametrize("defect", ["detached", "half detached", "rounded", "noisy", "softmax"])
def test_defects_of_models_of_whole_graphs_are_found(defect: str) -> None:
    graphs = grb.load_dataset("synth-graphs")
    model = grb.train("gin-pool", graphs, epochs=3)
    spoil, expected = POOL_DEFECTS[defect]
    assert expected in names(check_model(SpoiltPool(model, spoil), graphs))


def test_the_rows_that_move_in_a_collection_are_the_copied_nodes_and_their_copies() -> None:
    graphs = grb.load_dataset("synth-graphs").graph
    assert isinstance(graphs.x, Tensor)
    first = graphs.ptr[torch.tensor([4, 0, 9])]  # type: ignore[index]
    wired, moved = _wired(graphs, first, torch.tensor([-1, int(first[1]) + 1, int(first[2]) + 1]))
    assert isinstance(wired.x, Tensor) and wired.n == graphs.n + 3
    assert torch.equal(wired.x[moved], graphs.x[first].repeat(2, 1))
    assert wired.owner[moved].tolist() == [4, 0, 9] * 2
    own, copies = moved[:3], moved[3:]
    assert wired.adj.has(torch.stack([own, copies])).all()
    assert wired.adj.degrees[copies].tolist() == [1, 2, 2]


def test_bad_input_is_refused(dataset: Dataset, gcn: nn.Module) -> None:
    with pytest.raises(DataError, match="samples is 0, but at least 1 is needed"):
        check_model(gcn, dataset, samples=0)
    with pytest.raises(DataError, match="the model is a gcn for"):
        check_model(grb.train("gcn", grb.load_dataset("synth-cora"), epochs=1), dataset)
    with pytest.raises(DataError, match="has no prepare"):
        check_model(nn.Linear(dataset.num_features, 2), dataset)
    view = dataset.attacker_view()
    collection = Graph(view.graph.adj, view.graph.x, None, torch.tensor([0, view.graph.n]))
    with pytest.raises(
        DataError, match="a model that pools is checked on a collection of graphs, and one that does not"
    ):
        check_model(gcn, type(view)(collection, view.train, view.val, view.targets, view.nodes, 3))
    empty = Graph(view.graph.adj.subgraph(view.train[:0]), torch.empty(0, dataset.num_features))
    with pytest.raises(DataError, match="the graph has no nodes"):
        check_model(gcn, type(view)(empty, *[view.train[:0]] * 4, 3))


def test_logits_that_differ_too_little_to_matter_are_no_randomness() -> None:
    logits = torch.tensor([[1.0, -2.0], [0.5, 0.25]])
    assert random_forward([logits, logits + 1e-5]) == []
    assert names(random_forward([logits, logits + 1e-3])) == ["random-forward"]
    (flag,) = random_forward([torch.tensor([[1e-6, 0.0], [9.0, 1.0]]), torch.tensor([[0.0, 1e-6], [9.0, 1.0]])])
    assert flag.numbers["changed"] == 1 and flag.numbers["difference"] < 1e-6


@settings(max_examples=50)
@given(st.integers(1, 6), st.integers(2, 5), st.integers(0, 2**16))
def test_only_rows_that_sum_to_one_are_probabilities(rows: int, classes: int, seed: int) -> None:
    logits = torch.randn(rows, classes, generator=torch.Generator().manual_seed(seed))
    assert names(probabilities(torch.softmax(logits, 1))) == ["probabilities-not-logits"]
    assert probabilities(torch.log_softmax(logits, 1)) == [] == probabilities(torch.softmax(logits, 1) * 1.01)
    # nonnegative logits below one are logits all the same
    assert probabilities(torch.sigmoid(logits) * 0.5 / classes) == []


# ---------------------------------------------------------------- traces and scores


def test_a_loss_that_never_rises_is_flat(dataset: Dataset, gcn: nn.Module) -> None:
    assert names(check_trace([Step(1.2, 0.9)] * 5, where="gcn")) == ["flat-loss"]
    assert names(check_trace([Step(1.2, 0.9), Step(1.1, 0.9)])) == ["flat-loss"]
    assert check_trace([Step(1.2, 0.9)]) == [] == check_trace([])
    honest = grb.run_attack("fgsm", gcn, dataset, iterations=5)
    assert check_trace(honest.steps) == []
    stuck = grb.run_attack("fgsm", Spoilt(gcn, lambda m, x, op: m(x.sign(), op) + 0 * x.sum()), dataset, iterations=5)
    assert names(check_trace(stuck.steps)) == ["flat-loss"]
