"""EvA, its own variant and random search: monotone, exact where all pairs can be tried, and without gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attack.contexts import random_graph, victim, view_of
from attack.modification.brute_force import fewest, kept
from grb.attack import AttackContext, run_attack
from grb.attack.base import Attack
from grb.attack.modification import EvA, EvAPlus, RandomSearch
from grb.attack.modification.base import SearchState
from grb.attack.modification.eva import NONE, _Evolution
from grb.errors import DataError
from grb.graph import Graph
from grb.model.adapters import wrap
from grb.threat import Modification


def context_on(graph: Graph, budget: int, **more: Any) -> AttackContext:
    model = more.pop("model", None) or victim("gcn", 3)
    return AttackContext(view_of(graph, range(graph.n)), Modification(edges=budget, **more), model)


ATTACKS: list[Attack] = [EvA(population=12, steps=12), EvAPlus(candidates=40, rounds=4), RandomSearch(steps=40)]
MANY = [EvA(population=80, steps=30, mutation_rate=0.5), EvAPlus(rounds=1)]


@pytest.mark.parametrize("attack", [ATTACKS[0], ATTACKS[2]], ids=["eva", "random-search"])
def test_the_best_never_gets_worse(attack: Attack) -> None:
    result = run_attack(attack, context_on(random_graph(40, density=0.1, seed=1), 6), seed=0)
    accuracies = [step.accuracy for step in result.steps]
    assert accuracies == sorted(accuracies, reverse=True) and accuracies[-1] < accuracies[0]
    context = context_on(random_graph(40, density=0.1, seed=1), 6)
    assert kept(context, result.edit) == pytest.approx(accuracies[-1] * 40)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("attack", MANY, ids=["eva", "eva-plus"])
def test_one_flip_is_the_best_one(attack: Attack, seed: int) -> None:
    context = context_on(random_graph(10, density=0.25, seed=seed), 1)
    assert kept(context, run_attack(attack, context, seed=0).edit) == fewest(context, 1)


@pytest.mark.parametrize("attack", ATTACKS, ids=["eva", "eva-plus", "random-search"])
def test_a_model_without_gradients_of_edges_can_be_attacked(attack: Attack) -> None:
    class Sum(nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return torch.zeros_like(x).index_add(0, edge_index[0], x[edge_index[1]])

    graph = random_graph(30, density=0.1, seed=2)
    result = run_attack(attack, context_on(graph, 4, model=wrap(Sum())), seed=0)
    assert 0 < result.budget["edges"] <= 4 and not any("gradients" in note for note in result.notes)


@pytest.mark.parametrize("attack", ATTACKS, ids=["eva", "eva-plus", "random-search"])
def test_queries_are_counted(attack: Attack) -> None:
    result = run_attack(attack, context_on(random_graph(30, density=0.1), 4), seed=0)
    (note,) = [note for note in result.notes if "graphs were evaluated" in note]
    assert result.passes.forward >= int(note.split()[0]) > 30


@pytest.mark.parametrize("attack", ATTACKS, ids=["eva", "eva-plus", "random-search"])
def test_where_edges_may_only_go_edges_go(attack: Attack) -> None:
    result = run_attack(attack, context_on(random_graph(30, density=0.1), 4, allow=("drop",)), seed=0)
    assert result.edit.drop.shape[1] > 0 and not result.edit.add.shape[1]


def test_a_pair_that_stands_twice_counts_once() -> None:
    context = context_on(random_graph(12), 4)
    search = _Evolution(EvA(), context, SearchState.of(context), torch.Generator())
    individual = torch.tensor([5, NONE, 5, 7])
    assert search.state.space.numbers(search._flips(individual)).tolist() == [5, 7]


def test_genes_beyond_the_limits_of_nodes_are_left_out_in_order() -> None:
    graph = random_graph(12, density=0.5)
    context = context_on(graph, 20, per_node=0.5)
    search = _Evolution(EvA(), context, SearchState.of(context), torch.Generator())
    flips = search._flips(torch.arange(11).flip(0))  # all at one node
    limit = int(graph.adj.degrees[0] * 0.5)
    assert flips.shape[1] <= limit and 10 in search.state.space.numbers(flips)


def test_settings_without_meaning_are_refused() -> None:
    for make in (lambda: EvA(population=0), lambda: EvAPlus(share=2), lambda: RandomSearch(steps=0)):
        with pytest.raises(DataError, match="needed|must be"):
            make()
