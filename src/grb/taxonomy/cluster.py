"""Hierarchical clustering of profiles: the tree, its leaf order, and groups cut from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from grb.errors import DataError, UnknownName
from grb.taxonomy.profile import Array, Profiles

Method = Literal["ward", "average", "complete", "single"]
Labels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Tree:
    """A dendrogram over datasets.

    Args:
        datasets: Names of the leaves, in the order of the profiles.
        linkage: scipy's linkage matrix, [d - 1, 4]: two merged nodes, height, leaves below.
        order: The leaves from top to bottom, such that neighbours are as near as the tree allows, [d].
    """

    datasets: tuple[str, ...]
    linkage: Array
    order: tuple[int, ...]

    @property
    def leaves(self) -> tuple[str, ...]:
        """Names from top to bottom."""
        return tuple(self.datasets[leaf] for leaf in self.order)

    @property
    def heights(self) -> Array:
        """Heights of the merges, ascending, [d - 1]."""
        return self.linkage[:, 2]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values for JSON."""
        merges = [[int(left), int(right), height, int(size)] for left, right, height, size in self.linkage.tolist()]
        return {"datasets": list(self.datasets), "linkage": merges, "leaves": list(self.leaves)}

    def members(self) -> list[frozenset[int]]:
        """The leaves below every node: first the d leaves, then the d - 1 merges."""
        below = [frozenset([leaf]) for leaf in range(len(self.datasets))]
        for left, right in self.linkage[:, :2].astype(int):
            below.append(below[left] | below[right])
        return below


def tree(profiles: Profiles, method: Method = "ward") -> Tree:
    """Cluster complete profiles by Euclidean distance.

    Ward's method merges the two clusters whose union raises the sum of squared distances to the cluster means least;
    it is the paper's. The leaf order is optimal in the sense of Bar-Joseph et al.

    Args:
        profiles: At least two profiles, without missing cells (:func:`grb.taxonomy.complete`).
        method: Linkage, which defines the distance of two clusters.

    References:
        Ward, *Hierarchical Grouping to Optimize an Objective Function*, JASA 1963.
        Bar-Joseph et al., *Fast Optimal Leaf Ordering for Hierarchical Clustering*, Bioinformatics 2001.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import pdist

    if method not in get_args(Method):
        raise UnknownName("linkage", method, get_args(Method), advice=f"Allowed: {', '.join(get_args(Method))}.")
    check_comparable(profiles, "a tree")
    # distances, because scipy warns about square matrices that look like distances already
    merged = linkage(pdist(profiles.values), method=method, optimal_ordering=True)
    return Tree(profiles.datasets, merged, tuple(int(leaf) for leaf in leaves_list(merged)))


def check_comparable(profiles: Profiles, what: str) -> None:
    """Refuse fewer than two profiles, or such with missing cells."""
    if len(profiles.datasets) < 2:
        raise DataError(f"{what} needs at least two datasets, but there is only '{profiles.datasets[0]}'")
    if profiles.missing:
        dataset, perturbation = profiles.missing[0]
        raise DataError(
            f"dataset '{dataset}' has no result under '{perturbation}'; "
            "apply a rule for missing cells first (grb.taxonomy.complete)"
        )


def cut(found: Tree, groups: int) -> Labels:
    """Groups of the lowest cut with no more than this number, numbered from 1 in leaf order, [d].

    Where merges have equal heights there may be fewer groups than asked for, as no cut separates them.

    >>> from grb.taxonomy import Profiles, tree
    >>> cut(tree(Profiles(("a", "b", "c"), ("NoEdges",), np.array([[-1.0], [0.0], [-0.9]]))), 2).tolist()
    [2, 1, 2]
    """
    from scipy.cluster.hierarchy import fcluster

    if not 1 <= groups <= len(found.datasets):
        raise DataError(f"{groups} groups were asked for, but 1 to {len(found.datasets)} are possible")
    return numbered(found, fcluster(found.linkage, groups, criterion="maxclust"))


def numbered(found: Tree, labels: NDArray[np.integer]) -> Labels:
    """The same groups, numbered 1, 2, ... as they first appear from top to bottom."""
    seen = dict.fromkeys(int(labels[leaf]) for leaf in found.order)
    numbers = {label: index for index, label in enumerate(seen, 1)}
    return np.array([numbers[int(label)] for label in labels], dtype=np.int64)


def join(found: Tree, labels: Labels, first: int, second: int) -> Labels:
    """Make two sibling groups one: they must together be everything below one node of the tree.

    The paper's inductive groups are such: a cut into four, whose last two are joined.
    """
    known = set(labels.tolist())
    for number in (first, second):
        if number not in known:
            raise DataError(f"there is no group {number} to join; there are groups {_listed(sorted(known))}")
    if first == second:
        raise DataError(f"group {first} cannot be joined with itself")
    union = frozenset(np.flatnonzero(np.isin(labels, (first, second))).tolist())
    if union not in found.members():
        raise DataError(
            f"groups {first} and {second} are not siblings in the tree, so they cannot be joined; siblings are "
            + (_listed([f"{a}+{b}" for a, b in siblings(found, labels)]) or "none")
        )
    return numbered(found, np.where(labels == second, first, labels))


def siblings(found: Tree, labels: Labels) -> list[tuple[int, int]]:
    """Pairs of groups that one merge of the tree unites."""
    below = found.members()
    groups = {frozenset(np.flatnonzero(labels == number).tolist()): int(number) for number in np.unique(labels)}
    pairs = []
    for left, right in found.linkage[:, :2].astype(int):
        if below[left] in groups and below[right] in groups:
            pairs.append((groups[below[left]], groups[below[right]]))
    return sorted((min(pair), max(pair)) for pair in pairs)


def _listed(items: Sequence[object]) -> str:
    return ", ".join(str(item) for item in items)


def as_groups(datasets: Sequence[str], labels: Labels | Sequence[str]) -> dict[str, list[str]]:
    """Names of the datasets of every group."""
    groups: dict[str, list[str]] = {}
    for dataset, label in sorted(zip(datasets, labels), key=lambda pair: (str(pair[1]).zfill(9), pair[0])):
        groups.setdefault(str(label), []).append(dataset)
    return groups


def agreement(first: Sequence[object] | Labels, second: Sequence[object] | Labels) -> float:
    r"""Adjusted Rand index of two groupings: 1 if they are the same, about 0 if they have nothing in common.

    .. math:: \frac{\sum_{ij} \binom{n_{ij}}{2} - E}{\frac12 (\sum_i \binom{a_i}{2} + \sum_j \binom{b_j}{2}) - E},
        \quad E = \sum_i \binom{a_i}{2} \sum_j \binom{b_j}{2} \Big/ \binom{n}{2}

    References:
        Hubert and Arabie, *Comparing Partitions*, Journal of Classification 1985.
    """
    from sklearn.metrics import adjusted_rand_score

    if len(first) != len(second):
        raise DataError(f"groupings of {len(first)} and {len(second)} datasets cannot be compared")
    return float(adjusted_rand_score([str(label) for label in first], [str(label) for label in second]))


def lookup(groups: Mapping[str, str], datasets: Sequence[str]) -> list[str]:
    """The known group of every dataset; one without is refused."""
    lost = [name for name in datasets if name not in groups]
    if lost:
        raise DataError(f"no group is given for dataset '{lost[0]}'" + (f" and {len(lost) - 1} more" * (len(lost) > 1)))
    return [groups[name] for name in datasets]
