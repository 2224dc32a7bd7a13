"""Every catalogued modification attack keeps the same promises, on any graph and with any budget."""

from __future__ import annotations

import inspect
import itertools
import os
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import grb
from attack.contexts import VICTIMS, context_of, random_graph, same_edit, victim, view_of
from grb.attack import Attack, AttackContext, Step, run_attack
from grb.catalogue import entries, resolve
from grb.dataset import Dataset
from grb.dataset.view import View
from grb.errors import BudgetError, DataError
from grb.evaluator.measurement import ENSEMBLES
from grb.graph import Graph, GraphEdit
from grb.model.torch import GCN
from grb.threat import Modification

# an edit that breaks the rules must be found out in 10,000 cases of `make stress`, over all attacks together
BATTERIES = set(ENSEMBLES.values())
CASES = settings(max_examples=1000) if os.environ.get("HYPOTHESIS_PROFILE") == "stress" else settings()

OPTIONS: list[tuple[str, dict[str, Any]]] = [
    *[
        (name, {})
        for name, entry in entries("attack").items()
        if entry.group == "modification" and name not in BATTERIES
    ],
    ("rnd-edges", {"mode": "flip"}),
    ("flip", {"flip_type": "bet", "mode": "ascend"}),
    ("flip", {"flip_type": "eigen"}),
    ("fga", {"refresh": 4}),
    ("nea", {"estimate": "fast", "dim": 3}),
    ("stack", {"estimate": "first_order", "refresh": 2}),
    ("nettack", {"direct": False}),
    ("pr-bcd", {"search_space_size": 6, "everywhere": True}),
    ("gr-bcd", {"search_space_size": 6, "everywhere": True}),
]
MODEL_FREE = ("rnd-edges", "flip", "nea", "stack", "metattack", "meta-pgd", "nettack")
# flips only what raises a loss, so that budget may be left over on purpose
BY_GRADIENT = ("fga", "pgd-topology", "pr-bcd", "gr-bcd", "lr-bcd", "local-search", "metattack", "meta-pgd", "nettack")
# ask for outputs alone; a flip that does not help is left out by some of them too
BY_OUTPUTS = ("eva", "eva-plus", "random-search", "distil-edges", "low-rank-collapse", "grabnel", "rl-s2v")
FEATURES_ONLY = ("pgd-features", "fgsm-features")
QUICK = {
    "steps": 3,
    "max_final_samples": 3,
    "search_space_size": 60,
    "snapshots": 2,
    "rounds": 2,
    "candidates": 20,
    "population": 4,
    "training_steps": 3,
    "asks": 2,
    "tries": 1,
    "attack_name": "gr-bcd",
    "attack_steps": 2,
    "initial": 2,
    "horizon": 2,
    "batch": 2,
}


def named(option: tuple[str, dict[str, Any]]) -> str:
    return "-".join([option[0], *map(str, option[1].values())])


def make(option: tuple[str, dict[str, Any]], **more: Any) -> Attack:
    name, changes = option
    maker = resolve("attack", name)
    quick = {key: value for key, value in QUICK.items() if key in inspect.signature(maker).parameters}
    made: Attack = maker(**{**quick, **more, **changes})
    return made


