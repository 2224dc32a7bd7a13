"""Every catalogued attack keeps the same promises, on any graph and with any budget."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import grb
from attack.contexts import context_of, degrees_of, random_graph, same_edit, scenes, victim
from grb.attack import Attack, AttackContext, AttackResult, Step, run_attack
from grb.attack.base import AttackError
from grb.catalogue import entries, resolve
from grb.dataset import Dataset
from grb.errors import BudgetError, DataError
from grb.evaluator.measurement import ENSEMBLES
from grb.graph import Graph, GraphEdit
from grb.model.torch import GCN
from grb.threat import Injection, Modification

# an edit that breaks the rules must be found out in 10,000 cases of `make stress`, over all attacks together
CASES = settings(max_examples=1200) if os.environ.get("HYPOTHESIS_PROFILE") == "stress" else settings()

SHORT: dict[str, Any] = {"rewirings": 2, "refine": 2}
# joins other nodes than targets too, because what they say reaches targets
ANYWHERE = ("afgsm",)
# a closed form that draws nothing
WITHOUT_DRAWS = ("afgsm",)
DISTIL: dict[str, Any] = {"asks": 2, "tries": 1, "attack_steps": 2, "attack_name": "fgsm"}
# number of steps is not that of the constructor: what a surrogate costs, or proposals that queries are left for
OWN_STEPS = ("distil", "injection-random-search", "afgsm", "agia", "seqgia", "metagia")
COMPOSED: list[dict[str, Any]] = [
    {"edges": "tdgia", "start": "everywhere", "loss": "smooth", "optimiser": "sine", "fraction": 0.5},
    {"edges": "uniform", "start": "corners", "loss": "prob-margin", "optimiser": "apgd"},
    {"edges": "classes", "start": "mean", "loss": "tanh-margin", "schedule": "cosine", "homophily": 1.0},
    {"edges": "low-degree", "start": "noise", "loss": "margin", "optimiser": "sign", "restarts": 2},
]
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    *[
        (name, {"composed-injection": SHORT, "distil": DISTIL}.get(name, {}))
        for name, entry in entries("attack").items()
        if entry.group == "injection" and name not in ENSEMBLES.values()
    ],
    *[("composed-injection", {**SHORT, **parts}) for parts in COMPOSED],
    ("rnd", {"spread": "graph"}),
    ("speit", {"preset": "kddcup"}),
    ("speit", {"wiring": "inter"}),
    ("tdgia", {"sequential_step": 1.0, "inject_mode": "uniform", "opt": "clip"}),
    ("tdgia", {"preset": "atdgia"}),
]
FULL_DEGREE = ("rnd", "fgsm", "pgd", "tdgia")  # every injected node gets as many targets as it may have


def named(option: tuple[str, dict[str, Any]]) -> str:
    return "-".join([option[0], *map(str, option[1].values())])


def make(option: tuple[str, dict[str, Any]], steps: int = 2) -> Attack:
    name, changes = option
    maker = resolve("attack", name)
    if "steps" in inspect.signature(maker).parameters:
        changes = {"steps": steps, **changes}
    made: Attack = maker(**changes)
    return made


@pytest.fixture(params=OPTIONS, ids=named)
def option(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return request.param


def frozen(model: nn.Module | None, graph: Graph) -> list[Any]:
    """Everything that an attack is lent, as values."""
    assert model is not None and isinstance(graph.x, Tensor)
    flags = [module.training for module in model.modules()]
    parts = [(p.detach().clone(), p.requires_grad, p.grad) for p in model.parameters()]
    arrays = [graph.x.clone(), graph.adj.pattern.indptr.clone(), graph.adj.pattern.indices.clone()]
    return [flags, parts, arrays, torch.get_rng_state()]


def unchanged(before: list[Any], after: list[Any]) -> bool:
    if isinstance(before, list | tuple):
        return len(before) == len(after) and all(unchanged(a, b) for a, b in zip(before, after, strict=True))
    return torch.equal(before, after) if isinstance(before, Tensor) else before == after


@pytest.mark.parametrize("option", OPTIONS, ids=named)
def test_promises(option: tuple[str, dict[str, Any]]) -> None:
    """Terminates, keeps the budget, uses it, touches nothing else, and repeats itself bit for bit."""
    attack = make(option)

    @CASES
    @given(context=scenes(), seed=st.integers(0, 2**31), training=st.booleans())
    def holds(context: AttackContext, seed: int, training: bool) -> None:
        assert context.model is not None
        context.model.train(training)
        before = frozen(context.model, context.graph)
        result = run_attack(attack, context, seed=seed)
        assert unchanged(before, frozen(context.model, context.graph))
        kept_the_budget(result.edit, context, everywhere=option[0] in ANYWHERE)
        if option[0] in FULL_DEGREE:
            full = min(context.injection.edges_per_node, len(context.targets))
            expected = [full] * context.injection.nodes if full else []
            assert degrees_of(result.edit) == expected
        # pseudo-labels and gradients come from evaluation mode, whatever mode the model is in
        context.model.train(not training)
        assert same_edit(result.edit, run_attack(attack, context, seed=seed).edit)

    holds()


def kept_the_budget(edit: GraphEdit, context: AttackContext, everywhere: bool = False) -> None:
    """Counted here once more, without the threat model's own code."""
    threat, n = context.injection, context.graph.n
    assert edit.n == n and edit.cut == 0 and not edit.drop.numel() and edit.set_ids is None
    assert edit.num_new <= threat.nodes and max(degrees_of(edit), default=0) <= threat.edges_per_node
    touched = edit.add[edit.add < n].tolist()
    assert (edit.add[1] >= n).all() and (everywhere or set(touched) <= set(context.targets.tolist()))
    if edit.new_x is not None:
        low, high = (torch.tensor(end) for end in threat.feature_range)
        assert edit.new_x.isfinite().all() and (edit.new_x >= low).all() and (edit.new_x <= high).all()
    attacked = context.graph.apply(edit)
    clean = attacked.subgraph(torch.arange(n))
    assert clean.fingerprint() == context.graph.fingerprint()


