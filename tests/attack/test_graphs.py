"""Attacks on whole graphs: limits per graph, brute force on tiny graphs, no edge between graphs, determinism."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import grb
from attack.contexts import same_edit
from grb.attack.base import AttackContext, Step, mean_steps, run_attack
from grb.attack.build import build_attack, default_threat
from grb.attack.graphs import node_types
from grb.attack.losses import margin
from grb.dataset import Dataset
from grb.dataset.splits import Folds
from grb.dataset.view import View
from grb.errors import BudgetError, DataError
from grb.graph import CSR, Graph, GraphEdit
from grb.graph.batching import batch_edits, get_example, unbatch_edit
from grb.graph.edit import sparse_features
from grb.model.base import predict
from grb.model.pooled import Pooled, pooled
from grb.threat import Injection, Modification, Threat
from made_collections import random_collection, tiny_graphs

MODIFICATIONS = ("rnd-edges", "dice", "flip", "fga", "pgd-topology", "pr-bcd", "gr-bcd", "nea", "stack", "pgd-features")
INJECTIONS = ("rnd", "fgsm", "pgd", "tdgia", "speit")
STEPS = ("pgd-topology", "pr-bcd", "gr-bcd", "pgd-features", "fgsm", "pgd", "tdgia", "speit")


def attack_of(name: str, steps: int = 2) -> Any:
    return build_attack(name, "mutag", **({"iterations": steps} if name in STEPS else {}))


def victim(base: str = "gcn", classes: int = 3) -> Pooled:
    return pooled(base)(5, classes, hidden_features=[8], generator=torch.Generator().manual_seed(3)).eval()


def typed_collection(graphs: int, seed: int) -> Graph:
    """Random graphs with one-hot features."""
    graph = random_collection(graphs, seed)
    types = torch.randint(5, (graph.n,), generator=torch.Generator().manual_seed(seed))
    return graph.with_features(torch.eye(5)[types])


def context_of(graph: Graph, targets: list[int], model: nn.Module | None, threat: Threat) -> AttackContext:
    none = torch.empty(0, dtype=torch.int64)
    view = View(graph, none, none, torch.tensor(targets), torch.arange(graph.num_graphs), 3, inductive=False)
    return AttackContext(view, threat, model, "white-box")


@pytest.mark.parametrize("name", [*MODIFICATIONS, *INJECTIONS])
def test_every_attack_keeps_the_limits_of_every_graph(name: str) -> None:
    """Counted here once more, graph by graph, without the threat model's own code."""

    @settings(max_examples=5)
    @given(st.integers(0, 1000), st.floats(0, 0.5), st.integers(0, 2), st.integers(0, 3), st.data())
    def holds(seed: int, ratio: float, nodes: int, edges: int, data: st.DataObject) -> None:
        graph = typed_collection(4, seed)
        targets = sorted(data.draw(st.sets(st.integers(0, 3))))
        threat: Threat = Injection(nodes, edges, (0.0, 1.0))
        if name in MODIFICATIONS:
            threat = Modification(edge_ratio=ratio, feature_nodes=nodes, feature_range=(0.0, 1.0))
        context = context_of(graph, targets, victim(), threat)
        result = run_attack(attack_of(name), context, seed=seed)
        assert same_edit(result.edit, run_attack(attack_of(name), context, seed=seed).edit)
        owner = graph.owner
        after = graph.apply(result.edit)
        assert not after.adj.crosses(after.owner) and after.num_graphs == 4
        for k in range(4):
            before, now = get_example(graph, k), get_example(after, k)
            if k not in targets:
                assert now.fingerprint() == before.fingerprint()
            elif name in MODIFICATIONS:
                flips = sum(int((owner[pairs[0]] == k).sum()) for pairs in (result.edit.add, result.edit.drop))
                allowed = max(1, int(ratio * before.num_edges + 1e-9)) if ratio else 0
                assert flips <= allowed and now.n == before.n
            else:
                new = now.n - before.n
                degrees = now.adj.degrees[before.n :].tolist()
                assert new <= nodes and max(degrees, default=0) <= edges
                assert now.subgraph(torch.arange(before.n)).fingerprint() == before.fingerprint()
        assert result.budget["edges"] == result.edit.add.shape[1] + result.edit.drop.shape[1]

    holds()


