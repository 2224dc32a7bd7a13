from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grb.errors import DataError, UnknownName
from grb.taxonomy import Profiles, agreement, cut, join, siblings, tree


def profiles(values) -> Profiles:
    values = np.asarray(values, dtype=float)
    return Profiles(tuple(f"d{i}" for i in range(len(values))), tuple(f"p{j}" for j in range(values.shape[1])), values)


matrices = st.integers(2, 7).flatmap(
    lambda d: st.lists(st.lists(st.floats(-1, 1), min_size=2, max_size=2), min_size=d, max_size=d)
)


def naive_ward(points: np.ndarray) -> list[float]:
    """Merge heights by trying every pair: the rise of the sum of squares, as scipy scales it."""
    clusters = [[place] for place in range(len(points))]

    def rise(a: list[int], b: list[int]) -> float:
        gap = points[a].mean(0) - points[b].mean(0)
        return float(np.sqrt(2 * len(a) * len(b) / (len(a) + len(b)) * (gap @ gap)))

    heights = []
    while len(clusters) > 1:
        a, b = min(itertools.combinations(clusters, 2), key=lambda pair: rise(*pair))
        heights.append(rise(a, b))
        clusters = [own for own in clusters if own not in (a, b)] + [a + b]
    return heights


def test_heights_are_those_of_a_search_over_all_pairs():
    points = np.random.default_rng(0).standard_normal((9, 3))
    np.testing.assert_allclose(tree(profiles(points)).heights, naive_ward(points), atol=1e-9)


@settings(max_examples=50)
@given(matrices)
def test_leaf_order_is_a_permutation_in_which_every_merge_is_contiguous(values):
    found = tree(profiles(values))
    assert sorted(found.order) == list(range(len(values)))
    place = {leaf: row for row, leaf in enumerate(found.order)}
    for below in found.members():
        rows = sorted(place[leaf] for leaf in below)
        assert rows == list(range(rows[0], rows[0] + len(rows)))


@settings(max_examples=50)
@given(matrices, st.integers(1, 7))
def test_groups_are_numbered_from_the_top_and_nest(values, groups):
    found = tree(profiles(values))
    groups = min(groups, len(values))
    labels = cut(found, groups)
    seen = [int(labels[leaf]) for leaf in found.order]
    assert [label for label, _ in itertools.groupby(seen)] == list(range(1, max(seen) + 1))
    assert max(seen) <= groups
    if groups > 1:
        coarser = cut(found, groups - 1)
        for label in set(labels.tolist()):
            assert len(set(coarser[labels == label].tolist())) == 1


def test_leaf_order_is_the_best_of_all_flips():
    points = np.random.default_rng(3).standard_normal((6, 2))
    found = tree(profiles(points))

    def orders(node: int) -> list[list[int]]:
        if node < 6:
            return [[node]]
        left, right = (orders(int(child)) for child in found.linkage[node - 6, :2])
        return [a + b for a in left for b in right] + [b + a for a in left for b in right]

    def length(order) -> float:
        return sum(float(np.linalg.norm(points[a] - points[b])) for a, b in itertools.pairwise(order))

    assert length(found.order) == pytest.approx(min(length(order) for order in orders(10)))


@pytest.mark.parametrize("groups", [0, 4])
def test_impossible_numbers_of_groups(groups):
    with pytest.raises(DataError, match=f"{groups} groups were asked for, but 1 to 3 are possible"):
        cut(tree(profiles([[0, 0], [0, 1], [5, 5]])), groups)


def test_equal_profiles_cannot_be_told_apart():
    assert set(cut(tree(profiles(np.zeros((4, 2)))), 3)) == {1}


def test_one_dataset_has_no_tree():
    with pytest.raises(DataError, match="a tree needs at least two datasets, but there is only 'd0'"):
        tree(profiles([[0.5, 0.1]]))
    with pytest.raises(UnknownName, match="no linkage 'wart'. Did you mean 'ward'"):
        tree(profiles([[0, 0], [1, 1]]), "wart")


def test_only_siblings_are_joined():
    # two tight pairs on the left, one on the right
    found = tree(profiles([[0, 0], [0.1, 0], [1, 0], [1.1, 0], [9, 0], [9.1, 0]]))
    labels = cut(found, 3)
    near = tuple(sorted((int(labels[0]), int(labels[2]))))
    assert siblings(found, labels) == [near]
    assert len(set(join(found, labels, *near).tolist())) == 2
    far = int(labels[4])
    with pytest.raises(DataError, match=rf"are not siblings in the tree.*siblings are {near[0]}\+{near[1]}"):
        join(found, labels, far, near[0])
    with pytest.raises(DataError, match="there is no group 7 to join; there are groups 1, 2, 3"):
        join(found, labels, 1, 7)
    with pytest.raises(DataError, match="cannot be joined with itself"):
        join(found, labels, 2, 2)


def test_agreement_by_hand():
    # pairs together in both 1, in the first 2, in the second 2, of 6: E = 2 * 2 / 6
    assert agreement([1, 1, 2, 2], [1, 1, 2, 3]) == pytest.approx((1 - 2 / 6) / (1.5 - 2 / 6))
    assert agreement(["a", "b", "b"], [2, 1, 1]) == 1.0
    with pytest.raises(DataError, match="of 2 and 3 datasets"):
        agreement([1, 1], [1, 1, 2])
