"""RL-S2V learns from rewards at the end of games which flips pay."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import grb
from attack.contexts import graph_of, random_graph, victim, view_of
from grb.attack import AttackContext, run_attack
from grb.attack.modification import RLS2V
from grb.attack.modification.base import SearchState
from grb.attack.modification.queried import search_evaluator
from grb.attack.modification.rl_s2v import _Player
from grb.errors import DataError
from grb.graph import CSR, Adjacency
from grb.threat import Modification


class Marked(nn.Module):
    """The more neighbours the marked nodes have among the marked, the larger the second logit; it never wins."""

    def prepare(self, adj: Adjacency) -> CSR:
        return CSR(adj.pattern, None)

    def forward(self, x: Tensor, op: CSR) -> Tensor:
        inside = ((op @ x[:, :1]) * x[:, :1]).sum()
        return torch.stack([torch.tensor(9.0), torch.tanh(0.5 * inside) * 8]).expand(x.shape[0], 2)


def scene(edges: int = 1, n: int = 12) -> AttackContext:
    """Four of twelve nodes are marked: 6 of 66 pairs pay."""
    marks = torch.zeros(n, 2)
    marks[:4, 0], marks[4:, 1] = 1, 1
    graph = graph_of([(v, v + 4) for v in range(n - 4)], n, marks)
    return AttackContext(view_of(graph, range(n)), Modification(edges=edges), Marked(), "white-box")


def test_late_games_pay_more_than_early_ones() -> None:
    early, late = [], []
    for seed in range(4):
        losses = [step.loss for step in run_attack(RLS2V(steps=150), scene(), seed=seed).steps]
        early.append(sum(losses[:30]))
        late.append(sum(losses[-30:]))
    assert sum(late) > sum(early) and sum(a > b for a, b in zip(late, early, strict=True)) >= 3


def test_the_best_game_is_returned() -> None:
    context = scene(edges=3)
    result = run_attack(RLS2V(steps=40), context, seed=0)
    model = context.surrogate()
    attacked = context.graph.apply(result.edit)
    margins = model(attacked.x, model.prepare(attacked.adj))[0]  # type: ignore[operator]
    again = [step.loss for step in result.steps]
    evaluator = search_evaluator(context)
    flips = torch.cat([result.edit.add, result.edit.drop], dim=1)
    found = evaluator.outcomes(flips, torch.zeros(flips.shape[1], dtype=torch.int64), 1)
    assert float(evaluator.losses.sum() + found.loss[0]) / 12 == pytest.approx(max(again)) and margins[1] > 0


@pytest.mark.parametrize(("edges", "queries"), [(30, 5), (3, 9), (200, 2)])
def test_a_game_costs_one_query_and_spends_the_budget(edges: int, queries: int) -> None:
    graph = random_graph(30, density=0.1)
    threat = Modification(edges=edges, queries=queries)
    context = AttackContext(view_of(graph, range(30)), threat, victim("gcn", 3), "query")
    result = run_attack(RLS2V(horizon=4), context, seed=0)
    assert result.queries <= queries and len(result.steps) == result.queries - 1
    state = SearchState.of(context)
    player = _Player(
        RLS2V(horizon=4), scene_of(graph, edges), state, search_evaluator(scene_of(graph, edges)), torch.Generator()
    )
    played = player._play(1.0)
    flips = played[-1].after.pairs
    assert flips.unique(dim=1).shape[1] == flips.shape[1]
    if edges < 100:
        assert len(played) <= 4 and flips.shape[1] == edges
    else:  # more than four nodes have partners
        assert 4 < len(played) <= 7 and flips.shape[1] > 150


def scene_of(graph: Any, edges: int) -> AttackContext:
    return AttackContext(view_of(graph, range(graph.n)), Modification(edges=edges), victim("gcn", 3))


def test_graphs_of_a_collection_are_attacked_by_asking() -> None:
    dataset = grb.load_dataset("synth-graphs")
    model = grb.train("gin-pool", dataset, epochs=10)
    count = len(dataset.test_ids("full"))
    threat = Modification(edge_ratio=0.2, queries=6 * count, answers="labels")
    result = grb.run_attack("rl-s2v", model, dataset, threat=threat, knowledge="query")
    assert result.queries <= 6 * count and result.knowledge == "query"
    assert grb.evaluate(model, dataset, result)["full"] < grb.evaluate(model, dataset)["full"]


@pytest.mark.parametrize(
    "wrong", [{"steps": 0}, {"width": 0}, {"rounds": -1}, {"batch": 0}, {"lr": 0.0}, {"explore": 2}]
)
def test_settings_without_meaning_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=f"{next(iter(wrong))} is .* needed"):
        RLS2V(**wrong)
