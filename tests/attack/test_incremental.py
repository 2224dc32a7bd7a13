"""The incremental forward pass is the full one, for every model that has stages."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from attack.contexts import context_of, graph_of, random_graph, same_edit
from grb.attack import run_attack
from grb.attack.incremental import Rewired, forward_of_features
from grb.attack.injection import FGSM
from grb.catalogue import entries, resolve
from grb.graph import Adjacency, Graph, GraphEdit
from grb.graph.edit import sparse_features
from grb.model.base import GraphModel, Rows, Stage, State, predict, prepare
from grb.model.torch import GCN

FEATURES, CLASSES = 3, 4
SMALL: dict[str, Any] = {"hidden_features": [3, 3], "dropout": 0.5}
# the weights of GNNGuard, RUNG and ElasticGNN depend on earlier layers, the low-rank graph of GCN-SVD is no sum over edges,
# PageRank and transformers join nodes far apart, and what a preprocess part leaves of the edges depends on the features
UNSTAGED = (
    *("gcnguard", "gatguard", "egnnguard", "gcn-svd", "gcn-jaccard", "gcn-cosine", "gcn-transform"),
    *("rung", "elasticgnn", "softmedian-gdc", "sgformer", "gps", "gcn-detect", "pro-gnn"),
)
STAGED = [name for name in entries("model") if name not in UNSTAGED]
MODELS: list[tuple[str, dict[str, Any]]] = [
    *[(name, {} if name == "sgc" else SMALL) for name in STAGED],
    *[(f"{name}+ln", {**SMALL, "layer_norm": True}) for name in STAGED if name not in ("sgc", "r-gcn", "grand")],
    *[(f"{name}+residual", {**SMALL, "residual": True}) for name in ("gcn", "tagcn", "graphsage")],
    ("gat+residual", {**SMALL, "hidden_features": [3, 3, 3], "heads": 1, "residual": True}),
    ("gcn+ln+residual", {**SMALL, "layer_norm": True, "residual": True}),
    ("graphsage+mean", {**SMALL, "aggregate": "mean"}),
    ("tagcn+k3", {**SMALL, "k": 3}),
    ("sgcn+k0", {**SMALL, "k": 0}),
    ("gcn+one hop more", {**SMALL, "hidden_features": [3, 3, 3, 3]}),
]


def make(option: tuple[str, dict[str, Any]]) -> GraphModel:
    name, params = option
    generator = torch.Generator().manual_seed(7)
    model: GraphModel = resolve("model", name.partition("+")[0])(FEATURES, CLASSES, **params, generator=generator)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            assert module.running_mean is not None and module.running_var is not None
            module.running_mean.copy_(torch.rand(module.num_features, generator=generator) - 0.5)
            module.running_var.copy_(torch.rand(module.num_features, generator=generator) + 0.5)
    return model.eval()


# for each of two dozen models
CASES = settings(max_examples=1000 if os.environ.get("HYPOTHESIS_PROFILE") == "stress" else 15)
BUILT = {option[0]: make(option) for option in MODELS}


@pytest.fixture(params=BUILT.keys())
def model(request: pytest.FixtureRequest) -> GraphModel:
    return BUILT[request.param]


def full(model: nn.Module, graph: Graph, varying: Tensor, targets: Tensor, x: Tensor) -> Tensor:
    """The whole forward pass, as plainly as can be."""
    assert isinstance(graph.x, Tensor)
    logits: Tensor = model(graph.x.index_copy(0, varying, x), prepare(model, graph.adj))
    return logits[targets]


def compare(
    model: nn.Module, graph: Graph, varying: Tensor, targets: Tensor, seed: int = 0, slack: float = 1.0
) -> None:
    forward, incremental = forward_of_features(model, graph, varying, targets)
    assert incremental
    generator = torch.Generator().manual_seed(seed)
    for _ in range(2):  # a second call must not see anything of the first
        x = torch.randn(len(varying), FEATURES, generator=generator, requires_grad=True)
        ours, theirs = forward(x), full(model, graph, varying, targets, x)
        torch.testing.assert_close(ours, theirs, rtol=1e-5 * slack, atol=1e-5 * slack)
        weights = torch.randn(theirs.shape, generator=generator)
        (mine,) = torch.autograd.grad((ours * weights).sum(), x)
        (expected,) = torch.autograd.grad((theirs * weights).sum(), x, allow_unused=True)
        known = torch.zeros_like(x) if expected is None else expected
        torch.testing.assert_close(mine, known, rtol=1e-4 * slack, atol=1e-5 * slack)


def attacked(graph: Graph, pairs: list[tuple[int, int]], new: int) -> tuple[Graph, Tensor]:
    """With injected nodes whose stored features are garbage: they must not matter."""
    add = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    edited = graph.apply(GraphEdit(n=graph.n, add=add, new_x=torch.full((new, FEATURES), 1e3)))
    return edited, torch.arange(graph.n, edited.n)


# a path 0 - 1 - 2 - 3 - 4 - 5, and 6, 7 without edges
PATH = graph_of([(i, i + 1) for i in range(5)], 8)
SCENES: dict[str, tuple[list[tuple[int, int]], int, list[int]]] = {
    "one target": ([(0, 8)], 1, [0]),
    "all nodes are targets": ([(0, 8), (5, 9)], 2, list(range(8))),
    "an isolated target": ([(6, 8)], 1, [6]),
    "an isolated target beside": ([(0, 8)], 1, [0, 7]),
    "no target is connected": ([(6, 8)], 1, [0, 3]),
    "out of reach": ([(0, 8)], 1, [5]),
    "edges among injected nodes": ([(0, 8), (8, 9), (9, 10)], 3, [0, 1]),
    "injected nodes without edges": ([], 2, [0, 6]),
    "a target with many injected neighbours": ([(2, 8), (2, 9), (2, 10), (1, 10)], 3, [2, 1]),
    "targets in another order": ([(4, 8), (1, 8)], 1, [4, 1, 0]),
}


@pytest.mark.parametrize("context", SCENES.values(), ids=SCENES.keys())
def test_equals_the_full_forward_pass(model: GraphModel, context: tuple[list[tuple[int, int]], int, list[int]]) -> None:
    pairs, new, targets = context
    graph, varying = attacked(PATH, pairs, new)
    compare(model, graph, varying, torch.tensor(targets))


@pytest.mark.parametrize("name", BUILT.keys())
def test_equals_the_full_forward_pass_on_random_graphs(name: str) -> None:
    @CASES
    @given(
        n=st.integers(1, 40),
        density=st.sampled_from([0.0, 0.05, 0.3]),
        new=st.integers(1, 4),
        count=st.integers(1, 40),
        seed=st.integers(0, 2**16),
    )
    def holds(n: int, density: float, new: int, count: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        clean = random_graph(n, density=density, isolated=n // 5, seed=seed)
        joined = torch.rand(n + new, new, generator=generator) < 0.2
        pairs = [(u, n + v) for u, v in joined.nonzero().tolist() if u < n + v]
        graph, varying = attacked(clean, pairs, new)
        targets = torch.randperm(n, generator=generator)[: min(count, n)]
        # a layer norm divides by the deviation of three numbers, and what it rounds by that too
        compare(BUILT[name], graph, varying, targets, seed, slack=100.0 if "ln" in name else 1.0)

    holds()


def test_one_graph_wired_in_several_ways(model: GraphModel) -> None:
    """What is kept of the clean graph serves every wiring, and no wiring changes it."""
    rewired = Rewired(model, PATH)
    torch.testing.assert_close(rewired.logits(), predict(model, PATH), rtol=1e-5, atol=1e-5)
    for pairs, new, targets in (*SCENES.values(), *SCENES.values()):
        add = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
        wired = GraphEdit(n=8, add=add, new_x=torch.zeros(new, FEATURES))
        forward, incremental = rewired.forward(wired, torch.tensor(targets))
        x = torch.randn(new, FEATURES, generator=torch.Generator().manual_seed(new))
        expected = full(model, PATH.apply(wired), torch.arange(8, 8 + new), torch.tensor(targets), x)
        assert incremental
        torch.testing.assert_close(forward(x), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(rewired.logits(), predict(model, PATH), rtol=1e-5, atol=1e-5)


def test_weighted_graphs_too(model: GraphModel) -> None:
    graph = random_graph(12, density=0.3)
    weights = torch.ones(graph.adj.pattern.entries)
    rows, columns = graph.adj.pattern.row_ids.long(), graph.adj.pattern.indices.long()
    weights = 0.5 + (rows * columns % 5) / 5 * weights
    weighted = Graph(Adjacency(graph.adj.pattern, weights), graph.x)
    edited, varying = attacked(weighted, [(0, 12), (3, 12), (3, 13)], 2)
    compare(model, edited, varying, torch.tensor([0, 3, 5]))


def test_no_gradients_reach_the_weights() -> None:
    model = make(MODELS[0])
    context = context_of(PATH, [0, 1], model)
    run_attack(FGSM(n_epoch=3), context, seed=0)
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())


class WithoutStages(nn.Module):
    """A black box: the same GCN behind a module that tells nothing of its inside."""

    def __init__(self, inside: GraphModel) -> None:
        super().__init__()
        self.inside = inside

    def prepare(self, adj: Adjacency) -> Any:
        return self.inside.prepare(adj)

    def forward(self, x: Tensor, op: Any) -> Tensor:
        return self.inside(x, op)


def test_models_without_stages_get_the_full_forward_and_the_record_says_so() -> None:
    known = BUILT["gcn"]
    hidden = WithoutStages(known)
    graph, varying = attacked(PATH, [(0, 8), (3, 9)], 2)
    forward, incremental = forward_of_features(hidden, graph, varying, torch.tensor([0, 1]))
    x = torch.randn(2, FEATURES)
    assert not incremental
    torch.testing.assert_close(forward(x), full(known, graph, varying, torch.tensor([0, 1]), x))
    plain, slow = (run_attack(FGSM(n_epoch=5), context_of(PATH, range(4), m), seed=0) for m in (known, hidden))
    assert plain.notes == () and slow.notes == ("full forward pass in every step: the model has no stages",)
    assert torch.equal(plain.edit.add, slow.edit.add)
    torch.testing.assert_close(
        torch.tensor([step.loss for step in plain.steps]), torch.tensor([step.loss for step in slow.steps])
    )


@pytest.mark.parametrize("name", ["gcn", "gcn-svd"])
def test_each_graph_is_prepared_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The eigenvectors of GCN-SVD are most of an attack on it; with stages that cannot be used they were made twice."""
    model = make((name, SMALL))
    seen: list[int] = []
    prepare = type(model).prepare
    monkeypatch.setattr(type(model), "prepare", lambda self, adj: seen.append(adj.n) or prepare(self, adj))
    run_attack(FGSM(n_epoch=2), context_of(PATH, range(4), model, nodes=3), seed=0)
    assert seen == [PATH.n, PATH.n + 3]


