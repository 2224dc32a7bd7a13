"""How much groups of datasets depend on choices that nobody would defend: linkage, one perturbation, the luck of the runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

import numpy as np

from grb.errors import DataError
from grb.taxonomy.cluster import Labels, Method, Tree, agreement, check_comparable, cut, lookup, tree
from grb.taxonomy.profile import Array, Profiles, to_list
from grb.taxonomy.uncertainty import resample

KMEANS_STARTS = 50
BOOTSTRAP_TREES = 200
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
        together: Fraction of draws in which two datasets are in one group, [d, d].
    """

    agreement: Array
    together: Array

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values for JSON: number of draws, mean and 5 and 95 % quantiles of the agreement, and ``together``."""
        low, high = np.quantile(self.agreement, [0.05, 0.95])
        return {
            "draws": len(self.agreement),
            "mean": float(self.agreement.mean()),
            "low": float(low),
            "high": float(high),
            "together": to_list(self.together),
        }


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
    """A statistic of the profiles and its distribution if perturbations had nothing to do with each other.

    Args:
        observed: The statistic of the profiles.
        null_mean: Its mean over shuffled profiles.
        null_low: The smallest among them.
        p: Fraction of shuffles, the profiles themselves included, with a statistic at most as large.
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
    for index, name in enumerate(("distance", "within")):
        if np.isnan(observed[index]):
            continue
        # a distance may differ by rounding when a shuffle is the identity
        hits = int((null[:, index] <= observed[index] + 1e-12).sum())
        values = null[:, index][~np.isnan(null[:, index])]
        low, mean = (float(values.min()), float(values.mean())) if len(values) else (float("nan"),) * 2
        found[name] = PermutationTest(float(observed[index]), mean, low, (1 + hits) / (1 + draws), draws)
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


@dataclass(frozen=True, eq=False)
class Stability:
    """How much the groups depend on choices.

    Args:
        against: What agreement is measured with: ``known groups`` or ``these groups``.
        agreement: Adjusted Rand index by number of groups and by variant: a linkage, ``k-means``, or ``without X``.
        kept: Fraction of the variants (single linkage aside) in which a dataset stays in its group, by dataset.
        bootstrap: Groups over resampled runs; None if only means are known.
        permutation: Tests of ``distance`` and ``within``, see :func:`permutation_test`.
        silhouettes: Mean silhouette by number of groups.
        verdict: The verdict, as one sentence.
    """

    against: str
    agreement: Mapping[int, Mapping[str, float]]
    kept: Mapping[str, float]
    bootstrap: BootstrapGroups | None
    permutation: Mapping[str, PermutationTest]
    silhouettes: Mapping[int, float]
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values for JSON; keys are strings, also the numbers of groups."""
        return {
            "verdict": self.verdict,
            "against": self.against,
            "agreement": {str(size): dict(own) for size, own in self.agreement.items()},
            "kept": dict(self.kept),
            "silhouettes": {str(size): value for size, value in self.silhouettes.items()},
            "permutation": {
                name: {key: to_list(value) for key, value in test._asdict().items()}
                for name, test in self.permutation.items()
            },
            "bootstrap": None if self.bootstrap is None else self.bootstrap.to_dict(),
        }


def assess_stability(
    profiles: Profiles,
    found: Tree,
    labels: Labels,
    groups: int,
    known: Mapping[str, str] | None,
    draws: int,
    seed: int,
) -> Stability:
    """Measure how much groups depend on linkage, perturbations and runs.

    Args:
        profiles: Complete profiles.
        found: Ward's tree of them.
        labels: Groups cut from it.
        groups: Number of groups of the cut, before merging.
        known: Known groups to compare with, by dataset; the labels if None.
        draws: Number of shuffles of the permutation test and of bootstrap draws.
        seed: Random seed of both.
    """
    if not 1 < len(set(labels.tolist())) < len(labels):
        raise DataError(
            "stability needs more than one group and fewer groups than datasets, "
            f"got {len(set(labels.tolist()))} and {len(labels)}"
        )
    if not np.ptp(profiles.values, axis=0).any():
        raise DataError("all profiles are the same, so any groups of them are arbitrary")
    against: Sequence[Any] = labels.tolist() if known is None else lookup(known, profiles.datasets)
    sizes = sorted({groups, len(set(against))})
    variants = {size: regrouped(profiles, size) for size in sizes}
    scores = {
        size: {name: agreement(against, own) for name, own in by_name.items()} for size, by_name in variants.items()
    }
    others = [own for name, own in variants[groups].items() if name not in ("ward", "single")]
    fractions = dict(zip(profiles.datasets, kept(against, others).tolist()))
    bootstrap = None
    if profiles.runs is not None:
        generator = np.random.default_rng([seed, 1])
        bootstrap = bootstrap_groups(profiles, against, groups, min(draws, BOOTSTRAP_TREES), generator=generator)
    return Stability(
        against="these groups" if known is None else "known groups",
        agreement=scores,
        kept=fractions,
        bootstrap=bootstrap,
        permutation=permutation_test(profiles, groups, draws, generator=np.random.default_rng([seed, 2])),
        silhouettes=silhouettes(profiles, found),
        verdict=_verdict(scores[groups], bootstrap),
    )


def _verdict(scores: Mapping[str, float], bootstrap: BootstrapGroups | None) -> str:
    """A word and the numbers behind it. Single linkage does not count: it puts all but some outliers into one group."""
    counted = {name: score for name, score in scores.items() if name not in ("ward", "single")}
    if bootstrap is not None:
        counted["resampled runs (5 % quantile)"] = float(np.quantile(bootstrap.agreement, 0.05))
    worst = min(counted, key=lambda name: counted[name])
    low = counted[worst]
    word = "stable" if low >= 0.9 else "fairly stable" if low >= 0.65 else "fragile"
    parts = [f"lowest agreement {low:.2f} ({worst})"]
    dropped = {name: score for name, score in scores.items() if name.startswith(WITHOUT)}
    if dropped and not worst.startswith(WITHOUT):
        heaviest = min(dropped, key=lambda name: dropped[name])
        parts.append(f"{dropped[heaviest]:.2f} {heaviest}")
    return f"{word}: {', '.join(parts)}; 1 is the same groups, 0 is chance"