@pytest.mark.parametrize(
    "context",
    [
        context_of(random_graph(6), [0, 1], victim("gcn", 2), nodes=0, edges=5),
        context_of(random_graph(6), [0, 1], victim("gcn", 2), nodes=5, edges=0),
        context_of(random_graph(6), [], victim("gcn", 2), nodes=5, edges=5),
    ],
    ids=["no nodes", "no edges", "no targets"],
)
def test_zero_budget_changes_nothing(option: tuple[str, dict[str, Any]], context: AttackContext) -> None:
    result = run_attack(make(option), context, seed=0)
    assert result.edit.is_empty and result.steps == ()
    assert context.graph.apply(result.edit).fingerprint() == context.graph.fingerprint()


def test_another_seed_gives_another_edit(option: tuple[str, dict[str, Any]]) -> None:
    context = context_of(random_graph(30), range(20), victim("gcn", 4), nodes=4, edges=3)
    edits = [run_attack(make(option), context, seed=seed).edit for seed in range(4)]
    equal = [same_edit(a, b) for place, a in enumerate(edits) for b in edits[:place]]
    assert all(equal) if option[0] in WITHOUT_DRAWS else not any(equal)


def test_the_global_random_state_does_not_matter(option: tuple[str, dict[str, Any]]) -> None:
    context = context_of(random_graph(30), range(20), victim("gcn", 4), nodes=4, edges=3)
    edits = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        edits.append(run_attack(make(option), context, seed=0).edit)
    assert same_edit(*edits)


def test_pseudo_labels_come_from_evaluation_mode(option: tuple[str, dict[str, Any]]) -> None:
    """The original predicts before it calls eval(): dropout then flips half of the labels."""
    generator = torch.Generator().manual_seed(0)
    model = GCN(3, 4, hidden_features=[8, 8], dropout=0.9, generator=generator)
    context = context_of(random_graph(30), range(20), model, nodes=4, edges=3)
    edits = [
        run_attack(make(option), AttackContext(context.view, context.threat, model.train(mode)), seed=0)
        for mode in (False, True)
    ]
    assert same_edit(edits[0].edit, edits[1].edit) and edits[0].steps == edits[1].steps


def small_dataset(y: np.ndarray[Any, Any]) -> Dataset:
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random((60, 60)) < 0.1, 1)
    return Dataset.from_arrays(sp.csr_matrix((upper | upper.T).astype(float)), rng.standard_normal((60, 3)), y)


def test_labels_of_test_nodes_do_not_matter(option: tuple[str, dict[str, Any]]) -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 60)
    test = small_dataset(y).split.test["full"].numpy()
    permuted = y.copy()
    permuted[test] = rng.permutation(y[test])
    assert (permuted != y).any()
    edits = [
        grb.run_attack(make(option), victim("gcn", 3), small_dataset(labels), threat=Injection(3, 4, (-1, 1))).edit
        for labels in (y, permuted)
    ]
    assert same_edit(*edits)


