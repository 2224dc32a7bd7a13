from __future__ import annotations

import numpy as np
import pytest

from grb.errors import DataError, UnknownName
from grb.taxonomy import MISSING, Profiles, complete, cut, tree

NAN = np.nan
HOLED = Profiles(
    ("a", "b", "c", "d"),
    ("x", "y", "z"),
    np.array([[0.0, -1.0, 0.1], [-0.5, NAN, 0.0], [-0.1, -0.9, -0.4], [-0.6, -0.2, NAN]]),
)


def test_the_papers_rule_leaves_columns_out_which_clusters_as_columns_of_zeros():
    found = complete(HOLED)
    assert found.perturbations == ("x",)
    assert found.notes == ("left out, because a cell is missing: y, z",)
    zeroed = Profiles(HOLED.datasets, HOLED.perturbations, HOLED.values * [1, 0, 0])
    zeroed.values[np.isnan(zeroed.values)] = 0
    np.testing.assert_array_equal(tree(found).linkage, tree(zeroed).linkage)
    assert cut(tree(found), 2).tolist() == cut(tree(zeroed), 2).tolist()


def test_rows_can_be_left_out_instead():
    found = complete(HOLED, "drop-datasets")
    assert found.datasets == ("a", "c") and found.perturbations == HOLED.perturbations


def test_means_fill_cells_and_a_column_without_any_number_goes():
    found = complete(HOLED, "mean")
    assert found.values[1, 1] == pytest.approx((-1.0 - 0.9 - 0.2) / 3)
    assert found.values[3, 2] == pytest.approx((0.1 + 0.0 - 0.4) / 3)
    assert "2 missing cells filled with the mean of the perturbation" in found.notes
    empty = Profiles(("a", "b"), ("x", "y"), np.array([[0.0, NAN], [1.0, NAN]]))
    assert complete(empty, "mean").perturbations == ("x",)


@pytest.mark.parametrize("rule", MISSING)
def test_complete_profiles_stay_as_they_are(rule):
    whole = Profiles(("a", "b"), ("x",), np.array([[0.0], [-1.0]]))
    assert complete(whole, rule) is whole


def test_nothing_left_is_refused_with_the_other_rules():
    holes = Profiles(("a", "b"), ("x", "y"), np.array([[NAN, 0.0], [0.0, NAN]]))
    with pytest.raises(DataError, match="every one of the 2 perturbations has a missing cell.*drop-datasets or mean"):
        complete(holes)
    with pytest.raises(DataError, match="every one of the 2 datasets has a missing cell.*drop-perturbations or mean"):
        complete(holes, "drop-datasets")
    with pytest.raises(UnknownName, match="Did you mean 'mean'"):
        complete(holes, "meen")


def test_trees_do_not_guess():
    with pytest.raises(DataError, match="dataset 'b' has no result under 'y'; apply a rule for missing cells"):
        tree(HOLED)
