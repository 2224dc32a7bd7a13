"""Feature normalisations against numpy and their inverses."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grb.errors import DataError, UnknownName
from grb.graph import FeatureScale
from helpers import find_dataset, needs_grb_cora

KINDS = ["none", "arctan", "tanh", "standardise", "linear"]


def reference(kind: str, x: np.ndarray) -> np.ndarray:
    """The formulas of the docstring in double precision."""
    if kind == "none":
        return x
    if kind == "linear":
        return -1 + 2 * (x - x.min()) / (x.max() - x.min())
    z = (x - x.mean()) / x.std() if kind != "standardise" else (x - x.mean(axis=0)) / x.std(axis=0)
    return {"arctan": 2 * np.arctan(z) / math.pi, "tanh": np.tanh(z), "standardise": z}[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_formula(kind: str) -> None:
    x = np.random.default_rng(0).normal(3, 2, (40, 7)).astype(np.float32)
    seen = FeatureScale.fit(kind, torch.from_numpy(x)).apply(torch.from_numpy(x))
    np.testing.assert_allclose(seen.numpy(), reference(kind, x.astype(np.float64)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@given(
    rows=st.lists(st.lists(st.floats(-100, 100, width=32), min_size=3, max_size=3), min_size=2, max_size=5),
)
def test_inverse(kind: str, rows: list[list[float]]) -> None:
    x = torch.tensor(rows)
    scale = FeatureScale.fit(kind, x)
    once = scale.apply(x)
    assert torch.isfinite(once).all()
    if kind in ("arctan", "tanh", "linear"):
        assert float(once.abs().max()) <= 1 + 1e-6
    # |z| is at most sqrt(entries) < 4, where the inverse of tanh multiplies rounding errors by cosh(z)^2 < 750
    torch.testing.assert_close(
        scale.invert(once), x, rtol=1e-3, atol=1e-4 * (1 + float(torch.as_tensor(scale.spread).max()))
    )


@pytest.mark.parametrize("kind", KINDS)
def test_constant_and_empty_features_stay_finite(kind: str) -> None:
    constant = torch.full((4, 2), 0.1)
    scale = FeatureScale.fit(kind, constant)
    assert torch.isfinite(scale.apply(constant)).all()
    torch.testing.assert_close(scale.invert(scale.apply(constant)), constant)
    empty = torch.zeros(0, 3)
    assert FeatureScale.fit(kind, empty).apply(empty).shape == (0, 3)


@pytest.mark.parametrize("kind", ["arctan", "tanh"])
def test_inverse_is_finite_at_the_ends(kind: str) -> None:
    scale = FeatureScale.fit(kind, torch.tensor([[0.0, 1.0], [2.0, 3.0]]))
    ends = scale.invert(torch.tensor([-1.0, 1.0, 0.0]))
    assert torch.isfinite(ends).all()
    assert ends[0] < ends[2] < ends[1]


@pytest.mark.parametrize("kind", KINDS)
def test_order_is_kept(kind: str) -> None:
    x = torch.linspace(-3, 5, 50).reshape(10, 5)
    seen = FeatureScale.fit(kind, x).apply(x)
    assert (seen.diff(dim=0) > 0).all()
    assert kind == "standardise" or (seen.flatten().diff() > 0).all()


def test_standardise_takes_every_column_by_itself() -> None:
    """Columns of different units: with one deviation for all, the small ones would end as constants."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(500, 4, generator=generator) * torch.tensor([1.0, 1e-3, 1e4, 0.0]) + torch.tensor(
        [0.0, 5.0, 0.0, 7.0]
    )
    seen = FeatureScale.fit("standardise", x).apply(x)
    torch.testing.assert_close(seen.std(0, correction=0), torch.tensor([1.0, 1.0, 1.0, 0.0]), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(seen.mean(0), torch.zeros(4), atol=1e-3, rtol=0)


def test_spellings_of_the_original_and_unknown_names() -> None:
    x = torch.arange(6.0).reshape(3, 2)
    assert FeatureScale.fit(None, x).kind == "none"
    assert FeatureScale.fit("Linearize", x).kind == "linear"
    assert FeatureScale.fit("standardize", x).kind == "standardise"
    with pytest.raises(UnknownName, match="Did you mean 'arctan'"):
        FeatureScale.fit("arctn", x)


def test_nan_is_refused() -> None:
    with pytest.raises(DataError, match="finite"):
        FeatureScale.fit("arctan", torch.tensor([[float("nan")]]))


@needs_grb_cora
def test_the_papers_formula_on_grb_cora() -> None:
    """Table 2 of the paper prints the range as [-0.94, 0.94]."""
    from grb.dataset import Dataset

    directory = find_dataset("GRB/grb-cora")
    assert directory is not None
    with np.load(directory / "features.npz", allow_pickle=False) as stored:
        raw = stored["data"].astype(np.float64)
    dataset = Dataset("grb-cora", feat_norm="arctan")
    expected = 2 * np.arctan((raw - raw.mean()) / raw.std()) / np.pi
    np.testing.assert_allclose(dataset.features.numpy(), expected, atol=1e-5)
    assert dataset.feature_range == pytest.approx((-0.9406, 0.9430), abs=5e-5)
    np.testing.assert_allclose(dataset.feature_scale.invert(dataset.features).numpy(), raw, atol=1e-4)
