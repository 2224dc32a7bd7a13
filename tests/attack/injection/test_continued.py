"""Continuing from an edit: never weaker than its start, legal, and refused where there is nothing to continue."""

from __future__ import annotations

import pytest
import torch

from attack.contexts import context_of, random_graph, same_edit, victim
from grb.attack import run_attack
from grb.attack.injection import RND, ComposedInjection
from grb.attack.injection.continued import ContinuedInjection, ContinuedSearch
from grb.attack.injection.random_search import Search
from grb.errors import DataError
from grb.graph import GraphEdit
from grb.model.base import predict

CONTEXT = context_of(random_graph(40, density=0.1), range(24), victim("gcn", 4), nodes=4, edges=5)
PARTS = ComposedInjection(refine=5)


def kept(edit: GraphEdit) -> float:
    model = CONTEXT.surrogate()
    clean = predict(model, CONTEXT.graph)[CONTEXT.targets].argmax(1)
    return float((predict(model, CONTEXT.graph.apply(edit))[CONTEXT.targets].argmax(1) == clean).float().mean())


@pytest.mark.parametrize("seed", range(4))
def test_the_result_is_legal_and_not_weaker_than_the_start(seed: int) -> None:
    start = run_attack(RND(), CONTEXT, seed=seed).edit
    attack = ContinuedInjection(edit=start, parts=PARTS, rounds=4)
    result = run_attack(attack, CONTEXT, seed=seed)
    assert kept(result.edit) <= kept(start) and result.edit.num_new == start.num_new
    assert result.edit.add.shape == start.add.shape and result.budget["most_edges_per_node"] <= 5
    assert same_edit(result.edit, run_attack(attack, CONTEXT, seed=seed).edit)


def test_searching_on_takes_more_labels_than_the_start() -> None:
    starts = [run_attack(RND(), CONTEXT, seed=seed).edit for seed in range(4)]
    ends = [run_attack(ContinuedInjection(edit=each, parts=PARTS), CONTEXT, seed=0).edit for each in starts]
    assert sum(map(kept, ends)) < sum(map(kept, starts))


def test_edges_among_injected_nodes_stay() -> None:
    n = CONTEXT.graph.n
    pairs = torch.tensor([[0, 1, n], [n, n + 1, n + 1]])
    start = GraphEdit(n=n, add=pairs, new_x=torch.zeros(2, CONTEXT.graph.num_features))
    found = run_attack(ContinuedInjection(edit=start, parts=PARTS, rounds=3), CONTEXT, seed=0).edit
    assert (n, n + 1) in set(map(tuple, found.add.T.tolist())) and kept(found) <= kept(start)


def test_nothing_to_continue_is_refused() -> None:
    with pytest.raises(DataError, match="nothing to continue"):
        run_attack(ContinuedInjection(edit=GraphEdit(n=CONTEXT.graph.n), parts=PARTS), CONTEXT, seed=0)


@pytest.mark.parametrize("seed", range(4))
def test_a_search_that_goes_on_is_legal_and_not_weaker_than_its_start(seed: int) -> None:
    start = run_attack(ComposedInjection(steps=10, rewirings=0), CONTEXT, seed=seed).edit
    attack = ContinuedSearch(edit=start, steps=40)
    result = run_attack(attack, CONTEXT, seed=seed)
    assert kept(result.edit) <= kept(start) and result.edit.num_new == start.num_new
    assert same_edit(result.edit, run_attack(attack, CONTEXT, seed=seed).edit)


def test_a_search_keeps_the_edges_and_features_of_its_start_until_a_proposal_helps() -> None:
    start = run_attack(RND(), CONTEXT, seed=0).edit
    search = Search(CONTEXT)
    aims = search.aims_of(start, torch.Generator().manual_seed(0))
    assert same_edit(search.edit(aims, start.new_x), start)


def test_a_search_fills_up_nodes_with_few_edges_and_leaves_out_nodes_that_are_no_targets() -> None:
    n = CONTEXT.graph.n
    few = GraphEdit(n=n, add=torch.tensor([[3, 30, n, n + 1], [n, n, n + 1, 5]]), new_x=torch.zeros(2, 3))
    aims = Search(CONTEXT).aims_of(few, torch.Generator().manual_seed(0))
    assert aims.shape == (2, 5) and 3 in aims[0] and 5 in aims[1]
    assert all(len(set(row.tolist())) == 5 and max(row.tolist()) < 24 for row in aims)


def test_a_search_without_injected_nodes_is_refused() -> None:
    with pytest.raises(DataError, match="nothing to continue"):
        run_attack(ContinuedSearch(edit=GraphEdit(n=CONTEXT.graph.n)), CONTEXT, seed=0)
