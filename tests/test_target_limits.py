"""Budgets of single targets, counted by brute force."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attack.contexts import graph_of, random_graph
from grb.errors import BudgetError, DataError
from grb.graph import GraphEdit
from grb.threat import Modification, threat_from_dict, threat_within


@pytest.mark.parametrize("limit", [0, 3, (1.0, 2), (0.5, 0)])
def test_limits_come_back_from_json(limit: Any) -> None:
    threat = Modification(per_target=limit)
    assert threat_from_dict(threat.to_dict()) == threat and threat.per_target == limit
    assert "per_target" not in Modification(edges=3).to_dict()


@pytest.mark.parametrize(
    "limit", [-1, True, 1.5, "d+2", (1,), (-1, 2), (float("nan"), 1), (1, 0.5), (1, -1), (float("inf"), 0)]
)
def test_other_values_are_refused(limit: Any) -> None:
    with pytest.raises(DataError, match="per_target is"):
        Modification(per_target=limit)


def test_a_limit_is_needed() -> None:
    with pytest.raises(DataError, match="needs either edges or edge_ratio"):
        Modification()


def test_the_budget_is_the_sum_over_the_targets_and_no_more_than_that_of_the_graph() -> None:
    graph = graph_of([(0, 1), (0, 2), (0, 3)], 4)
    targets = torch.tensor([0, 1])
    assert Modification(per_target=(1, 2)).budget(graph, targets) == 5 + 3
    assert Modification(per_target=2).budget(graph) == 8
    assert Modification(edges=3, per_target=(1, 2)).budget(graph, targets) == 3


def test_one_flip_too_many_is_named() -> None:
    graph = graph_of([(0, 1), (1, 2)], 6)
    edit = GraphEdit(n=6, add=torch.tensor([[0, 0, 0], [2, 3, 4]]))
    targets = torch.tensor([0, 5])
    Modification(per_target=3).check(graph, edit, targets)
    with pytest.raises(BudgetError, match="3 flips are spent on target 0, but its limit is 2"):
        Modification(per_target=2).check(graph, edit, targets)


def test_changed_features_count() -> None:
    graph = graph_of([(0, 1)], 3)
    row = graph.x[1:2].clone()  # type: ignore[index]
    row[0, :2] += 1
    edit = GraphEdit(n=3, set_ids=torch.tensor([1]), set_x=row)
    threat = Modification(per_target=2, feature_nodes=1, feature_range=(-9.0, 9.0))
    threat.check(graph, edit, torch.tensor([1]))
    tight = Modification(per_target=1, feature_nodes=1, feature_range=(-9.0, 9.0))
    with pytest.raises(BudgetError, match="2 edges and features are flipped, but the threat model allows 1"):
        tight.check(graph, edit, torch.tensor([1]))


def test_a_target_that_is_named_twice_has_its_limit_once() -> None:
    graph = random_graph(5, density=0.0)
    edit = GraphEdit(n=5, add=torch.tensor([[0, 0], [2, 3]]))
    for targets in ([0], [0, 0], [0, 0, 0]):
        threat = Modification(per_target=1)
        assert threat.budget(graph, torch.tensor(targets)) == 1
        with pytest.raises(BudgetError):
            threat.check(graph, edit, torch.tensor(targets))


@given(st.integers(0, 2**31), st.integers(0, 2), st.integers(1, 5))
def test_flips_are_allowed_if_and_only_if_they_can_be_shared_out(seed: int, limit: int, count: int) -> None:
    graph = random_graph(6, density=0.0)
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.tensor(list(itertools.combinations(range(6), 2)))
    chosen = pairs[torch.randperm(len(pairs), generator=generator)[:count]]
    targets = [0, 1, 2]
    fits = any(
        max([owners.count(t) for t in targets]) <= limit
        and all(o in pair or not set(pair) & set(targets) for o, pair in zip(owners, chosen.tolist(), strict=True))
        for owners in itertools.product(targets, repeat=count)
    )
    edit = GraphEdit(n=6, add=chosen.T.contiguous())
    try:
        Modification(per_target=limit).check(graph, edit, torch.tensor(targets))
        allowed = True
    except BudgetError:
        allowed = False
    assert allowed == fits


@pytest.mark.parametrize(
    ("theirs", "ours", "within"),
    [
        (2, 2, True),
        (2, 1, False),
        (2, (1.0, 2), True),
        ((1.0, 0), 9, False),
        ((0.5, 1), (1.0, 1), True),
        (2, None, True),
    ],
)
def test_which_limits_lie_within_others(theirs: Any, ours: Any, within: bool) -> None:
    wide = {"edges": 9} if ours is None else {}
    assert threat_within(Modification(edges=9, per_target=theirs), Modification(**wide, per_target=ours)) == within
    assert threat_within(Modification(edges=9, queries=5), Modification(edges=9))
