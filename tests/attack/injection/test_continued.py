"""Continuing from an edit: never weaker than its start, legal, and refused where there is nothing to continue."""

from __future__ import annotations

import pytest
import torch

from attack.contexts import context_of, random_graph, same_edit, victim
from grb.attack import run_attack
from grb.attack.injection import RND, ComposedInjection
from grb.attack.injection.continued import ContinuedInjection
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
