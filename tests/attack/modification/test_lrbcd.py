"""The greedy projection of LR-BCD is the one by one rule, and its edits keep the budgets of all nodes."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attack.contexts import random_graph, victim, view_of
from grb.attack import AttackContext, run_attack
from grb.attack.modification import LRBCD
from grb.attack.modification.lrbcd import SLACK, greedy_projection
from grb.errors import DataError
from grb.threat import Modification

ENDS = torch.tensor([[0, 0, 2], [1, 2, 3]])
WEIGHTS = torch.tensor([0.9, 0.8, 0.7])


@pytest.mark.parametrize(("budget", "expected"), [(2, [0.9, 0.0, 0.7]), (1, [0.9, 0.0, 0.0])])
def test_the_worked_example(budget: int, expected: list[float]) -> None:
    found = greedy_projection(WEIGHTS, WEIGHTS, ENDS, torch.tensor([1, 9, 9, 9]), budget)
    assert torch.allclose(found, torch.tensor(expected))


def one_by_one(weights: Tensor, costs: Tensor, pairs: Tensor, limits: Tensor, budget: float) -> list[float]:
    """The rule as it is written."""
    order = sorted(range(len(weights)), key=lambda p: -float(weights[p]))
    spent = [0.0] * len(limits)
    for p in order:
        for end in pairs[:, p].tolist():
            spent[end] += float(costs[p])
    room, rest = [float(limit) for limit in limits], float(budget)
    kept = dict.fromkeys(order, True)
    stopped = False
    for p in order:
        u, v = pairs[:, p].tolist()
        cost = float(costs[p])
        if stopped:
            kept[p] = False
        elif spent[u] <= limits[u] and spent[v] <= limits[v]:
            rest -= cost
        elif rest < cost:
            kept[p], stopped = False, True
        elif room[u] < cost or room[v] < cost:
            kept[p] = False
        else:
            room[u], room[v], rest = room[u] - cost, room[v] - cost, rest - cost
    if sum(float(costs[p]) for p in order if kept[p]) > budget:
        total = 0.0
        for p in order:
            total += float(costs[p]) if kept[p] else 0.0
            kept[p] = kept[p] and total < budget - SLACK
    return [min(float(weights[p]), 1.0) if kept[p] else 0.0 for p in range(len(weights))]


@given(
    seed=st.integers(0, 2**20), p=st.integers(0, 30), budget=st.sampled_from([0.5, 1, 2, 5, 50]), whole=st.booleans()
)
def test_the_projection_is_the_one_by_one_rule(seed: int, p: int, budget: float, whole: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    # eighths, so that sums are exact in any order
    weights = torch.randint(1, 12, (p,), generator=generator) / 8
    pairs = torch.triu_indices(9, 9, 1)[:, torch.randperm(36, generator=generator)[:p]]
    limits = torch.randint(0, 4, (9,), generator=generator)
    costs = torch.ones(p) if whole else weights.clamp(max=1.0)
    found = greedy_projection(weights, costs, pairs, limits, budget)
    assert found.tolist() == one_by_one(weights, costs, pairs, limits, budget)


@pytest.mark.parametrize("fraction", [0.25, 0.5, 1.0])
def test_no_node_changes_beyond_its_fraction(fraction: float) -> None:
    graph = random_graph(40, density=0.2)
    context = AttackContext(view_of(graph, range(30)), Modification(edges=12), victim("gcn", 4))
    edit = run_attack(LRBCD(steps=10, local_fraction=fraction, search_space_size=200), context, seed=0).edit
    changed = torch.bincount(torch.cat([edit.add.flatten(), edit.drop.flatten()]), minlength=40)
    assert (changed <= (graph.adj.degrees * fraction).floor()).all() and changed.any()


def test_nodes_of_degree_one_are_never_touched() -> None:
    graph = random_graph(40, density=0.05)
    context = AttackContext(view_of(graph, range(40)), Modification(edges=12), victim("gcn", 4))
    edit = run_attack(LRBCD(steps=10, search_space_size=700), context, seed=0).edit
    touched = torch.cat([edit.add.flatten(), edit.drop.flatten()]).unique()
    assert len(touched) and (graph.adj.degrees[touched] > 1).all()


def test_settings_without_meaning_are_refused() -> None:
    with pytest.raises(DataError, match="local_fraction is -1, but must not be negative"):
        LRBCD(local_fraction=-1)
    with pytest.raises(DataError, match="steps is 0, but at least 1 is needed"):
        LRBCD(steps=0)
