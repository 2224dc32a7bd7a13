"""Nettack against brute force: dense matrices, every candidate tried, every rule counted again."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attack.contexts import graph_of, random_graph, victim
from grb.attack import AttackContext, run_attack
from grb.attack.modification.local import flipped
from grb.attack.modification.nettack import Nettack, fit_linear
from grb.attack.modification.two_hop import TwoHop
from grb.attack.modification.unnoticeable import CoOccurrence, DegreeTest, power_law_likelihood
from grb.dataset.view import View
from grb.errors import DataError
from grb.graph import CSR, Adjacency, Graph, GraphEdit, Pattern
from grb.threat import Modification


def dense_square(adj: Adjacency) -> Tensor:
    """The square of the normalised adjacency with loops."""
    a = torch.eye(adj.n, dtype=torch.float64)
    u, v = adj.edges()
    a[u, v] = a[v, u] = 1
    scale = a.sum(1).rsqrt()
    a = scale.unsqueeze(1) * a * scale
    return a @ a


@given(st.integers(0, 2**31), st.sampled_from([0.1, 0.3, 0.7]), st.integers(3, 9))
def test_logits_after_every_flip_are_exact_on_a_graph_that_changes(seed: int, density: float, n: int) -> None:
    rng = np.random.default_rng(seed)
    adj = random_graph(n, density=density, seed=seed).adj
    p = torch.from_numpy(rng.standard_normal((n, 3)))
    linear = TwoHop(adj, p)
    for _ in range(3):
        square = dense_square(adj)
        node, other = (int(each) for each in rng.choice(n, 2, replace=False))
        assert torch.allclose(linear.weights(node), square[node], atol=1e-12)
        assert torch.allclose(linear.logits(node), square[node] @ p, atol=1e-12)
        direct, indirect = linear.after_direct(node), linear.after_indirect(node, other)
        for third in range(n):
            if third != node:
                after = flipped(adj, torch.tensor([sorted([node, third])]).T)
                assert torch.allclose(direct[third], dense_square(after)[node] @ p, atol=1e-11)
            if third not in (node, other):
                after = flipped(adj, torch.tensor([sorted([other, third])]).T)
                assert torch.allclose(indirect[third], dense_square(after)[node] @ p, atol=1e-11)
        first, second = sorted(int(each) for each in rng.choice(n, 2, replace=False))
        adj = flipped(adj, torch.tensor([[first], [second]]))
        linear.flip(first, second)
        p[first] = torch.from_numpy(rng.standard_normal(3))
        linear.set_row(first, p[first])


def test_degree_test_has_the_values_of_the_paper() -> None:
    """Degrees 2, 2, 4: alpha = 1 + 3 / (ln 16 - 3 ln 1.5) = 2.928, l = -1.579."""
    count, logs = torch.tensor(3.0).double(), torch.tensor(math.log(16)).double()
    assert float(power_law_likelihood(count, logs)) == pytest.approx(-1.579, abs=5e-4)
    test = DegreeTest(torch.tensor([2, 2, 4]))
    zero = torch.zeros(1)
    assert float(test.statistic(zero, zero, zero)) == 0  # the clean degrees against themselves


def likelihood(degrees: list[int]) -> float:
    kept = [d for d in degrees if d >= 2]
    if not kept:
        return 0.0
    total = sum(math.log(d) for d in kept)
    alpha = 1 + len(kept) / (total - len(kept) * math.log(1.5))
    return len(kept) * math.log(alpha) + len(kept) * alpha * math.log(2) - (alpha + 1) * total


def statistic(before: list[int], after: list[int]) -> float:
    return 2 * (likelihood(before) + likelihood(after) - likelihood(before + after))


@given(st.lists(st.integers(1, 9), min_size=3, max_size=9), st.integers(0, 2**31))
def test_the_statistic_of_a_flip_equals_that_of_all_degrees(degrees: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    test, now = DegreeTest(torch.tensor(degrees)), list(degrees)
    for _ in range(4):
        u, v = (int(each) for each in rng.choice(len(now), 2, replace=False))
        sign = 1 if min(now[u], now[v]) < 1 else int(rng.choice([-1, 1]))
        found = test.statistic(torch.tensor([now[u]]), torch.tensor([now[v]]), torch.tensor([sign]))
        test.flip(now[u], now[v], sign)
        now[u] += sign
        now[v] += sign
        assert float(found) == pytest.approx(statistic(degrees, now), abs=1e-9)


def test_words_that_go_together() -> None:
    """Words {0, 1} in one node, {1, 2} in another: a node with {0} may gain 1, not 2; one with {0, 1} may not gain 2."""
    x = torch.tensor([[1.0, 1, 0], [0, 1, 1], [1, 0, 0]])
    links = CoOccurrence.of(x)
    assert links.weights.tolist() == [1.0, 0.5, 1.0]
    assert links.allowed(2).tolist() == [False, True, False]
    assert links.allowed(0).tolist() == [False, False, False]
    rows = Pattern(torch.tensor([0, 2, 4, 5]), torch.tensor([0, 1, 1, 2, 0]), 3)
    assert all(torch.equal(CoOccurrence.of(CSR(rows)).allowed(node), links.allowed(node)) for node in range(3))


@given(st.integers(0, 2**31))
def test_words_that_may_come_by_brute_force(seed: int) -> None:
    x = (np.random.default_rng(seed).random((6, 7)) < 0.35).astype(float)
    links = CoOccurrence.of(torch.from_numpy(x))
    together = {(i, j) for i, j in itertools.permutations(range(7), 2) if (x[:, i] * x[:, j]).any()}
    degree = [sum((i, j) in together for j in range(7)) for i in range(7)]
    for node in range(6):
        own = [j for j in range(7) if x[node, j]]
        total = sum(1 / degree[j] for j in own if degree[j])
        for word in range(7):
            reached = sum(1 / degree[j] for j in own if (word, j) in together)
            assert bool(links.allowed(node)[word]) == (word not in own and reached > total / 2 + 1e-12)


def binary_context(seed: int, threat: Modification, targets: int = 2, **more: Any) -> AttackContext:
    rng = np.random.default_rng(seed)
    n = 9
    upper = np.triu(rng.random((n, n)) < 0.4, 1)
    graph = graph_of(np.argwhere(upper), n, torch.from_numpy((rng.random((n, 6)) < 0.4).astype(np.float32)))
    y = torch.from_numpy(rng.integers(0, 3, n))
    ids = torch.arange(targets)
    y[ids] = -1
    seen = torch.arange(targets, n)
    view = View(Graph(graph.adj, graph.x, y), seen, seen[:0], ids, torch.arange(n), 3, inductive=False)
    return AttackContext(view, threat, **more)


def margin_of(graph: Graph, weight: Tensor, node: int, label: int) -> float:
    assert isinstance(graph.x, Tensor)
    logits = dense_square(graph.adj)[node] @ graph.x.double() @ weight
    return float(logits[label] - max(value for c, value in enumerate(logits) if c != label))


@given(st.integers(0, 2**31), st.booleans())
def test_the_first_flip_is_the_best_of_all_that_pass(seed: int, features: bool) -> None:
    threat = Modification(per_target=1, feature_nodes=3, feature_range=(0.0, 1.0))
    context = binary_context(seed, threat, targets=1)
    graph, weight = context.graph, fit_linear(context).double()
    assert isinstance(graph.x, Tensor)
    label = int((dense_square(graph.adj)[0] @ graph.x.double() @ weight).argmax())
    degrees = graph.adj.degrees.tolist()
    found: dict[tuple[str, int], float] = {("nothing", 0): margin_of(graph, weight, 0, label)}
    for other in range(1, graph.n):
        pair = torch.tensor([[0], [other]])
        drop = bool(graph.adj.has(pair))
        after = list(degrees)
        for node in (0, other):
            after[node] += -1 if drop else 1
        if (drop and min(degrees[0], degrees[other]) <= 1) or not statistic(degrees, after) < 0.004:
            continue
        found["pair", other] = margin_of(Graph(flipped(graph.adj, pair), graph.x), weight, 0, label)
    allowed = CoOccurrence.of(graph.x).allowed(0)
    for word in range(graph.num_features) if features else ():
        if graph.x[0, word] or allowed[word]:
            x = graph.x.clone()
            x[0, word] = 1 - x[0, word]
            found["word", word] = margin_of(Graph(graph.adj, x), weight, 0, label)
    edit = run_attack(Nettack(features=features), context, seed=0).edit
    assert margin_of(graph.apply(edit), weight, 0, label) == pytest.approx(min(found.values()), abs=1e-9)


def spent(edit: GraphEdit, graph: Graph) -> int:
    words = 0 if edit.set_ids is None or edit.set_x is None else int((graph.x[edit.set_ids] != edit.set_x).sum())  # type: ignore[index]
    return edit.add.shape[1] + edit.drop.shape[1] + words


@given(st.integers(0, 2**31), st.sampled_from([0, 1, 3, (1.0, 2)]), st.booleans(), st.sampled_from(["target", "joint"]))
def test_every_rule_holds_after_many_flips(seed: int, limit: Any, direct: bool, degree_test: str) -> None:
    threat = Modification(per_target=limit, feature_nodes=2, feature_range=(0.0, 1.0))
    context = binary_context(seed, threat)
    graph = context.graph
    result = run_attack(Nettack(direct=direct, influencers=2, degree_test=degree_test, flips=(1.0, 5)), context, seed=0)
    edit, after = result.edit, graph.apply(result.edit)
    factor, flips = (0, limit) if isinstance(limit, int) else limit
    assert spent(edit, graph) <= sum(int(factor * d) + flips for d in graph.adj.degrees[:2].tolist())
    assert not ((graph.adj.degrees > 0) & (after.adj.degrees == 0)).any()
    if degree_test == "joint":
        assert statistic(graph.adj.degrees.tolist(), after.adj.degrees.tolist()) < 0.004
    if not direct:
        ends = torch.cat([edit.add.flatten(), edit.drop.flatten()])
        assert not torch.isin(ends, context.targets).any()
        assert edit.set_ids is None or not torch.isin(edit.set_ids, context.targets).any()
    if edit.set_x is not None and edit.set_ids is not None and isinstance(graph.x, Tensor):
        links = CoOccurrence.of(graph.x)
        for node, row in zip(edit.set_ids.tolist(), edit.set_x, strict=True):
            gained = (row > graph.x[node]).nonzero().flatten()
            assert links.allowed(node)[gained].all() and set(row.tolist()) <= {0.0, 1.0}


def test_features_stay_where_they_are_not_binary_or_may_not_change() -> None:
    graph = random_graph(12, density=0.4)
    y = torch.arange(12) % 3
    view = View(Graph(graph.adj, graph.x, y), torch.arange(6), y[:0], torch.arange(6, 9), torch.arange(12), 3)
    free = Modification(per_target=3, feature_nodes=12, feature_range=(0.0, 1.0))
    assert run_attack(Nettack(), AttackContext(view, free), seed=0).edit.set_ids is None
    narrow = binary_context(0, Modification(per_target=3, feature_nodes=5, feature_range=(0.0, 0.5)))
    assert run_attack(Nettack(), narrow, seed=0).edit.set_ids is None


def test_words_alone_and_edges_alone() -> None:
    threat = Modification(per_target=3, feature_nodes=9, feature_range=(0.0, 1.0))
    words = [run_attack(Nettack(structure=False), binary_context(seed, threat), seed=0).edit for seed in range(8)]
    assert all(not edit.add.numel() and not edit.drop.numel() for edit in words)
    assert any(edit.set_ids is not None for edit in words)
    edges = [run_attack(Nettack(features=False), binary_context(seed, threat), seed=0).edit for seed in range(8)]
    assert all(edit.set_ids is None for edit in edges) and any(edit.add.numel() for edit in edges)


def test_a_model_is_imitated_and_weighted_edges_are_refused() -> None:
    context = binary_context(3, Modification(per_target=2))
    model = victim("gcn", 3)
    assert model is not None
    weighted = Adjacency(context.graph.adj.pattern, torch.full((context.graph.adj.pattern.entries,), 2.0))
    view = View(
        Graph(weighted, context.graph.x, context.graph.y),
        *[context.view.train] * 2,
        context.targets,
        context.view.nodes,
        3,
    )
    with pytest.raises(DataError, match="this graph has edge weights"):
        run_attack(Nettack(), AttackContext(view, context.threat), seed=0)
    with pytest.raises(DataError, match="degree_test is 'no'"):
        Nettack(degree_test="no")
    with pytest.raises(DataError, match="influencers is 0"):
        Nettack(influencers=0)


def test_without_labels_and_without_a_model_it_says_what_is_missing() -> None:
    context = binary_context(0, Modification(per_target=2))
    view = View(
        Graph(context.graph.adj, context.graph.x), *[context.targets[:0]] * 2, context.targets, context.view.nodes, 3
    )
    with pytest.raises(DataError, match="no training nodes with labels; give it a model"):
        run_attack(Nettack(), AttackContext(view, context.threat), seed=0)
