"""AGIA, SeqGIA and MetaGIA on small graphs: what their edges promise is what a recomputation gives."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from attack.contexts import context_of, degrees_of, random_graph, victim
from grb.attack import AttackContext, run_attack
from grb.attack.injection.base import InjectionProblem
from grb.attack.injection.homophily import homophily
from grb.attack.injection.sequential import (
    AGIA,
    MetaGIA,
    SeqGIA,
    exchanged_edges,
    live_cross_entropy,
    optimised_edges,
)
from grb.attack.losses import cross_entropy
from grb.errors import DataError
from grb.graph import GraphEdit
from grb.model.base import predict


def scene(nodes: int = 4, edges: int = 3) -> AttackContext:
    return context_of(random_graph(30), range(20), victim("gcn", 4), nodes, edges)


def start(context: AttackContext) -> GraphEdit:
    generator = torch.Generator().manual_seed(0)
    pairs = torch.stack([torch.randperm(20, generator=generator)[:12], torch.arange(12) // 3 + 30])
    return GraphEdit(n=30, add=pairs, new_x=torch.randn(4, 3, generator=generator).clamp(-1, 1))


def loss_of(context: AttackContext, edit: GraphEdit) -> float:
    labels = predict(context.surrogate(), context.graph)[:20].argmax(1)
    return float(cross_entropy(predict(context.surrogate(), context.graph.apply(edit))[:20], labels).mean())


def test_optimised_edges_raise_the_loss_and_keep_every_rows_budget() -> None:
    context, edit = scene(), start(scene())
    pairs = optimised_edges(InjectionProblem(context), edit, 4, steps=30, rate=0.1, penalty=1.0)
    after = GraphEdit(n=30, add=pairs, new_x=edit.new_x)
    assert degrees_of(after) == [3] * 4
    assert loss_of(context, after) > loss_of(context, edit)


def test_only_the_last_nodes_are_wired_anew() -> None:
    context, edit = scene(), start(scene())
    problem = InjectionProblem(context)
    for pairs in (optimised_edges(problem, edit, 2, 30, 0.1, 1.0), exchanged_edges(problem, edit, 2)):
        assert pairs is not None
        after = GraphEdit(n=30, add=pairs, new_x=edit.new_x)
        kept = [sorted(each.add[:, each.add[1] < 32].T.tolist()) for each in (edit, after)]
        assert kept[0] == kept[1] and degrees_of(after) == [3] * 4


def test_without_steps_the_wiring_stays() -> None:
    context, edit = scene(), start(scene())
    pairs = optimised_edges(InjectionProblem(context), edit, 4, steps=0, rate=0.1, penalty=1.0)
    assert sorted(pairs.T.tolist()) == sorted(edit.add.T.tolist())


@pytest.mark.parametrize("attack", [AGIA(steps=5), SeqGIA(steps=5), MetaGIA(steps=5), SeqGIA(steps=5, wiring="tdgia")])
def test_no_node_has_more_edges_than_it_may(attack: Any) -> None:
    for nodes, edges in ((1, 1), (7, 2), (6, 50)):
        edit = run_attack(attack, scene(nodes, edges), seed=0).edit
        assert edit.num_new == nodes and max(degrees_of(edit)) <= min(edges, 20)


@pytest.mark.parametrize("attack", [AGIA, SeqGIA, MetaGIA])
def test_hao_makes_injected_nodes_resemble_their_neighbours(attack: Any) -> None:
    found = []
    for weight in (0.0, 50.0):
        context = scene(8, 4)
        edit = run_attack(attack(steps=60, homophily=weight, step_size=0.05), context, seed=0).edit
        term = homophily(1.0, context.graph.apply(edit), edit.num_new)
        assert edit.new_x is not None
        found.append(float(term(edit.new_x)))
    assert found[1] > found[0] + 0.2


def test_lost_targets_leave_the_loss() -> None:
    logits = torch.tensor([[0.0, 1.0], [0.0, 40.0]])
    loss = live_cross_entropy(logits, torch.tensor([0, 0])).detach()
    assert float(loss[0]) == pytest.approx(1.3133, abs=1e-4) and float(loss[1]) == 0.0


@pytest.mark.parametrize(
    "bad",
    [{"wiring": "x"}, {"fraction": 0.0}, {"random_share": 2.0}, {"exchanges": 0}, {"homophily": -1.0}, {"steps": -1}],
)
def test_bad_settings_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        SeqGIA(**bad)
