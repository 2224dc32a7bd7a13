"""Edges of injected nodes that are exchanged for better ones."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attack.contexts import context_of, degrees_of, random_graph, victim
from grb.attack.features import SignAscent
from grb.attack.injection import rewiring
from grb.attack.injection.base import InjectionProblem, inject
from grb.attack.injection.edges import random_edges
from grb.attack.injection.rewiring import edge_scores, exchange, exchanged, judge, rewire, scores_by_margin
from grb.attack.losses import cross_entropy, masked_cross_entropy
from grb.defense.gcnsvd import GCNSVD
from grb.graph import GraphEdit

CONTEXT = context_of(random_graph(30), range(20), victim("gcn", 4), nodes=4, edges=3)
RULE = SignAscent(0.1, 3, noise=0.1)


def drawn(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def start() -> tuple[InjectionProblem, GraphEdit]:
    problem = InjectionProblem(CONTEXT)
    return problem, inject(CONTEXT, edges=random_edges, features=RULE, generator=drawn(), problem=problem)


def test_the_worst_edge_goes_for_the_best_absent_one() -> None:
    joined = torch.tensor([[True, True, False, False], [False, True, True, False]])
    scores = torch.tensor([[5.0, 1.0, 2.0, 9.0], [3.0, 7.0, 1.0, 2.0]])
    # row 0: 1 -> 9 gains 8 and 5 -> 2 loses 3; row 1: 1 -> 3 gains 2 and 7 -> 2 loses 5
    assert exchange(joined, scores, 1).int().tolist() == [[1, 0, 0, 1], [0, 1, 1, 0]]
    assert exchange(joined, scores, 9).int().tolist() == [[1, 0, 0, 1], [1, 1, 0, 0]]
    assert torch.equal(exchange(joined, -joined.float(), 9), ~joined)
    assert torch.equal(exchange(joined, joined.float(), 9), joined)


def test_a_target_gets_few_new_edges_in_one_round() -> None:
    joined = torch.zeros(5, 6, dtype=torch.bool)
    joined[:, 0] = True
    scores = torch.zeros(5, 6)
    scores[:, 3] = 1.0
    assert exchange(joined, scores, 9, per_target=2)[:, 3].sum() == 2
    assert exchange(joined, scores, 9, per_target=9)[:, 3].sum() == 5


@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 20), st.integers(0, 2**16))
def test_every_node_keeps_its_number_of_edges(m: int, t: int, swaps: int, seed: int) -> None:
    joined = torch.rand(m, t, generator=drawn(seed)) < 0.4
    scores = torch.randn(m, t, generator=drawn(seed + 1))
    after = exchange(joined, scores, swaps)
    assert torch.equal(after.sum(1), joined.sum(1))
    assert (after & ~joined).sum() <= swaps
    assert (scores * after).sum() >= (scores * joined).sum()


def test_scores_are_the_gradients_of_edge_weights() -> None:
    """By finite differences of the loss in the weight of an edge that is there."""
    problem, edit = start()
    attacked = CONTEXT.graph.apply(edit)
    scores = edge_scores(problem, edit, cross_entropy, torch.arange(20))
    assert scores.shape == (4, 20)
    model, adj = victim("gcn", 4).eval(), attacked.adj
    target, node = edit.add.min(0).values, edit.add.max(0).values
    step = 1e-2

    def loss(u: int, v: int, weight: float) -> float:
        values = torch.ones(adj.pattern.entries)
        rows, columns = adj.pattern.row_ids, adj.pattern.indices
        values[((rows == u) & (columns == v)) | ((rows == v) & (columns == u))] = weight
        with torch.no_grad():
            logits = model(attacked.x, model.prepare(type(adj)(adj.pattern, values)))  # type: ignore[operator]
        return float(cross_entropy(logits[CONTEXT.targets].double(), problem.labels).mean())

    for u, v in zip(target.tolist()[:6], node.tolist()[:6], strict=True):
        slope = (loss(u, v, 1 + step) - loss(u, v, 1 - step)) / (2 * step)
        assert float(scores[v - 30, u]) == pytest.approx(slope, abs=2e-5, rel=2e-2)


def test_models_without_gradients_for_edges_go_by_margins() -> None:
    model = GCNSVD(3, 4, hidden_features=[4], rank=3, generator=drawn()).eval().requires_grad_(False)
    seen: list[str] = []
    context = context_of(random_graph(30), range(20), model, 4, 3, on_note=lambda note: seen.append(str(note)))
    problem = InjectionProblem(context)
    edit = inject(context, edges=random_edges, features=RULE, generator=drawn(), problem=problem)
    assert edge_scores(problem, edit, cross_entropy, torch.arange(20)).isfinite().all()
    assert any("no gradients for edges" in note for note in seen)


def test_margins_put_targets_near_the_boundary_first_and_lost_ones_last() -> None:
    edit = GraphEdit(n=5, add=torch.tensor([[0, 1, 2], [5, 5, 6]]), new_x=torch.zeros(2, 3))
    margins, labels = torch.tensor([0.1, 5.0, -2.0]), torch.tensor([0, 0, 1])
    scores = scores_by_margin(edit, torch.tensor([0, 1, 2]), margins, labels)
    assert scores[0].argsort(descending=True).tolist() == [0, 1, 2]
    # node 5 has targets of class 0, node 6 of class 1
    torch.testing.assert_close(scores[0] - scores[1], torch.tensor([1.0, 1.0, -1.0]))


def test_rounds_never_make_an_edit_worse_and_keep_the_budget() -> None:
    problem, edit = start()
    values = [judge(problem, edit, masked_cross_entropy)]
    for rounds in (1, 3, 6):
        found = rewire(
            problem, edit, rounds=rounds, features=RULE, loss=masked_cross_entropy, share=0.5, generator=drawn()
        )
        assert not values[-1].better_than(found)
        assert degrees_of(found.edit) == degrees_of(edit)
        values.append(found)
    assert values[-1].better_than(values[0])


def test_large_problems_look_at_a_part_of_the_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewiring, "CANDIDATES", 4 * 7)
    problem, edit = start()
    seen = []
    scores = rewiring.edge_scores
    monkeypatch.setattr(
        rewiring,
        "edge_scores",
        lambda p, e, loss, positions, by: seen.append(positions) or scores(p, e, loss, positions, by),
    )
    pairs = exchanged(problem, edit, cross_entropy, 5, drawn())
    assert pairs is not None and len(seen[0]) == 7
    assert degrees_of(GraphEdit(n=30, add=pairs, new_x=edit.new_x)) == degrees_of(edit)