@pytest.fixture(params=OPTIONS, ids=named)
def option(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return request.param


def labelled(graph: Graph, targets: Tensor, seed: int = 0) -> View:
    """A view in which every node but the targets shows a label; at least one does."""
    y = torch.randint(3, (graph.n,), generator=torch.Generator().manual_seed(seed))
    hidden = targets if len(targets) < graph.n else targets[1:]
    y[hidden] = -1
    seen = (y >= 0).nonzero().flatten()
    return View(Graph(graph.adj, graph.x, y), seen, seen[:0], targets, torch.arange(graph.n), 3, inductive=False)


@st.composite
def edge_scenes(draw: st.DrawFn) -> AttackContext:
    """1 to 14 nodes, possibly isolated or without any edge; any budget, both kinds of change or one, limits per node."""
    n = draw(st.integers(1, 14))
    density = draw(st.sampled_from([0.0, 0.05, 0.3, 0.9]))
    graph = random_graph(n, density=density, isolated=draw(st.integers(0, n)), seed=draw(st.integers(0, 2**16)))
    count = {"none": 0, "one": 1, "some": (n + 1) // 2, "all": n}[draw(st.sampled_from(["none", "one", "some", "all"]))]
    order = torch.randperm(n, generator=torch.Generator().manual_seed(draw(st.integers(0, 2**16))))
    threat = Modification(
        edges=draw(st.sampled_from([0, 1, 2, 5, 12, 200])),
        allow=draw(st.sampled_from([("add", "drop"), ("add",), ("drop",)])),
        per_node=draw(st.sampled_from([None, None, 0.5, 1.0])),
        allow_isolate=draw(st.booleans()),
        feature_nodes=draw(st.sampled_from([0, 1, 40])),
        feature_range=(-0.5, 0.75),
    )
    model = victim(draw(st.sampled_from(VICTIMS)), draw(st.sampled_from([1, 2, 4])))
    return AttackContext(labelled(graph, order[:count].sort().values), threat, model)


def flips(edit: GraphEdit) -> set[tuple[int, int]]:
    return {(u, v) for part in (edit.add, edit.drop) for u, v in part.T.tolist()}


def state_of(context: AttackContext) -> list[Any]:
    assert context.model is not None and isinstance(context.graph.x, Tensor)
    tensors = [context.graph.x, context.graph.adj.pattern.indices, context.targets, *context.model.parameters()]
    return [*(tensor.detach().clone() for tensor in tensors), torch.get_rng_state()]


@pytest.mark.parametrize("option", OPTIONS, ids=named)
def test_promises(option: tuple[str, dict[str, Any]]) -> None:
    """Terminates, keeps the budget, uses it, touches nothing else, and repeats itself bit for bit."""
    attack = make(option)

    @(settings(CASES, max_examples=CASES.max_examples // 5) if option[1] else CASES)
    @given(context=edge_scenes(), seed=st.integers(0, 2**31), training=st.booleans())
    def holds(context: AttackContext, seed: int, training: bool) -> None:
        assert context.model is not None
        context.model.train(training)
        before = state_of(context)
        result = run_attack(attack, context, seed=seed)
        assert all(torch.equal(a, b) for a, b in zip(before, state_of(context), strict=True))
        kept_the_limits(result.edit, context)
        if option[0] in FEATURES_ONLY:
            changed = 0 if result.edit.set_ids is None else len(result.edit.set_ids)
            assert changed == min(context.modification.feature_nodes, len(context.targets)) and not flips(result.edit)
        elif option[0] not in (*BY_GRADIENT, *BY_OUTPUTS):
            used_the_budget(result.edit, context, option)
        assert result.budget["edges"] == len(flips(result.edit))
        context.model.train(not training)
        assert same_edit(result.edit, run_attack(attack, context, seed=seed).edit)

    holds()


def kept_the_limits(edit: GraphEdit, context: AttackContext) -> None:
    """Counted here once more, without the threat model's own code."""
    threat, n = context.modification, context.graph.n
    present = {tuple(pair) for pair in context.graph.adj.edges().T.tolist()}
    add, drop = ({tuple(pair) for pair in part.T.tolist()} for part in (edit.add, edit.drop))
    assert edit.n == n and edit.num_new == 0 and edit.cut == 0
    assert len(add) + len(drop) <= (threat.edges or 0)
    assert not add & present and drop <= present  # so that no pair is flipped back either
    assert not add or "add" in threat.allow
    assert not drop or "drop" in threat.allow
    for node in range(n):
        own = [pair for pair in add | drop if node in pair]
        degree = sum(node in pair for pair in present)
        if threat.per_node is not None:
            assert len(own) <= int(threat.per_node * degree + 1e-9)
        if not threat.allow_isolate and degree:
            assert any(node in pair for pair in (present | add) - drop)
    if edit.set_x is not None and threat.feature_range is not None:
        low, high = threat.feature_range
        assert set(edit.set_ids.tolist()) <= set(context.targets.tolist())  # type: ignore[union-attr]
        assert edit.set_x.isfinite().all() and edit.set_x.min() >= low and edit.set_x.max() <= high


def used_the_budget(edit: GraphEdit, context: AttackContext, option: tuple[str, dict[str, Any]]) -> None:
    """All of it, or else no further pair of the attack's kind may be flipped."""
    threat = context.modification
    if len(flips(edit)) == threat.edges:
        return
    attacked = context.graph.apply(edit)
    targets = set(context.targets.tolist())
    degrees, now = context.graph.adj.degrees.tolist(), attacked.adj.degrees.tolist()
    counts = np.bincount(np.array(sorted(flips(edit)), dtype=np.int64).flatten(), minlength=context.graph.n)
    present = {tuple(pair) for pair in context.graph.adj.edges().T.tolist()}
    labels = dice_labels(context) if option[0] == "dice" else None
    for u, v in itertools.combinations(range(context.graph.n), 2):
        kind = "drop" if (u, v) in present else "add"
        possible = kind in threat.allow and (u, v) not in flips(edit) and bool({u, v} & targets)
        if threat.per_node is not None:
            possible &= all(counts[node] < int(threat.per_node * degrees[node] + 1e-9) for node in (u, v))
        if not threat.allow_isolate and kind == "drop":
            possible &= min(now[u], now[v]) > 1
        if labels is not None:
            possible &= bool((labels[u] == labels[v]) == (kind == "drop"))
        if option[0] == "rnd-edges":
            possible &= kind == "drop" or "mode" in option[1]
        assert not possible, (u, v)


def dice_labels(context: AttackContext) -> Tensor:
    assert context.model is not None and context.graph.y is not None
    model = context.model
    modes = {module: module.training for module in model.modules()}
    model.eval()
    with torch.no_grad():
        said = model(context.graph.x, model.prepare(context.graph.adj)).argmax(1)  # type: ignore[operator]
    for module, mode in modes.items():
        module.training = mode
    return torch.where(context.graph.y >= 0, context.graph.y, said)


GRAPH = random_graph(30)


def plain(targets: Any = range(20), edges: int = 6, **more: Any) -> AttackContext:
    limits = {"feature_nodes": 3, "feature_range": (-1.0, 1.0), **more}
    view = labelled(GRAPH, torch.as_tensor(list(targets), dtype=torch.int64))
    return AttackContext(view, Modification(edges=edges, **limits), victim("gcn", 4))


@pytest.mark.parametrize(
    "context", [plain(edges=0, feature_nodes=0), plain(targets=[])], ids=["no budget", "no targets"]
)
def test_zero_budget_changes_nothing(option: tuple[str, dict[str, Any]], context: AttackContext) -> None:
    result = run_attack(make(option), context, seed=0)
    assert result.edit.is_empty and result.steps == ()
    assert context.graph.apply(result.edit).fingerprint() == context.graph.fingerprint()


def test_more_budget_than_pairs_ends(option: tuple[str, dict[str, Any]]) -> None:
    result = run_attack(make(option), plain(edges=10_000), seed=0)
    assert len(flips(result.edit)) < 10_000
    if option[0] not in FEATURES_ONLY:
        assert any("allowed edges were changed" in note for note in result.notes)


def test_the_global_random_state_does_not_matter(option: tuple[str, dict[str, Any]]) -> None:
    edits = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        edits.append(run_attack(make(option), plain(), seed=0).edit)
    assert same_edit(*edits)


def test_pseudo_labels_come_from_evaluation_mode(option: tuple[str, dict[str, Any]]) -> None:
    model = GCN(3, 4, hidden_features=[8, 8], dropout=0.9, generator=torch.Generator().manual_seed(0))
    results = [
        run_attack(make(option), AttackContext(plain().view, plain().threat, model.train(mode)), seed=0)
        for mode in (False, True)
    ]
    assert same_edit(results[0].edit, results[1].edit) and results[0].steps == results[1].steps


def small_dataset(y: np.ndarray[Any, Any]) -> Dataset:
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random((60, 60)) < 0.1, 1)
    return Dataset.from_arrays(sp.csr_matrix((upper | upper.T).astype(float)), rng.standard_normal((60, 3)), y)


@pytest.mark.parametrize("model", [True, False], ids=["model", "no model"])
def test_labels_of_test_nodes_do_not_matter(option: tuple[str, dict[str, Any]], model: bool) -> None:
    """The original's DICE is handed them."""
    if not model and option[0] not in (*MODEL_FREE, "dice"):
        pytest.skip("needs a model")
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 60)
    test = small_dataset(y).split.test["full"].numpy()
    permuted = y.copy()
    permuted[test] = rng.permutation(y[test])
    assert (permuted != y).any()
    edits = [
        grb.run_attack(make(option), victim("gcn", 3) if model else None, small_dataset(labels)).edit
        for labels in (y, permuted)
    ]
    assert same_edit(*edits) and not edits[0].is_empty


def test_every_step_is_recorded(option: tuple[str, dict[str, Any]]) -> None:
    seen: list[Step] = []
    context = plain()
    lent = AttackContext(context.view, context.threat, context.model, "white-box", seen.append)
    result = run_attack(make(option), lent, seed=5)
    knowledge = "none" if option[0] in MODEL_FREE else "white-box"
    assert result.steps == tuple(seen) and result.knowledge == knowledge and result.seed == 5
    assert bool(seen) == (option[0] in (*BY_GRADIENT, *BY_OUTPUTS, *FEATURES_ONLY))
    assert all(0 <= step.accuracy <= 1 and np.isfinite(step.loss) for step in seen)


def test_only_attacks_without_gradients_run_without_a_model(option: tuple[str, dict[str, Any]]) -> None:
    context = AttackContext(plain().view, plain().threat, None)
    if option[0] in (*MODEL_FREE, "dice"):
        assert run_attack(make(option), context, seed=0).knowledge == "none"
        assert getattr(resolve("attack", option[0]), "needs_model", True) == (option[0] == "dice")
    else:
        with pytest.raises(DataError, match="this attack needs a model"):
            run_attack(make(option), context, seed=0)


def test_an_injection_threat_is_refused_by_modification_attacks(option: tuple[str, dict[str, Any]]) -> None:
    with pytest.raises(DataError, match="needs a Modification threat model, got Injection"):
        run_attack(make(option), context_of(GRAPH, range(4), victim("gcn", 2)), seed=0)


def test_inputs_with_a_single_target_or_a_single_node_work(option: tuple[str, dict[str, Any]]) -> None:
    for graph, targets in ((GRAPH, [3]), (random_graph(1), [0]), (random_graph(2, density=1.0), [0])):
        context = AttackContext(labelled(graph, torch.tensor(targets)), plain().threat, victim("gcn", 4))
        kept_the_limits(run_attack(make(option), context, seed=0).edit, context)


def test_dice_without_labels_and_without_a_model_says_what_is_missing() -> None:
    with pytest.raises(DataError, match="needs labels, but the view shows none; give it a model"):
        run_attack(make(("dice", {})), AttackContext(view_of(GRAPH, [0, 1]), Modification(edges=2)), seed=0)


def test_an_edit_that_isolates_a_node_is_refused() -> None:
    graph = random_graph(2, density=1.0)

    def isolating(context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        return GraphEdit(n=2, drop=torch.tensor([[0], [1]]))

    allowed = AttackContext(view_of(graph, [0]), Modification(edges=1))
    assert run_attack(isolating, allowed, seed=0).budget["edges"] == 1
    with pytest.raises(BudgetError, match="node 0 loses all its neighbours"):
        run_attack(isolating, AttackContext(view_of(graph, [0]), Modification(edges=1, allow_isolate=False)), seed=0)
