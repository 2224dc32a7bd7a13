from __future__ import annotations

import numpy as np
import pytest

from grb.errors import DataError
from grb.taxonomy import (
    Profiles,
    bootstrap_groups,
    cut,
    from_runs,
    k_means,
    leave_one_out,
    linkages,
    permutation_test,
    published,
    silhouettes,
    tree,
)
from grb.taxonomy.stability import kept


def clouds(gap: float, noise: float, seed: int = 0, per: int = 6) -> tuple[Profiles, list[int]]:
    """Three groups of datasets at the corners of a triangle."""
    generator = np.random.default_rng(seed)
    corners = gap * np.array([[0, 0, 0, 0], [-1, -1, 0, 0], [0, 0, -1, -1]])
    values = np.repeat(corners, per, axis=0) + noise * generator.standard_normal((3 * per, 4))
    names = tuple(f"d{place:02}" for place in range(3 * per))
    return Profiles(names, ("p", "q", "r", "s"), values), np.repeat([0, 1, 2], per).tolist()


def test_groups_that_are_far_apart_survive_everything():
    profiles, truth = clouds(gap=0.8, noise=0.02)
    assert set(linkages(profiles, truth, 3).values()) == {1.0}
    assert set(leave_one_out(profiles, truth, 3).values()) == {1.0}
    scores = silhouettes(profiles, tree(profiles))
    assert max(scores, key=lambda size: scores[size]) == 3 and scores[3] > 0.9


def test_groups_out_of_noise_do_not():
    profiles, truth = clouds(gap=0.0, noise=0.1)
    assert max(linkages(profiles, truth, 3).values()) < 0.3
    assert permutation_test(profiles, 3, 99, generator=np.random.default_rng(0))["distance"].p > 0.05


def test_permutation_test_sees_groups_and_the_papers_statistic():
    profiles, _ = clouds(gap=0.5, noise=0.05)
    tests = permutation_test(profiles, 3, 99, generator=np.random.default_rng(0))
    assert tests["distance"].p == tests["within"].p == 0.01
    assert tests["within"].observed < tests["within"].null_low
    # the paper's notebook prints .45 for the transductive profiles, below all its shuffles
    found = permutation_test(published("transductive").profiles, 3, 99, generator=np.random.default_rng(0))["distance"]
    assert round(found.observed, 2) == 0.45 and found.observed < found.null_low


def test_p_is_uniform_if_columns_are_independent():
    ps = []
    for seed in range(40):
        values = np.random.default_rng(seed).standard_normal((8, 3))
        profiles = Profiles(tuple("abcdefgh"), ("p", "q", "r"), values)
        ps.append(permutation_test(profiles, 3, 19, generator=np.random.default_rng(seed))["within"].p)
    assert 0.4 < np.mean(ps) < 0.65 and min(ps) >= 0.05


def test_permutation_test_is_the_same_for_the_same_seed():
    profiles, _ = clouds(gap=0.5, noise=0.1)
    first, second = (permutation_test(profiles, 3, 9, generator=np.random.default_rng(4)) for _ in range(2))
    assert first == second
    with pytest.raises(DataError, match="at least one shuffle, got 0"):
        permutation_test(profiles, 3, 0, generator=np.random.default_rng(0))


def noisy_runs(deviation: float) -> tuple[Profiles, list[int]]:
    profiles, truth = clouds(gap=0.6, noise=0.02, per=4)
    generator = np.random.default_rng(1)
    rows = []
    for i, name in enumerate(profiles.datasets):
        for j, column in enumerate(("-", *profiles.perturbations)):
            mean = 0.8 if j == 0 else 0.8 * 2 ** profiles.values[i, j - 1]
            for seed in range(5):
                score = float(np.clip(mean + deviation * generator.standard_normal(), 0.01, 1))
                rows.append((name, column, seed, score))
    return from_runs(rows), truth


def test_bootstrap_over_runs_sees_how_noisy_they_are():
    steady, truth = noisy_runs(0.005)
    found = bootstrap_groups(steady, truth, 3, 30, generator=np.random.default_rng(0))
    assert found.agreement.tolist() == [1.0] * 30
    same = np.equal.outer(truth, truth)
    np.testing.assert_array_equal(found.together, same)
    shaky, truth = noisy_runs(0.3)
    found = bootstrap_groups(shaky, truth, 3, 30, generator=np.random.default_rng(0))
    assert found.agreement.mean() < 0.9
    np.testing.assert_allclose(np.diag(found.together), 1)
    np.testing.assert_allclose(found.together, found.together.T)


def test_means_alone_cannot_be_bootstrapped():
    profiles, truth = clouds(0.5, 0.1)
    with pytest.raises(DataError, match="hold means only"):
        bootstrap_groups(profiles, truth, 3, 5, generator=np.random.default_rng(0))


def test_k_means_of_equal_profiles_and_one_perturbation():
    assert len(set(k_means(Profiles(("a", "b", "c"), ("p",), np.zeros((3, 1))), 2).tolist())) == 1
    with pytest.raises(DataError, match="needs at least two of them"):
        leave_one_out(Profiles(("a", "b"), ("p",), np.array([[0.0], [1.0]])), [0, 1], 2)


def test_kept_matches_groups_whatever_their_names():
    labels = ["x", "x", "y", "y"]
    assert kept(labels, [np.array([7, 7, 3, 3]), np.array([1, 2, 2, 2])]).tolist() == [1.0, 0.5, 1.0, 1.0]
    # a group that falls apart, with nobody else in its parts, stays together
    assert kept(labels, [np.array([1, 1, 2, 3])]).tolist() == [1.0] * 4
    # everything in one group: only one of the two groups can be at home there
    assert kept(labels, [np.array([1, 1, 1, 1])]).sum() == 2


def test_cut_of_the_bootstrap_is_that_of_the_tree():
    profiles, truth = noisy_runs(0.005)
    assert linkages(profiles, cut(tree(profiles), 3).tolist(), 3)["ward"] == 1.0
