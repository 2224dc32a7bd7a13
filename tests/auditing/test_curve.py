"""Curves and breaking points against brute force on small graphs and worked-out numbers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from torch import Tensor, nn

import grb
from grb.auditing import curve
from grb.dataset import Dataset
from grb.metric import get


class Vote(nn.Module):
    """Every node gets the sum of its neighbours' features, and a little of its own."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        weight = torch.ones(edge_index.shape[1]) if edge_weight is None else edge_weight
        received = torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]] * weight[:, None])
        return received + 0.1 * x


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_reported_curves_never_rise_and_never_exceed_what_was_measured(values: list[float]) -> None:
    lowest = curve.running_minimum(values)
    assert all(after <= before for before, after in itertools.pairwise(lowest))
    assert lowest == [min(values[: place + 1]) for place in range(len(values))]


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), st.floats(0.01, 1))
def test_the_crossing_lies_between_the_budgets_around_it(values: list[float], threshold: float) -> None:
    lowest = curve.running_minimum(values)
    budgets = [3 * place for place in range(len(values))]
    found = curve.crossing(budgets, lowest, threshold)
    below = [budget for budget, value in zip(budgets, lowest, strict=True) if value < threshold]
    if not below:
        assert math.isinf(found)
    else:
        assert max(0, below[0] - 3) <= found <= below[0]


def test_refinement_bisects_to_the_exact_budget() -> None:
    asked: list[int] = []

    def value_at(budget: int) -> float:
        asked.append(budget)
        return 1.0 if budget < 13 else 0.5

    added = curve.refine([0, 8, 16, 32], value_at, 0.8, most=5)
    assert added == [12, 14, 13]
    assert curve.refine([0, 8], lambda budget: 1.0, 0.8, most=5) == []


def test_intervals_of_a_share_are_those_of_the_binomial() -> None:
    """200 targets, 60 % right: two standard errors are 6.9 points."""
    y = torch.zeros(200, dtype=torch.int64)
    logits = torch.zeros(200, 2)
    logits[:120, 0] = 1
    logits[120:, 1] = 1
    drawn = curve.bootstrap(get("accuracy"), [logits], y, seed=0)
    low, high = curve.interval(drawn[:, 0])
    assert low == pytest.approx(0.6 - 0.068, abs=0.02) and high == pytest.approx(0.6 + 0.068, abs=0.02)


def test_a_rare_class_that_a_resample_misses_is_drawn_again() -> None:
    y = torch.zeros(50, dtype=torch.int64)
    y[0] = 1
    logits = nn.functional.one_hot(y, 2).float()
    drawn = curve.bootstrap(get("recall:1"), [logits], y, seed=0, resamples=50)
    assert drawn.shape == (50, 1) and (drawn == 1).all()


def small(seed: int) -> Dataset:
    """Ten nodes of two classes; five targets."""
    rng = np.random.default_rng(seed)
    y = np.arange(10) % 2
    x = np.eye(2)[y] * rng.uniform(0.2, 1.0, (10, 1))
    pairs = [(u, v) for u, v in itertools.combinations(range(10), 2) if rng.random() < (0.5 if y[u] == y[v] else 0.1)]
    e = np.array(pairs).T
    adj = coo_array((np.ones(len(pairs)), (e[0], e[1])), shape=(10, 10))
    return Dataset.from_arrays(adj + adj.T, x, y, split={"train": range(5), "test": range(5, 10)}, name="small")


def brute_force(dataset: Dataset, budget: int) -> float:
    """The lowest accuracy that any change of up to ``budget`` edges leaves, by trying all of them."""
    adj = np.asarray(dataset.adj.todense())
    x, y = dataset.features.numpy(), dataset.labels.numpy()
    lowest = 1.0
    for chosen in itertools.combinations_with_replacement(itertools.combinations(range(10), 2), budget):
        changed = adj.copy()
        for u, v in set(chosen):
            changed[u, v] = changed[v, u] = 1 - changed[u, v]
        said = (changed @ x + 0.1 * x).argmax(1)
        lowest = min(lowest, float((said == y)[5:].mean()))
    clean = (adj @ x + 0.1 * x).argmax(1)
    return min(lowest, float((clean == y)[5:].mean()))


@pytest.mark.parametrize("seed", range(4))
def test_breaking_points_are_within_one_step_of_brute_force(seed: int) -> None:
    dataset = small(seed)
    exact = [brute_force(dataset, budget) for budget in range(4)]
    threshold = 0.75 * exact[0] + 0.06
    best = next((budget for budget, value in enumerate(exact) if value < threshold), None)
    options = {
        "scenarios": ["modification"],
        "surrogates": (),
        "corrupt": False,
        "metrics": "accuracy",
        "effort": "standard",  # a quick audit probes, and may miss a pair of edges
    }
    report = grb.audit(Vote(), dataset, budgets={"modification": [1, 2, 3]}, below=threshold, **options)
    found = report.values["scenarios"][0]["breaking_point"]["budget"]
    # beyond the largest budget is one step more
    assert (4 if best is None else best) <= (4 if found is None else found) <= (4 if best is None else best + 1)
    points = {point["budget"]: point["value"] for point in report.values["scenarios"][0]["points"]}
    assert points[1] >= exact[1] - 1e-6 and points[2] >= exact[2] - 1e-6  # no attack beats all there are


def test_the_interval_holds_the_breaking_point() -> None:
    """Between two budgets that were tried a crossing is interpolated, but the point is one that was tried."""
    drawn = np.array([[1.0, 0.85, 0.1], [1.0, 0.82, 0.2], [1.0, 0.81, 0.1]])
    found = curve.breaking_point([0, 47, 65], [1.0, 0.83, 0.1], drawn, 0.8)
    assert found.budget == 65 and found.low is not None and found.low <= 65 <= (found.high or 0)
    assert "at 65 injected nodes (95 % interval 48 to 65)" in found.sentence("recall:1", "injected nodes")


def test_one_of_a_unit_is_no_plural() -> None:
    found = curve.breaking_point([0, 1], [1.0, 0.1], np.array([[1.0, 0.1]] * 3), 0.8)
    assert "at 1 injected node (95 %" in found.sentence("accuracy", "injected nodes")
    held = curve.breaking_point([0, 1], [1.0, 0.9], np.array([[1.0, 0.9]] * 3), 0.8)
    assert "up to 1 changed edge, the largest" in held.sentence("accuracy", "changed edges")