def test_a_black_box_is_attacked_in_evaluation_mode() -> None:
    inside = make(("gcn", {**SMALL, "dropout": 0.9}))
    edits = []
    for training in (False, True):
        hidden = WithoutStages(inside).train(training)
        edits.append(run_attack(FGSM(n_epoch=5), context_of(PATH, range(4), hidden), seed=0).edit)
    assert same_edit(*edits)


class Counted(GCN):
    """Writes down how many rows each row-wise step gets."""

    def stages(self) -> list[Stage]:
        self.rows: list[int] = []

        def counted(stage: Rows) -> Rows:
            def apply(state: State) -> State:
                self.rows.append(len(state[0]))
                return stage.apply(state)

            return Rows(apply)

        return [counted(stage) if isinstance(stage, Rows) else stage for stage in super().stages()]


def test_only_rows_that_can_change_and_that_the_loss_can_see_are_evaluated() -> None:
    """A path of 200 nodes: one injected node beside the target, one far away from it."""
    model = Counted(FEATURES, CLASSES, hidden_features=[3], generator=torch.Generator().manual_seed(0)).eval()
    graph, varying = attacked(graph_of([(i, i + 1) for i in range(199)], 200), [(50, 200), (150, 201)], 2)
    forward, incremental = forward_of_features(model, graph, varying, torch.tensor([50]))
    assert incremental and max(model.rows) == 202  # once, for the constants
    model.rows.clear()
    forward(torch.zeros(2, FEATURES))
    assert model.rows and max(model.rows) <= 2


def test_sparse_features_get_the_full_forward() -> None:
    assert isinstance(PATH.x, Tensor)
    sparse = Graph(PATH.adj, sparse_features(PATH.x))
    ours, theirs = (run_attack(FGSM(n_epoch=3), context_of(g, range(4), BUILT["gcn"]), seed=0) for g in (sparse, PATH))
    assert ours.notes and not theirs.notes
    assert ours.edit.new_x is not None and theirs.edit.new_x is not None
    torch.testing.assert_close(ours.edit.new_x, theirs.edit.new_x, rtol=0, atol=1e-6)
