"""FGA against the same with dense matrices and autograd."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor

from attack.contexts import graph_of, view_of
from attack.modification.dense import double_gcn, double_graph, flipped, gcn_logits, matrix, pairs_of
from grb.attack import AttackContext, run_attack
from grb.attack.losses import cross_entropy, tanh_margin, typical_margin
from grb.attack.modification import FGA
from grb.attack.modification.base import SearchState
from grb.attack.modification.scores import Judged
from grb.errors import DataError
from grb.graph import Adjacency, Graph
from grb.model.base import predict
from grb.threat import Modification


def dense_fga(
    graph: Graph, targets: Tensor, budget: int, *, isolate: bool = True, scaled: bool = True, add: bool = True
) -> set[tuple[int, int]]:
    """The greedy choice with all n x n gradients."""
    model, x = double_gcn(), graph.x
    assert isinstance(x, Tensor)
    clean = a = matrix(graph)
    logits = gcn_logits(model, clean, x)[targets]
    labels = logits.argmax(1)
    loss = partial(tanh_margin, scale=typical_margin(logits, labels)) if scaled else cross_entropy
    chosen: set[tuple[int, int]] = set()
    wanted = {pair for pair in pairs_of(graph.n) if set(pair) & set(targets.tolist())}
    while len(chosen) < budget:
        leaf = a.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(loss(gcn_logits(model, leaf, x)[targets], labels).mean(), leaf)
        scores = (gradient + gradient.T) * (1 - 2 * a)
        mask = torch.full_like(a, -torch.inf)
        for u, v in wanted - chosen:
            if (isolate or a[u, v] == 0 or min(a[u].sum(), a[v].sum()) > 1) and (add or clean[u, v]):
                mask[u, v] = 0.0
        best = int((scores + mask).argmax())
        u, v = best // graph.n, best % graph.n
        if not float((scores + mask)[u, v]) > 0:
            break
        chosen.add((u, v))
        a = flipped(a, u, v)
    return chosen


def changed(graph: Graph, targets: Tensor, attack: FGA, **limits: object) -> set[tuple[int, int]]:
    context = AttackContext(view_of(graph, targets), Modification(**limits), double_gcn())  # type: ignore[arg-type]
    edit = run_attack(attack, context, seed=0).edit
    return {(u, v) for part in (edit.add, edit.drop) for u, v in part.T.tolist()}


@pytest.mark.parametrize(("n", "density", "budget"), [(12, 0.3, 30), (60, 0.08, 12), (200, 0.02, 12)])
def test_the_choice_is_that_of_dense_gradients(n: int, density: float, budget: int) -> None:
    graph = double_graph(n, density=density, seed=n)
    targets = torch.arange(0, n, 3)
    assert changed(graph, targets, FGA(), edges=budget) == dense_fga(graph, targets, budget)
    plain = changed(graph, targets, FGA(loss=cross_entropy), edges=4)
    assert plain == dense_fga(graph, targets, 4, scaled=False)


def test_the_choice_without_isolating_is_that_of_dense_gradients() -> None:
    differed = False
    for seed in range(4):
        graph = double_graph(12, density=0.15, seed=seed)
        limits = {"edges": 30, "allow": ("drop",)}
        targets = torch.arange(12)
        found = changed(graph, targets, FGA(), allow_isolate=False, **limits)
        assert found == dense_fga(graph, targets, 30, isolate=False, add=False)
        differed |= found != changed(graph, targets, FGA(), **limits)
    assert differed


def test_the_first_flip_on_a_path_is_the_best_to_first_order() -> None:
    """0 - 1 - 2 - 3: all six flips tried, each moved by a thousandth of itself."""
    graph = graph_of([(0, 1), (1, 2), (2, 3)], 4)
    ones = torch.ones(graph.adj.pattern.entries, dtype=torch.float64)
    graph = Graph(Adjacency(graph.adj.pattern, ones), graph.x.double())  # type: ignore[union-attr]
    model, targets, a = double_gcn(), torch.tensor([0, 3]), matrix(graph)
    labels = gcn_logits(model, a, graph.x)[targets].argmax(1)  # type: ignore[arg-type]

    def loss(b: Tensor) -> float:
        return float(cross_entropy(gcn_logits(model, b, graph.x)[targets], labels).mean())  # type: ignore[arg-type]

    gains = {}
    for u, v in pairs_of(4):
        if {u, v} & {0, 3}:
            gains[u, v] = loss(a + 1e-5 * (flipped(a, u, v) - a)) - loss(a)
    best = max(gains, key=lambda pair: gains[pair])
    assert gains[best] > 0
    assert changed(graph, targets, FGA(loss=cross_entropy), edges=1) == {best}


def test_an_edge_goes_only_if_its_gradient_is_negative() -> None:
    """The original removes an edge with a positive gradient, which lowers the loss."""
    for seed in range(6):
        graph = double_graph(16, density=0.3, seed=seed)
        context = AttackContext(view_of(graph, range(16)), Modification(edges=1, allow=("drop",)), double_gcn())
        result = run_attack(FGA(), context, seed=0)
        dense = dense_fga(graph, torch.arange(16), 1)
        if result.edit.drop.numel():
            a, (u, v) = matrix(graph), result.edit.drop.flatten().tolist()
            leaf = a.clone().requires_grad_()
            logits = gcn_logits(double_gcn(), leaf, graph.x)  # type: ignore[arg-type]
            labels = logits.argmax(1)
            scale = typical_margin(logits, labels)
            (gradient,) = torch.autograd.grad(tanh_margin(logits, labels, scale).mean(), leaf)
            assert float(gradient[u, v] + gradient[v, u]) < 0
        assert dense  # some flip always helps here


def test_a_refresh_interval_keeps_the_nodes_of_one_round_apart() -> None:
    graph = double_graph(60, density=0.08)
    context = AttackContext(view_of(graph, range(30)), Modification(edges=8), double_gcn())
    result = run_attack(FGA(refresh=8), context, seed=0)
    ends = torch.cat([result.edit.add.flatten(), result.edit.drop.flatten()])
    assert len(result.steps) == 1 and len(ends) == 16 == len(ends.unique())
    assert len(run_attack(FGA(refresh=3), context, seed=0).steps) == 3


def test_judged_targets_weigh_by_the_margins_of_the_model_itself() -> None:
    graph = double_graph(30, density=0.1, seed=0)
    targets = torch.arange(30)
    model, lent = double_gcn(), double_gcn()
    with torch.no_grad():
        for parameter in lent.parameters():
            parameter.mul_(-1.0)  # a relaxation that is of another mind everywhere
    context = AttackContext(view_of(graph, targets), Modification(edges=3), lent, judge=model)
    logits = predict(model, graph)
    labels = logits.argmax(1)
    labels[:5] = (labels[:5] + 1) % logits.shape[1]  # lost already
    judged = Judged(replace(context, true_labels=labels))
    judged.look(SearchState.of(context))
    assert judged.weights is not None
    margins = logits.gather(1, labels[:, None])[:, 0] - logits.scatter(1, labels[:, None], -torch.inf).max(1).values
    expected = torch.where(margins > 0, (-margins / margins[margins > 0].median()).exp(), 0.0)
    assert (expected[:5] == 0).all() and (expected[5:] > 0).all()
    assert torch.allclose(judged.weights, expected)
    assert torch.allclose(judged(logits, labels), expected * cross_entropy(logits, labels))


def test_a_judged_attack_looks_at_the_model_before_every_gradient_and_not_at_lost_targets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = double_graph(60, density=0.06, seed=1)
    targets = torch.arange(0, 60, 2)
    model, lent = double_gcn(), double_gcn(seed=5)
    labels = predict(model, graph).argmax(1)[targets]
    labels[:-3] = (labels[:-3] + 1) % 4  # all but three are lost
    context = AttackContext(view_of(graph, targets), Modification(edges=12), lent, true_labels=labels, judge=model)
    looked: list[Tensor] = []

    def look(self: Judged, state: SearchState) -> None:
        original(self, state)
        assert self.weights is not None
        looked.append(self.weights)

    original = Judged.look
    monkeypatch.setattr(Judged, "look", look)
    edit = FGA(judged=True, refresh=4)(context, generator=torch.Generator().manual_seed(0))
    flips = edit.add.shape[1] + edit.drop.shape[1]
    assert 0 < flips <= 12 and len(looked) >= flips / 4
    assert all((weights[:-3] == 0).all() for weights in looked) and (looked[0][-3:] > 0).all()


def test_a_judged_attack_takes_no_other_loss() -> None:
    graph = double_graph(12, density=0.3, seed=0)
    context = AttackContext(view_of(graph, range(12)), Modification(edges=1), double_gcn())
    with pytest.raises(DataError, match="loss was given together with judged"):
        run_attack(FGA(judged=True, loss=cross_entropy), context, seed=0)
