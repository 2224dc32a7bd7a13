from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from grb.errors import DataError
from grb.taxonomy import Profiles, principal_components, profile_components


@settings(max_examples=50)
@given(st.integers(3, 9), st.integers(2, 6), st.integers(0, 2**31 - 1))
def test_components_are_those_of_scikit_learn_up_to_sign(rows, columns, seed):
    table = np.random.default_rng(seed).standard_normal((rows, columns))
    found = principal_components([f"r{i}" for i in range(rows)], [f"c{j}" for j in range(columns)], table)
    count = len(found.explained)
    assert count == min(rows - 1, columns)
    peer = PCA(count).fit(table)
    np.testing.assert_allclose(found.explained, peer.explained_variance_ratio_, atol=1e-9)
    np.testing.assert_allclose(np.abs((found.loadings * peer.components_).sum(1)), 1, atol=1e-6)
    np.testing.assert_allclose(found.scores @ found.loadings + table.mean(0), table, atol=1e-9)
    assert (found.loadings[np.arange(count), np.abs(found.loadings).argmax(1)] > 0).all()


def test_scaling_makes_units_irrelevant_and_a_constant_column_harmless():
    table = np.random.default_rng(0).standard_normal((8, 3))
    names = list("abcdefgh")
    first = principal_components(names, ["x", "y", "z"], table, scaled=True)
    second = principal_components(names, ["x", "y", "z"], table * [1, 1000, 0.01], scaled=True)
    np.testing.assert_allclose(first.explained, second.explained)
    third = principal_components(names, ["x", "y", "z", "one"], np.column_stack([table, np.ones(8)]), scaled=True)
    np.testing.assert_allclose(third.explained[:3], first.explained)
    np.testing.assert_allclose(third.loadings[:3, 3], 0, atol=1e-12)


@pytest.mark.parametrize(
    "table, sentence",
    [
        ([[1.0, 2.0]], "at least two rows, got 1"),
        ([[1.0, 2.0], [1.0, 2.0]], "all rows are the same"),
        ([[1.0, np.nan], [1.0, 2.0]], "a cell is missing or infinite"),
        ([[1.0], [2.0]], r"shape \[2, 1\]"),
    ],
)
def test_what_has_no_components_is_refused(table, sentence):
    with pytest.raises(DataError, match=sentence):
        principal_components([f"r{i}" for i in range(len(table))], ["x", "y"], np.array(table))


def test_one_perturbation_has_one_component():
    found = profile_components(Profiles(("a", "b", "c"), ("x",), np.array([[0.0], [-1.0], [-0.4]])))
    assert found.explained.tolist() == [1.0] and found.loadings.tolist() == [[1.0]]
