"""All members of the ensemble for changed edges, on graphs small enough to try every edit."""

from __future__ import annotations

import os

import torch

from attack.contexts import random_graph, view_of
from attack.modification.brute_force import fewest, kept
from grb.attack import AttackContext, run_attack
from grb.attack.auto.ensemble import EdgeAutoAttack, members
from grb.catalogue import resolve
from grb.defense.gcnsvd import GCNSVD
from grb.model.torch import GCN
from grb.threat import Modification

# 200 for a stress run
CASES = int(os.environ.get("GRB_BRUTE_FORCE_CASES", "6"))


def small_case(number: int, budget: int) -> AttackContext:
    """A random graph of twelve nodes, all of them targets, and a GCN with random weights."""
    graph = random_graph(12, density=0.25, seed=number)
    model = GCN(graph.num_features, 3, hidden_features=[8], generator=torch.Generator().manual_seed(number))
    threat = Modification(edges=budget)
    return AttackContext(view_of(graph, range(12)), threat, model.eval().requires_grad_(False), "white-box")


def test_the_ensemble_finds_the_best_edit_there_is() -> None:
    """In at least 95 per cent of random cases with one or two flips; the best is found by trying all."""
    missed = []
    for number in range(CASES):
        context = small_case(number, 1 + number % 2)
        found = kept(context, run_attack(EdgeAutoAttack(), context, seed=number).edit)
        if found != fewest(context, 1 + number % 2):
            missed.append(number)
    assert len(missed) <= 0.05 * CASES, f"missed in the cases {missed}"


def test_a_model_with_a_low_rank_graph_meets_the_member_made_for_it() -> None:
    context = small_case(0, 2)
    low_rank = GCNSVD(context.graph.num_features, 3, hidden_features=[8], rank=3).eval()
    own = AttackContext(context.view, context.threat, low_rank, "white-box")
    assert {each.name for each in members(own)} - {each.name for each in members(context)} == {"low-rank-collapse"}


def test_names_of_members_are_distinct_and_one_needs_no_gradients() -> None:
    listed = members(small_case(0, 1))
    assert len({each.name for each in listed}) == len(listed)
    assert any(each.gradient_free for each in listed)
    assert all(
        isinstance(each.build(level), resolve("attack", "fga").__mro__[1]) for each in listed for level in range(3)
    )