@pytest.mark.parametrize("base", ["gcn", "gin"])
def test_a_budget_of_one_edge_against_all_flips(base: str) -> None:
    """PR-BCD on all pairs turns every graph that one flip can turn, and loses little of what the best flip would gain."""
    graph = random_collection(6, 4)
    model = victim(base)
    context = context_of(graph, [*range(6)], model, Modification(edges=1))
    found = unbatch_edit(graph, run_attack(attack_of("pr-bcd", 60), context, seed=0).edit)
    gains = []
    for k in range(6):
        own = get_example(graph, k)
        label = predict(model, own).argmax(1)

        def loss(edit: GraphEdit, own: Graph = own, label: Tensor = label) -> float:
            return float(margin(predict(model, own.apply(edit)), label))

        flips = [flip(own, pair) for pair in itertools.combinations(range(own.n), 2)]
        best = max(map(loss, flips))
        clean, reached = (loss(edit) for edit in (GraphEdit(n=own.n), found[k]))
        assert clean <= 0 and (reached > 0) == (best > 0), "a graph that one flip can turn was not turned"
        gains.append((reached - clean) / (best - clean))
    assert sum(gains) / 6 > 0.8 and max(gains) == pytest.approx(1.0)


def flip(graph: Graph, pair: tuple[int, int]) -> GraphEdit:
    ends = torch.tensor(pair).view(2, 1)
    return GraphEdit(n=graph.n, drop=ends) if graph.adj.has(ends) else GraphEdit(n=graph.n, add=ends)


def test_injected_features_beat_a_grid() -> None:
    """One node with one edge and one feature: PGD does as well as the best of a fine grid."""
    graph = random_collection(3, 5, features=1)
    model = pooled("gcn")(1, 3, hidden_features=[8], generator=torch.Generator().manual_seed(0)).eval()
    attack = build_attack("pgd", "mutag", iterations=60, step=0.05)
    result = run_attack(attack, context_of(graph, [0, 1, 2], model, Injection(1, 1, (-1.0, 1.0))), seed=0)
    for k, edit in unbatch_edit(graph, result.edit).items():
        own = get_example(graph, k)
        label = predict(model, own).argmax(1)
        values = [
            float(nn.functional.cross_entropy(predict(model, own.apply(with_feature(edit, value))), label))
            for value in torch.linspace(-1, 1, 81).tolist()
        ]
        reached = float(nn.functional.cross_entropy(predict(model, own.apply(edit)), label))
        turned = predict(model, own.apply(edit)).argmax(1) != label
        assert reached >= max(values) - 0.02 * abs(max(values)) or turned


def with_feature(edit: GraphEdit, value: float) -> GraphEdit:
    return GraphEdit(n=edit.n, add=edit.add, new_x=torch.full((1, 1), value))


def test_a_graph_is_attacked_in_the_same_way_whatever_else_is() -> None:
    graph = typed_collection(5, 1)
    threat = Modification(edge_ratio=0.3)
    for name in ("rnd-edges", "dice", "pr-bcd"):
        alone_edit, all_edits = (
            unbatch_edit(graph, run_attack(attack_of(name), context_of(graph, targets, victim(), threat), seed=4).edit)[
                3
            ]
            for targets in ([3], [0, 3, 2])
        )
        assert same_edit(alone_edit, all_edits)
    edits = [
        run_attack(attack_of("rnd-edges"), context_of(graph, [0, 1, 2], None, threat), seed=seed).edit
        for seed in (0, 1)
    ]
    assert not same_edit(*edits)


