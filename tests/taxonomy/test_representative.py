from __future__ import annotations

import itertools

import numpy as np
import pytest

from grb import taxonomy
from grb.errors import DataError, UnknownName
from grb.taxonomy import Profiles, coverage, representatives


def scattered(seed: int, original=None) -> Profiles:
    values = np.random.default_rng(seed).standard_normal((9, 3))
    return Profiles(tuple("abcdefghi"), ("x", "y", "z"), values, original=original)


LABELS = ["1"] * 4 + ["2"] * 5


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("count", [2, 3])
def test_choice_is_near_the_best_of_all_subsets(seed, count):
    profiles = scattered(seed)
    found = representatives(profiles, LABELS, count)
    costs = [
        coverage(profiles, LABELS, chosen)
        for chosen in itertools.combinations(profiles.datasets, count)
        if {"1", "2"} == {LABELS[profiles.datasets.index(name)] for name in chosen}
    ]
    assert found.distance == pytest.approx(coverage(profiles, LABELS, found.datasets))
    # with one per group the medoids are the best there is; with more, exchanges inside groups come near
    assert found.distance <= min(costs) * (1.0 if count == 2 else 1.1) + 1e-12


def test_everything_chosen_leaves_no_distance():
    found = representatives(scattered(0), LABELS, 9)
    assert sorted(found.datasets) == list("abcdefghi") and found.distance == 0


def test_saturated_datasets_are_not_chosen_unless_their_group_has_no_others():
    original = np.array([0.99, 0.99, 0.8, 0.99, 0.99, 0.98, 0.97, 0.99, 0.99])
    found = representatives(scattered(1, original), LABELS, 2)
    assert found.datasets == ("c", "g") and found.saturated == ("g",)
    assert representatives(scattered(1, original), LABELS, 5).datasets == ("c", "g")  # no others are worth it


def test_default_is_a_third_and_at_least_one_per_group():
    assert len(representatives(scattered(0), LABELS).datasets) == 3
    assert len(representatives(scattered(0), list("123456789")).datasets) == 9


@pytest.mark.parametrize("count", [1, 10])
def test_impossible_counts(count):
    with pytest.raises(DataError, match=f"{count} representatives of 2 groups were asked for, but 2 to 9"):
        representatives(scattered(0), LABELS, count)


def test_coverage_by_hand_counts_the_own_group_first():
    profiles = Profiles(("a", "b", "c"), ("x",), np.array([[0.0], [1.0], [1.5]]))
    assert coverage(profiles, [1, 1, 2], ["a", "c"]) == pytest.approx(1 / 3)  # b is nearer to c, but belongs to a
    assert coverage(profiles, [1, 1, 2], ["a"]) == pytest.approx((1 + 1.5) / 3)
    with pytest.raises(UnknownName, match="no dataset 'z'"):
        coverage(profiles, [1, 1, 2], ["z"])
    with pytest.raises(DataError, match="2 labels, but 3 datasets"):
        coverage(profiles, [1, 1], ["a"])


@pytest.mark.parametrize(
    "name, ours, papers, shared", [("inductive", 0.2053, 0.2496, 6), ("transductive", 0.0951, 0.1372, 4)]
)
def test_beside_the_papers_choice(name, ours, papers, shared):
    reference = taxonomy.published(name)
    profiles = reference.profiles
    labels = [reference.groups[dataset] for dataset in profiles.datasets]
    found = representatives(profiles, labels, 8)
    assert found.distance == pytest.approx(ours, abs=5e-5)
    assert coverage(profiles, labels, reference.representatives) == pytest.approx(papers, abs=5e-5)
    assert len(set(found.datasets) & set(reference.representatives)) == shared
    assert max(profiles.original[profiles.datasets.index(dataset)] for dataset in found.datasets) <= 0.96