def test_every_step_is_recorded(option: tuple[str, dict[str, Any]]) -> None:
    seen: list[Step] = []
    context = context_of(
        random_graph(30), range(20), victim("gcn", 4), 4, 3, knowledge="white-box", on_step=seen.append
    )
    result = run_attack(make(option, steps=3), context, seed=5)
    rounds = 4 if option[0] == "tdgia" and option[1] in ({}, {"preset": "atdgia"}) else 1
    if option[0] in OWN_STEPS:
        assert result.steps
    elif option[0] == "composed-injection":  # rounds that exchange edges end early where nothing can be gained
        rounds = option[1].get("restarts", 1) * math.ceil(1 / option[1].get("fraction", 1))
        least, most = 3 * rounds, 3 * rounds + 2 * 2 * option[1].get("restarts", 1)
        assert least < len(result.steps) <= most
    else:
        assert len(result.steps) == (0 if option[0] == "rnd" else 3 * rounds)
    assert result.steps == tuple(seen)
    assert all(0 <= step.accuracy <= 1 and np.isfinite(step.loss) for step in seen)
    assert result.budget["nodes"] == 4 and result.budget["most_edges_per_node"] <= 3
    assert result.budget["edges"] == result.edit.add.shape[1]
    needs_model = getattr(resolve("attack", option[0]), "needs_model", True)
    assert result.seed == 5 and result.knowledge == ("white-box" if needs_model else "none") and result.notes == ()
    assert result.seconds > 0 and result.cpu_seconds > 0 and result.peak_megabytes > 1


def test_only_attacks_without_gradients_run_without_a_model(option: tuple[str, dict[str, Any]]) -> None:
    context = context_of(random_graph(8), range(4), None)
    if option[0] == "rnd":
        assert run_attack(make(option), context, seed=0).knowledge == "none"
    elif option[0] == "afgsm":
        with pytest.raises(DataError, match="give it a model"):
            run_attack(make(option), context, seed=0)
    else:
        with pytest.raises(DataError, match="this attack needs a model"):
            run_attack(make(option), context, seed=0)


def test_a_modification_threat_is_refused_by_injection_attacks(option: tuple[str, dict[str, Any]]) -> None:
    context = context_of(random_graph(8), range(4), victim("gcn", 2))
    with pytest.raises(DataError, match="needs an Injection threat model, got Modification"):
        run_attack(make(option), AttackContext(context.view, Modification(edges=3), context.model), seed=0)


# ---------------------------------------------------------------- attacks that break the rules


def good_edit(context: AttackContext) -> GraphEdit:
    return GraphEdit(n=context.graph.n, add=torch.tensor([[0], [context.graph.n]]), new_x=torch.zeros(1, 3))


def features(context: AttackContext) -> Tensor:
    assert isinstance(context.graph.x, Tensor)
    return context.graph.x


def weight(context: AttackContext) -> Tensor:
    return next(context.surrogate().parameters())


def leave_gradients(context: AttackContext) -> None:
    model = context.surrogate().requires_grad_(True)
    model(context.graph.x, model.prepare(context.graph.adj)).sum().backward()  # type: ignore[operator]
    model.requires_grad_(False)


def replace_weight(context: AttackContext) -> None:
    model = context.surrogate()
    name, old = next(iter(model.named_parameters()))
    owner = model.get_submodule(name.rpartition(".")[0])
    setattr(owner, name.rpartition(".")[2], nn.Parameter(torch.zeros_like(old), requires_grad=False))


