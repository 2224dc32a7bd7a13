"""Sparse Bayesian regression finds the few weights there are, as scikit-learn's does, and knows what it does not know."""

from __future__ import annotations

import math

import pytest
import torch
from sklearn.linear_model import ARDRegression

from grb.attack.modification.sparse_regression import SparseRegression, expected_improvement


def problem(m: int, p: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(m, p, generator=generator, dtype=torch.float64)
    noise = 0.05 * torch.randn(m, generator=generator, dtype=torch.float64)
    return inputs, 3 * inputs[:, 0] - 2 * inputs[:, 1] + 5 + noise


@pytest.mark.parametrize("seed", range(3))
def test_means_are_those_of_scikit_learn(seed: int) -> None:
    inputs, outcomes = problem(40, 20, seed)
    fresh, truth = problem(30, 20, seed + 100)
    means, deviations = SparseRegression.fitted(inputs, outcomes).predict(fresh)
    theirs = torch.from_numpy(ARDRegression().fit(inputs.numpy(), outcomes.numpy()).predict(fresh.numpy()))
    assert (means - theirs).abs().max() < 0.1 and (means - truth).abs().max() < 0.3
    assert (deviations > 0).all()


def test_useless_weights_vanish_with_fewer_observations_than_features() -> None:
    inputs, outcomes = problem(15, 60, 0)
    weights = SparseRegression.fitted(inputs, outcomes).weights
    assert weights.abs().argsort(descending=True)[:2].sort().values.tolist() == [0, 1]
    assert int((weights.abs() > 0.01).sum()) < 15


def test_what_is_far_from_all_that_was_seen_is_less_certain() -> None:
    inputs, outcomes = problem(20, 5, 1)
    _, deviations = SparseRegression.fitted(inputs, outcomes).predict(torch.stack([inputs.mean(0), inputs[0] * 50]))
    assert deviations[1] > 5 * deviations[0]


def test_equal_outcomes_and_features_that_never_vary_do_no_harm() -> None:
    for outcomes in (torch.ones(4, dtype=torch.float64), torch.arange(4, dtype=torch.float64)):
        means, deviations = SparseRegression.fitted(torch.ones(4, 3, dtype=torch.float64), outcomes).predict(
            torch.eye(3).double()
        )
        assert means.isfinite().all() and deviations.isfinite().all()


@pytest.mark.parametrize(("mean", "deviation", "best"), [(0.0, 1.0, 0.5), (2.0, 0.3, 1.0), (-1.0, 0.5, 0.0)])
def test_improvement_is_the_integral(mean: float, deviation: float, best: float) -> None:
    grid = torch.linspace(mean - 10 * deviation, mean + 10 * deviation, 200001, dtype=torch.float64)
    density = torch.exp(-0.5 * ((grid - mean) / deviation) ** 2) / (deviation * math.sqrt(2 * math.pi))
    integral = torch.trapezoid((grid - best).clamp(min=0) * density, grid)
    found = expected_improvement(torch.tensor([mean]).double(), torch.tensor([deviation]).double(), best)
    assert float(found) == pytest.approx(float(integral), rel=1e-5)
