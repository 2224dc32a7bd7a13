"""Dropout drawn from random bits is dropout; Linear is linear."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from grb.errors import DataError
from grb.graph import adjacency_from_edges
from grb.graph.edit import sparse_features
from grb.model.layers import Dropout, Linear, random_bits, relu_dropout

RATES = [0.5, 0.1, 0.999, 0.25, 1 / 3]
SHAPE = (1000, 600)
COUNT = SHAPE[0] * SHAPE[1]
SIGMAS = 5


def masks(p: float, calls: int = 1, seed: int = 0, shape: tuple[int, int] = SHAPE) -> list[Tensor]:
    """Masks of consecutive calls of one layer on ones."""
    layer = Dropout(p, torch.Generator().manual_seed(seed))
    return [(layer(torch.ones(shape)) > 0).double() for _ in range(calls)]


def rounded(p: float) -> float:
    """The rate that is really used: a multiple of 1/256, or else of 1/65536."""
    return p if p * 256 == round(p * 256) else round(p * 65536) / 65536


def correlation(a: Tensor, b: Tensor) -> float:
    a, b = a.flatten() - a.mean(), b.flatten() - b.mean()
    return float((a * b).sum() / (a.norm() * b.norm()))


@pytest.mark.parametrize("p", RATES)
def test_keep_rate(p: float) -> None:
    q = rounded(p)
    assert q == pytest.approx(p, abs=1 / 131072)
    kept = float(masks(p)[0].sum())
    assert abs(kept - COUNT * (1 - q)) < SIGMAS * math.sqrt(COUNT * q * (1 - q))


@pytest.mark.parametrize("p", RATES)
def test_expectation_is_kept_exactly_and_the_mean_statistically(p: float) -> None:
    q = rounded(p)
    _, _, scale = random_bits(torch.Size([8]), p, torch.device("cpu"), None)
    assert scale * (1 - q) == pytest.approx(1, abs=1e-12)
    layer = Dropout(p, torch.Generator().manual_seed(1))
    mean = float(layer(torch.ones(SHAPE)).double().mean())
    assert abs(mean - 1) < SIGMAS * math.sqrt(q / (1 - q) / COUNT)


def test_survivors_are_scaled_and_the_rest_is_zero() -> None:
    x = torch.randn(50, 40, generator=torch.Generator().manual_seed(0))
    y = Dropout(0.25, torch.Generator().manual_seed(0))(x)
    kept = y != 0
    torch.testing.assert_close(y[kept], x[kept] * (4 / 3))
    assert 0 < int(kept.sum()) < x.numel()


@pytest.mark.parametrize("p", RATES)
def test_consecutive_masks_are_fresh_and_independent(p: float) -> None:
    first, second, third = masks(p, calls=3)
    assert not torch.equal(first, second) and not torch.equal(second, third)
    for a, b in ((first, second), (second, third), (first, third)):
        assert abs(correlation(a, b)) < SIGMAS / math.sqrt(COUNT)


@pytest.mark.parametrize("p", RATES)
def test_neighbouring_entries_are_independent(p: float) -> None:
    """In one row at every distance within and across a 64-bit word, and down a column."""
    mask = masks(p)[0]
    flat = mask.flatten()
    for lag in [*range(1, 18), 31, 32, 64, SHAPE[1]]:
        assert abs(correlation(flat[:-lag], flat[lag:])) < SIGMAS / math.sqrt(COUNT - lag), lag
    assert abs(correlation(mask[:-1], mask[1:])) < SIGMAS / math.sqrt(COUNT)


@pytest.mark.parametrize("p", RATES)
def test_every_place_in_a_word_has_the_same_rate(p: float) -> None:
    q = rounded(p)
    lanes = masks(p)[0].reshape(-1, 8).sum(0)
    spread = SIGMAS * math.sqrt(COUNT / 8 * q * (1 - q))
    assert ((lanes - COUNT / 8 * (1 - q)).abs() < spread).all()


def test_eight_neighbours_take_all_256_patterns_equally_often() -> None:
    bits = masks(0.5)[0].reshape(-1, 8).numpy().astype(np.int64)
    counts = np.bincount(bits @ (1 << np.arange(8)), minlength=256)
    assert stats.chisquare(counts).pvalue > 1e-6


def test_masks_of_other_seeds_are_independent() -> None:
    assert abs(correlation(masks(0.5, seed=0)[0], masks(0.5, seed=1)[0])) < SIGMAS / math.sqrt(COUNT)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (7,), (2, 3, 5), (0, 4), (4, 0)])
@pytest.mark.parametrize("p", [0.5, 0.1])
def test_any_shape(shape: tuple[int, ...], p: float) -> None:
    y = Dropout(p, torch.Generator().manual_seed(0))(torch.ones(shape))
    assert y.shape == shape and torch.isin(y, torch.tensor([0.0, y.max() if y.numel() else 0.0])).all()


def test_entries_that_are_not_contiguous_get_their_own_mask() -> None:
    x = torch.ones(400, 300).T
    mask = (Dropout(0.5, torch.Generator().manual_seed(0))(x) > 0).double()
    assert abs(correlation(mask[:, :-1], mask[:, 1:])) < SIGMAS / math.sqrt(mask.numel())
    assert abs(correlation(mask[:-1], mask[1:])) < SIGMAS / math.sqrt(mask.numel())


@pytest.mark.parametrize("p", RATES)
def test_same_generator_state_same_mask(p: float) -> None:
    assert torch.equal(masks(p, seed=3, shape=(20, 30))[0], masks(p, seed=3, shape=(20, 30))[0])
    torch.manual_seed(5)
    first = Dropout(p)(torch.ones(20, 30))
    torch.manual_seed(5)
    assert torch.equal(first, Dropout(p)(torch.ones(20, 30)))


def test_generator_is_the_only_source() -> None:
    before = torch.get_rng_state()
    masks(0.5, calls=2)
    assert torch.equal(torch.get_rng_state(), before)


def test_identity_in_evaluation_and_at_rate_zero() -> None:
    x = torch.ones(4, 4)
    assert Dropout(0.9).eval()(x) is x
    assert Dropout(0.0).train()(x) is x


def test_gradient_is_the_mask() -> None:
    x = torch.randn(30, 20, generator=torch.Generator().manual_seed(0)).requires_grad_()
    y = Dropout(0.1, torch.Generator().manual_seed(0))(x)
    (grad,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(grad * x, y)


@pytest.mark.parametrize("p", [-0.1, 1.0, 1.5, float("nan")])
def test_impossible_rates_are_refused(p: float) -> None:
    with pytest.raises(DataError, match="dropout is"):
        Dropout(p)


def test_rates_close_to_one_stay_finite() -> None:
    y = Dropout(1 - 1e-9, torch.Generator().manual_seed(0))(torch.ones(100))
    assert torch.isfinite(y).all()


@pytest.mark.parametrize("bias", [True, False])
def test_linear_equals_the_dense_formula_for_dense_and_sparse_features(bias: bool) -> None:
    layer = Linear(5, 3, bias=bias)
    x = torch.randn(6, 5, generator=torch.Generator().manual_seed(0)).relu()
    expected = x @ layer.weight + (layer.bias if layer.bias is not None else 0)
    torch.testing.assert_close(layer(x), expected)
    torch.testing.assert_close(layer(sparse_features(x)), expected)


def test_linear_weights_have_the_spread_of_xavier_with_the_gain_of_relu() -> None:
    layer = Linear(400, 300)
    layer.reset_parameters(torch.Generator().manual_seed(0))
    expected = math.sqrt(2) * math.sqrt(2 / 700)
    assert float(layer.weight.detach().std()) == pytest.approx(expected, rel=0.01)
    assert layer.bias is not None and not layer.bias.any()
    again = Linear(400, 300)
    again.reset_parameters(torch.Generator().manual_seed(0))
    assert torch.equal(layer.weight, again.weight)


def test_sparse_features_multiply_like_dense_ones_inside_an_adjacency() -> None:
    """A chain of two sparse products, features and edges, equals the dense chain."""
    from grb.graph import normalise

    adj = adjacency_from_edges([[0, 1], [1, 2]], 4)[0]
    op = normalise.gcn(adj)
    x = torch.eye(4, 6)
    weight = torch.randn(6, 2, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(op @ (sparse_features(x) @ weight), (op @ torch.eye(4)) @ x @ weight)


def test_relu_and_dropout_in_one_step_equal_the_two() -> None:
    x = torch.randn(40, 30, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    together = relu_dropout(x, Dropout(0.25, torch.Generator().manual_seed(3)))
    apart = Dropout(0.25, torch.Generator().manual_seed(3))(torch.relu(x))
    torch.testing.assert_close(together, apart)
    grad = torch.randn(40, 30, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    torch.testing.assert_close(*(torch.autograd.grad(y, x, grad)[0] for y in (together, apart)))