class Crossing:
    """Breaks the rules: its edits are fine one by one, and the check of the whole is what is tested."""

    scenario = "modification"

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        return GraphEdit(n=context.graph.n, add=torch.tensor([[0], [context.graph.n - 1]]))


def test_the_whole_edit_is_checked_graph_by_graph() -> None:
    graph = typed_collection(3, 0)
    assert graph.ptr is not None
    targets = torch.tensor([0, 2])
    a, b = int(graph.ptr[0]), int(graph.ptr[1])
    tight = Modification(edges=1)
    faults: dict[str, tuple[Threat, GraphEdit]] = {
        "joins two graphs": (tight, GraphEdit(n=graph.n, add=torch.tensor([[a], [b]]))),
        "graph 1 of the collection is changed, but": (tight, batch_edits(graph, {1: some_flips(graph, 1, 1)})),
        "in graph 2 of the collection 2 edges are changed": (tight, batch_edits(graph, {2: some_flips(graph, 2, 2)})),
        "in graph 0 of the collection 2 nodes are injected": (
            Injection(1, 2, (0.0, 1.0)),
            batch_edits(graph, {0: injected(get_example(graph, 0), 2)}),
        ),
        "in graph 0 of the collection an injected feature is 2": (
            Injection(1, 2, (0.0, 1.0)),
            batch_edits(graph, {0: injected(get_example(graph, 0), 1, 2.0)}),
        ),
    }
    for words, (threat, edit) in faults.items():
        with pytest.raises(BudgetError, match=words):
            threat.check(graph, edit, targets)
    used = tight.check(graph, batch_edits(graph, {k: some_flips(graph, k, 1) for k in (0, 2)}), targets)
    assert used == {"graphs": 2, "edges": 2, "feature_nodes": 0, "most_edges_per_graph": 1}
    empty = GraphEdit(n=graph.n)
    assert Injection(1, 2, (0, 1)).check(graph, empty)["graphs"] == 0 == tight.check(graph, empty, targets)["edges"]


def some_flips(graph: Graph, number: int, count: int) -> GraphEdit:
    own = get_example(graph, number)
    pairs = torch.tensor(list(itertools.combinations(range(own.n), 2))[:count]).T
    present = own.adj.has(pairs)
    return GraphEdit(n=own.n, add=pairs[:, ~present], drop=pairs[:, present])


def injected(graph: Graph, count: int, value: float = 1.0) -> GraphEdit:
    n = graph.n
    add = torch.stack([torch.zeros(count, dtype=torch.int64), torch.arange(n, n + count)])
    return GraphEdit(n=n, add=add, new_x=torch.full((count, graph.num_features), value))


def test_an_attack_that_overspends_in_one_graph_is_refused() -> None:
    graph = random_collection(3, 7)
    empty = Graph(graph.adj.subgraph(torch.arange(graph.n)), graph.x, graph.y, graph.ptr)
    for budget, refused in ((1, False), (0, True)):
        context = context_of(empty, [k for k in range(3) if fits(empty, k)], None, Modification(edges=budget))
        assert len(context.targets)
        if refused:
            with pytest.raises(BudgetError, match="1 edges are changed, but the threat model allows 0"):
                run_attack(Crossing(), context, seed=0)
        else:
            assert run_attack(Crossing(), context, seed=0).budget["most_edges_per_graph"] == 1


def fits(graph: Graph, number: int) -> bool:
    own = get_example(graph, number)
    return own.n > 1 and not bool(own.adj.has(torch.tensor([[0], [own.n - 1]])))


