"""How much groups of datasets depend on choices that nobody would defend: linkage, one perturbation, the luck of the runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

import numpy as np

from grb.errors import DataError
from grb.taxonomy.cluster import Labels, Method, Tree, agreement, check_comparable, cut, tree
from grb.taxonomy.profile import Array, Profiles
from grb.taxonomy.uncertainty import resample

KMEANS_STARTS = 50
WITHOUT = "without "
Grouping = Sequence[Any] | Labels


def regrouped(profiles: Profiles, groups: int) -> dict[str, Labels]:
    """Groups found in other ways: by every linkage, by k-means, and by Ward without one of the perturbations."""
    found: dict[str, Labels] = {method: cut(tree(profiles, method), groups) for method in get_args(Method)}
    found["k-means"] = k_means(profiles, groups)
    if len(profiles.perturbations) > 1:
        for name in profiles.perturbations:
            found[f"{WITHOUT}{name}"] = cut(tree(profiles.without(name)), groups)
    return found


def linkages(profiles: Profiles, labels: Grouping, groups: int) -> dict[str, float]:
    """Agreement (adjusted Rand index) of groups with those of every linkage and of k-means, on the same profiles."""
    found = {method: agreement(labels, cut(tree(profiles, method), groups)) for method in get_args(Method)}
    return {**found, "k-means": agreement(labels, k_means(profiles, groups))}


def k_means(profiles: Profiles, groups: int, *, seed: int = 0) -> Labels:
    """Groups by k-means, the best of 50 starts: with ten starts the optimum is missed now and then."""
    from sklearn.cluster import KMeans

    check_comparable(profiles, "k-means")
    distinct = len(np.unique(profiles.values, axis=0))
    model = KMeans(min(groups, distinct), n_init=KMEANS_STARTS, random_state=seed)
    return np.asarray(model.fit_predict(profiles.values) + 1, dtype=np.int64)


def leave_one_out(profiles: Profiles, labels: Grouping, groups: int, method: Method = "ward") -> dict[str, float]:
    """Agreement of groups with those found without one of the perturbations, for each of them."""
    if len(profiles.perturbations) < 2:
        raise DataError("leaving one perturbation out needs at least two of them")
    return {
        name: agreement(labels, cut(tree(profiles.without(name), method), groups)) for name in profiles.perturbations
    }


class BootstrapGroups(NamedTuple):
    """Groups over resampled runs.

    Args:
        agreement: Adjusted Rand index of the labels with the groups of every draw, [draws].
        together: Share of draws in which two datasets are in one group, [d, d].
    """

    agreement: Array
    together: Array


def bootstrap_groups(
    profiles: Profiles,
    labels: Grouping,
    groups: int,
    draws: int = 200,
    *,
    generator: np.random.Generator,
    method: Method = "ward",
) -> BootstrapGroups:
    """Cluster again and again with runs drawn with replacement: what other luck with seeds would have given."""
    scores = []
    together = np.zeros((len(profiles.datasets),) * 2)
    for values in resample(profiles, draws, generator):
        own = cut(tree(Profiles(profiles.datasets, profiles.perturbations, values), method), groups)
        scores.append(agreement(labels, own))
        together += own[:, None] == own[None, :]
    return BootstrapGroups(np.array(scores), together / draws)


class PermutationTest(NamedTuple):
    """A statistic of the profiles beside its distribution if perturbations had nothing to do with each other.

    Args:
        observed: The statistic of the profiles.
        null_mean: Its mean over shuffled profiles.
        null_low: The smallest among them.
        p: Share of shuffles, the profiles themselves included, with a statistic at most as large.
        draws: Number of shuffles.
    """

    observed: float
    null_mean: float
    null_low: float
    p: float
    draws: int


def permutation_test(
    profiles: Profiles, groups: int = 3, draws: int = 999, *, generator: np.random.Generator
) -> dict[str, PermutationTest]:
    r"""Are datasets alike in more than one perturbation at a time, and do they form groups?

    Every column is shuffled on its own, which keeps what each perturbation does and destroys what a profile is. Two
    statistics, both small if there is something to find:

    - ``distance``: mean distance of two profiles (the test in the paper's notebooks);
    - ``within``: mean distance of two profiles of one group over the mean of all, with groups found anew by Ward for
      every shuffle, so that the search for groups does not count in their favour.

    .. math:: p = \frac{1 + |\{b : t_b \le t\}|}{1 + B}
    """
    check_comparable(profiles, "a permutation test")
    if draws < 1:
        raise DataError(f"a permutation test needs at least one shuffle, got {draws}")
    groups = min(groups, len(profiles.datasets))
    observed = _statistics(profiles.values, groups)
    null = np.array([_statistics(generator.permuted(profiles.values, axis=0), groups) for _ in range(draws)])
    found = {}
    for place, name in enumerate(("distance", "within")):
        if np.isnan(observed[place]):
            continue
        # a distance may differ by rounding when a shuffle is the identity
        hits = int((null[:, place] <= observed[place] + 1e-12).sum())
        values = null[:, place][~np.isnan(null[:, place])]
        low, mean = (float(values.min()), float(values.mean())) if len(values) else (float("nan"),) * 2
        found[name] = PermutationTest(float(observed[place]), mean, low, (1 + hits) / (1 + draws), draws)
    return found


def _statistics(values: Array, groups: int) -> tuple[float, float]:
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist

    distances = pdist(values)
    mean = float(distances.mean())
    labels = fcluster(linkage(distances, "ward"), groups, criterion="maxclust")
    same = (labels[:, None] == labels[None, :])[np.triu_indices(len(labels), 1)]
    if not same.any() or mean == 0:
        return mean, np.nan
    return mean, float(distances[same].mean()) / mean


def silhouettes(profiles: Profiles, found: Tree, most: int = 8) -> dict[int, float]:
    """Mean silhouette of the cuts into 2, 3, ... groups: near 1 if groups are far apart, near 0 if they touch.

    References:
        Rousseeuw, *Silhouettes*, Journal of Computational and Applied Mathematics 1987.
    """
    from sklearn.metrics import silhouette_score

    scores = {}
    for groups in range(2, min(most, len(profiles.datasets) - 1) + 1):
        labels = cut(found, groups)
        if 1 < len(np.unique(labels)) == groups:
            scores[groups] = float(silhouette_score(profiles.values, labels))
    return scores


def kept(labels: Grouping, variants: Sequence[Labels]) -> Array:
    """Share of variants in which a dataset stays in its group, [d].

    Groups of a variant are matched one to one with the groups such that most datasets stay; those left over, where a
    variant has more groups, belong to the group that most of their members come from.
    """
    from scipy.optimize import linear_sum_assignment

    names, own = np.unique([str(label) for label in labels], return_inverse=True)
    stayed = np.zeros(len(own))
    for variant in variants:
        others, theirs = np.unique(variant, return_inverse=True)
        counts = np.zeros((len(names), len(others)))
        np.add.at(counts, (own, theirs), 1)
        rows, columns = linear_sum_assignment(-counts)
        home = counts.argmax(0)
        # a matched group belongs to its partner, and with too few groups nobody else is at home there
        home[columns] = rows
        stayed += home[theirs] == own
    return np.asarray(stayed / max(len(variants), 1))