CHANGES: dict[str, Callable[[AttackContext], Any]] = {
    "features in place": lambda context: features(context).add_(1),
    "features through numpy": lambda context: features(context).numpy().__setitem__((0, 0), 7.0),
    "features through .data": lambda context: features(context).data.mul_(2),
    "two rows of features swapped": lambda context: features(context).data.copy_(features(context).data.flip(0)),
    "features asked for gradients": lambda context: features(context).requires_grad_(),
    "edges": lambda context: context.graph.adj.pattern.indices.numpy().__setitem__(0, 5),
    "targets": lambda context: context.targets.zero_(),
    "weights in place": lambda context: weight(context).add_(1),
    "weights through .data": lambda context: weight(context).data.add_(1),
    "weights replaced": replace_weight,
    "weights asked for gradients": lambda context: weight(context).requires_grad_(),
    "gradients": leave_gradients,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_an_attack_that_changes_what_it_was_lent_is_refused(change: Callable[[AttackContext], Any]) -> None:
    def attack(context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        change(context)
        return good_edit(context)

    model = GCN(3, 2, hidden_features=[4])
    model.train()
    with pytest.raises(AttackError, match="changed the graph or the model that it was given"):
        run_attack(attack, context_of(random_graph(300, density=0.02), [0, 1], model), seed=0)
    assert model.training


def over_budget(context: AttackContext) -> GraphEdit:
    return GraphEdit(n=context.graph.n, new_x=torch.zeros(context.injection.nodes + 1, 3))


def too_many_edges(context: AttackContext) -> GraphEdit:
    ends = torch.arange(context.injection.edges_per_node + 1)
    return GraphEdit(n=context.graph.n, add=torch.stack([ends, ends * 0 + context.graph.n]), new_x=torch.zeros(1, 3))


def nan_features(context: AttackContext) -> GraphEdit:
    return GraphEdit(n=context.graph.n, new_x=torch.full((1, 3), torch.nan))


def nan_later(context: AttackContext) -> GraphEdit:
    edit = good_edit(context)
    assert edit.new_x is not None
    edit.new_x[0, 0] = torch.nan
    return edit


def same_edge_twice(context: AttackContext) -> GraphEdit:
    edit = good_edit(context)
    object.__setattr__(edit, "add", edit.add.repeat(1, 2))
    return edit


class Lying(GraphEdit):
    @property
    def num_new(self) -> int:
        return 1


def lying(context: AttackContext) -> GraphEdit:
    return Lying(n=context.graph.n, new_x=torch.zeros(9, 3))


@pytest.mark.parametrize(
    ("answer", "error", "sentence"),
    [
        (over_budget, BudgetError, "4 nodes are injected, but the threat model allows nodes=3"),
        (too_many_edges, BudgetError, "injected node 0 has 3 edges"),
        (nan_features, DataError, "must be finite"),
        (nan_later, DataError, "must be finite"),
        (same_edge_twice, DataError, "twice"),
        (lying, BudgetError, "9 nodes are injected"),
        (lambda context: np.zeros((9, 9)), AttackError, "returned a ndarray, but a GraphEdit is needed"),
        (lambda context: None, AttackError, "returned a NoneType, but a GraphEdit is needed"),
    ],
)
def test_an_attack_that_returns_something_else_is_refused(
    answer: Callable[[AttackContext], Any], error: type[Exception], sentence: str
) -> None:
    def attack(context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        return answer(context)

    with pytest.raises(error, match=sentence):
        run_attack(attack, context_of(random_graph(8), [0, 1], victim("gcn", 2)), seed=0)


def test_a_checked_edit_cannot_be_changed_afterwards() -> None:
    held = torch.zeros(1, 3, requires_grad=True)

    def attack(context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        return GraphEdit(n=context.graph.n, new_x=held)

    result = run_attack(attack, context_of(random_graph(8), [0], None), seed=0)
    held.data.fill_(99.0)
    assert result.edit.new_x is not None
    assert not result.edit.new_x.requires_grad and not result.edit.new_x.any()


def test_a_failing_attack_leaves_the_model_as_it_was() -> None:
    def attack(context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        torch.rand(3)
        raise RuntimeError("no luck")

    context = context_of(random_graph(8), [0, 1], victim("gcn", 2).train())
    before = frozen(context.model, context.graph)
    with pytest.raises(RuntimeError, match="no luck"):
        run_attack(attack, context, seed=0)
    assert unchanged(before, frozen(context.model, context.graph))


def test_an_attack_that_uses_global_randomness_does_not_disturb_it_and_repeats_itself() -> None:
    def attack(context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        return GraphEdit(n=context.graph.n, new_x=torch.rand(1, 3))

    context = context_of(random_graph(8), [0, 1], None)
    edits = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        edits.append(run_attack(attack, context, seed=0).edit)
        assert torch.equal(torch.get_rng_state(), before)
    assert same_edit(*edits) and not same_edit(edits[0], run_attack(attack, context, seed=1).edit)


@pytest.mark.parametrize(("targets", "sentence"), [([0, 8], "names node 8"), ([-1], "node -1"), ([1, 1], "twice")])
def test_targets_that_are_no_nodes_are_refused(targets: list[int], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        run_attack(make(("rnd", {})), context_of(random_graph(8), targets, None), seed=0)


def test_targets_of_a_collection_are_its_graphs() -> None:
    graph = random_graph(8, density=0.0)
    many = Graph(graph.adj, graph.x, ptr=torch.tensor([0, 4, 8]))
    result = run_attack(make(("rnd", {})), context_of(many, [0], None), seed=0)
    assert set(result.edit.add[result.edit.add < 8].tolist()) <= {0, 1, 2, 3}
    with pytest.raises(DataError, match="names node 2"):
        run_attack(make(("rnd", {})), context_of(many, [2], None), seed=0)


def test_results_are_taken_as_edits_by_evaluate() -> None:
    dataset = small_dataset(np.random.default_rng(1).integers(0, 3, 60))
    result = grb.run_attack("fgsm", victim("gcn", 3), dataset, threat=Injection(6, 9, (-1, 1)), iterations=20, step=0.1)
    assert isinstance(result, AttackResult)
    scores = grb.evaluate(victim("gcn", 3), dataset, result)
    assert scores == grb.evaluate(victim("gcn", 3), dataset, result.edit)
    with pytest.raises(DataError, match="go with an attack's name"):
        grb.run_attack(make(("rnd", {})), None, dataset, threat=Injection(1, 1, (-1, 1)), iterations=3)
