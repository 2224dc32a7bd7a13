"""Projections against their definitions, and the relaxed graph."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from torch import Tensor

from attack.contexts import random_graph, view_of
from attack.modification.dense import double_gcn, double_graph, matrix
from grb.attack import AttackContext
from grb.attack.modification import relaxation
from grb.attack.modification.base import SearchState
from grb.attack.modification.gradient import Victim
from grb.attack.modification.relaxation import Block, of_numbers, project, project_locally, relaxed
from grb.threat import Modification


@pytest.mark.parametrize(
    ("weights", "budget", "expected"),
    [
        ((0.9, 0.8, 0.3), 1.0, (0.55, 0.45, 0.0)),
        ((2.0, 0.5, 0.5), 1.5, (1.0, 0.25, 0.25)),
        ((-1.0, 0.2, 0.3), 1.0, (0.0, 0.2, 0.3)),
        ((5.0, 5.0), 0.0, (0.0, 0.0)),
        ((3.0, 3.0, 3.0), 2.0, (2 / 3, 2 / 3, 2 / 3)),
    ],
)
def test_projections_by_hand(weights: tuple[float, ...], budget: float, expected: tuple[float, ...]) -> None:
    torch.testing.assert_close(project(torch.tensor(weights), budget), torch.tensor(expected), atol=1e-6, rtol=0)


@given(weights=arrays("float64", st.integers(1, 6), elements=st.floats(-2, 3)), budget=st.floats(0, 4))
def test_the_projection_is_the_nearest_point(weights: object, budget: float) -> None:
    point = torch.as_tensor(weights)
    found = project(point, budget)
    assert (found >= 0).all() and (found <= 1).all() and float(found.sum()) <= budget + 1e-6
    # no feasible point is nearer: those of a solver, and random ones
    solved = minimize(
        lambda s: float(((s - point.numpy()) ** 2).sum()),
        found.numpy() * 0.9,
        jac=lambda s: 2 * (s - point.numpy()),
        bounds=[(0, 1)] * len(point),
        constraints={"type": "ineq", "fun": lambda s: budget - s.sum(), "jac": lambda s: -s * 0 - 1},
        method="SLSQP",
    )
    assert float((found - point).square().sum()) <= solved.fun + 1e-5


def one_by_one(weights: Tensor, pairs: Tensor, limits: Tensor, budget: float) -> Tensor:
    rest, room, given_ = budget, limits.double().tolist(), torch.zeros_like(weights)
    for place in torch.argsort(weights, descending=True, stable=True).tolist():
        u, v = pairs[:, place].tolist()
        amount = max(0.0, min(float(weights[place].clamp(0, 1)), rest, room[u], room[v]))
        given_[place] = amount
        rest, room[u], room[v] = rest - amount, room[u] - amount, room[v] - amount
    return given_


def test_the_local_projection_by_hand() -> None:
    """ab .9, ac .8, cd .7 with room 1 at a and 2 in all: .9, .1, .7."""
    pairs = torch.tensor([[0, 0, 2], [1, 2, 3]])
    found = project_locally(torch.tensor([0.9, 0.8, 0.7]), pairs, torch.tensor([1, 9, 9, 9]), 2.0)
    torch.testing.assert_close(found, torch.tensor([0.9, 0.1, 0.7]))


@given(n=st.integers(2, 9), seed=st.integers(0, 2**16), budget=st.floats(0, 6))
def test_the_local_projection_equals_one_after_the_other(n: int, seed: int, budget: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.combinations(torch.arange(n)).T
    weights = torch.rand(pairs.shape[1], generator=generator, dtype=torch.float64) * 1.5 - 0.3
    limits = torch.randint(0, 3, (n,), generator=generator)
    found = project_locally(weights, pairs, limits, budget)
    torch.testing.assert_close(found, one_by_one(weights, pairs, limits, budget), atol=1e-9, rtol=0)
    sums = torch.zeros(n, dtype=torch.float64).index_add_(0, pairs.flatten(), found.repeat(2))
    assert (sums <= limits + 1e-9).all() and float(found.sum()) <= budget + 1e-9


def test_without_limits_at_the_nodes_the_heaviest_pairs_are_served() -> None:
    pairs, weights = torch.combinations(torch.arange(6)).T, torch.linspace(0.05, 1.0, 15)
    found = project_locally(weights, pairs, torch.full((6,), 99), 3.0)
    assert set(found.nonzero().flatten().tolist()) == {11, 12, 13, 14}


def ground_of(n: int = 12, targets: object = range(5)) -> SearchState:
    return SearchState.of(AttackContext(view_of(random_graph(n, density=0.3), targets), Modification(edges=4)))


def test_weights_flip_edges_partly() -> None:
    state = ground_of()
    numbers = torch.arange(state.space.count)
    weights = torch.rand(len(numbers), generator=torch.Generator().manual_seed(0))
    weights[::3] = 0.0
    adj = relaxed(state, Block(numbers, weights, weights))
    a = matrix(state.clean).float()
    expected = a.clone()
    for number, (u, v) in enumerate(state.space.pairs(numbers).T.tolist()):
        expected[u, v] = expected[v, u] = a[u, v] + (1 - 2 * a[u, v]) * weights[number]
    found = torch.zeros_like(a)
    found[adj.pattern.row_ids.long(), adj.pattern.indices.long()] = adj.values  # type: ignore[assignment]
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("share", [0.05, 0.9])
def test_gradients_of_many_pairs_are_those_of_each(share: float) -> None:
    graph = double_graph(40, density=0.1)
    victim = Victim(double_gcn(), graph, torch.arange(0, 40, 3))
    state = SearchState.of(AttackContext(view_of(graph, torch.arange(0, 40, 3)), Modification(edges=4)))
    gradient = victim.gradient(graph.adj)
    numbers = state.space.draw(int(share * state.space.count), torch.Generator().manual_seed(0))
    expected = gradient.of(state.space.pairs(numbers)).float()
    torch.testing.assert_close(of_numbers(gradient, state.space, numbers).float(), expected, rtol=1e-4, atol=1e-6)


class Judged(NamedTuple):
    """A stand-in for a victim: how loss and labels kept follow from the number of flips."""

    loss: Callable[[int], float]

    def judge(self, flips: int) -> tuple[float, float]:
        return self.loss(flips), 10.0 - flips // 2


def test_refinements_take_losses_in_turn_and_one_of_them_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    """The set of flips is a number here: the first loss proposes one less, which its own value praises, the second one more."""
    misled, useful = Judged(lambda flips: -float(flips)), Judged(float)
    shares: dict[str, list[float]] = {"misled": [], "useful": []}

    def exchanged(victim: Any, state: Any, share: float, *_: object) -> Any:
        shares["misled" if victim is misled else "useful"].append(share)
        return SimpleNamespace(adj=state.adj - 1 if victim is misled else state.adj + 1)

    reports: list[tuple[float, float]] = []
    monkeypatch.setattr(relaxation, "_exchanged", exchanged)
    context: Any = SimpleNamespace(report=lambda loss, kept: reports.append((loss, kept)))
    victims: Any = (misled, useful)
    start: Any = SimpleNamespace(adj=0)
    found: Any = relaxation.refined(context, victims[1], victims, start, 6, torch.Generator())
    assert found.adj == 3
    assert shares == {"misled": [0.5, 0.25, 0.125], "useful": [0.5, 0.5, 0.5]}
    assert reports == [(0, 10), (1, 10), (1, 10), (2, 9), (2, 9), (3, 9)]