def test_dice_takes_types_of_nodes_for_labels() -> None:
    assert node_types(torch.eye(3)[[2, 0, 2]]).tolist() == [2, 0, 2]
    assert node_types(torch.tensor([[0.5, 1, 0], [7.0, 0, 1]])).tolist() == [0, 1]  # a measured column beside them
    assert node_types(torch.ones(3, 1)).tolist() == [0, 0, 0]
    assert node_types(torch.tensor([[0.3], [0.9]])).tolist() == [0, 0]
    assert node_types(torch.tensor([[1.0, 1], [0, 1]])).tolist() == [0, 0]  # no one-hot rows
    sparse = sparse_features(torch.eye(4))
    assert isinstance(sparse, CSR) and node_types(sparse).tolist() == [0, 1, 2, 3]
    graph = typed_collection(6, 0)
    types = node_types(graph.x)
    result = run_attack(attack_of("dice"), context_of(graph, [*range(6)], None, Modification(edge_ratio=0.5)), seed=0)
    add, drop = types[result.edit.add], types[result.edit.drop]
    assert add.shape[1] and drop.shape[1]
    assert (add[0] != add[1]).all() and (drop[0] == drop[1]).all()
    plain = graph.with_features(torch.ones(graph.n, 1))
    result = run_attack(attack_of("dice"), context_of(plain, [*range(6)], None, Modification(edge_ratio=0.5)), seed=0)
    assert not result.edit.add.numel() and any("too few pairs between classes" in note for note in result.notes)


def test_steps_of_graphs_are_averaged() -> None:
    short, long = [Step(1.0, 1.0)], [Step(3.0, 1.0), Step(5.0, 0.0)]
    assert mean_steps([short, (), long]) == (Step(2.0, 1.0), Step(3.0, 0.5))
    assert mean_steps([(), ()]) == ()


def test_default_limits_are_per_graph() -> None:
    dataset = tiny_graphs()
    assert default_threat(attack_of("pgd"), dataset, "full") == Injection(1, 3, dataset.feature_range)
    threat = default_threat(attack_of("fga"), dataset, "full")
    assert isinstance(threat, Modification) and threat.edge_ratio == 0.05
    own = get_example(dataset.graph, 0)
    assert threat.for_graph(own).budget(own) == max(1, own.num_edges // 20)
    assert Modification(edge_ratio=0.0).for_graph(own).budget(own) == 0


def test_end_to_end_from_python() -> None:
    dataset = grb.load_dataset("synth-graphs")
    assert isinstance(dataset, Dataset) and dataset.synthetic and dataset.task == "graph"
    model = grb.train("gcn", dataset, epochs=25)
    clean = grb.evaluate(model, dataset)["full"]
    result = grb.run_attack("fga", model, dataset, threat=Modification(edge_ratio=0.2))
    assert result.knowledge == "white-box" and grb.evaluate(model, dataset, result)["full"] < clean - 0.2
    before, after = (
        grb.model.base.predict(model, graph) for graph in (dataset.graph, dataset.graph.apply(result.edit))
    )
    others = torch.cat([dataset.split.train, dataset.split.val])
    torch.testing.assert_close(before[others], after[others])


def test_poisoning_is_refused_in_words() -> None:
    dataset = Dataset.of_graph(
        random_collection(30, 0, classes=2), Folds(torch.arange(30) % 2), name="graphs", task="graph"
    )
    with pytest.raises(DataError, match="no training nodes"):
        grb.run_attack("metattack", None, dataset)


def test_evaluators_take_models_of_graphs_and_check_edits_per_graph() -> None:
    from grb.evaluator import AttackEvaluator, DefenseEvaluator

    dataset = tiny_graphs()
    model = victim("gcn", 2)
    result = grb.run_attack("rnd-edges", None, dataset)
    scores = DefenseEvaluator(dataset, threat=Modification(edge_ratio=0.05)).evaluate(model, {"rnd": result})
    assert scores["rnd"] == grb.evaluate(model, dataset, result)["full"]
    with pytest.raises(BudgetError, match="in graph"):
        AttackEvaluator(dataset, threat=Modification(edges=0)).evaluate({"gcn": model}, result)
    nodes = grb.model.build.build(grb.model.build.settings("gcn", "grb-cora"), 5, 2)
    with pytest.raises(DataError, match="classifies nodes"):
        AttackEvaluator(dataset).evaluate({"gcn": nodes})
