"""A small set of datasets that stands for all: medoids of every group that are not saturated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grb.errors import DataError
from grb.taxonomy.cluster import check_comparable
from grb.taxonomy.profile import Array, Profiles

# the highest AUROC among the datasets that the paper recommends is .958 (WikiCS)
SATURATED = 0.96


@dataclass(frozen=True)
class Subset:
    """Chosen datasets and how well they represent the others.

    Args:
        datasets: The chosen ones, by group, then in order of choice.
        distance: Mean distance of a profile to the nearest chosen one of its group; 0 if all are chosen.
        saturated: Chosen ones with an AUROC that leaves nothing to gain, where a group has no others.
    """

    datasets: tuple[str, ...]
    distance: float
    saturated: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values for JSON."""
        return {"datasets": list(self.datasets), "distance": self.distance, "saturated": list(self.saturated)}


def distances(profiles: Profiles) -> Array:
    """Euclidean distance of every two profiles, [d, d]."""
    from scipy.spatial.distance import pdist, squareform

    check_comparable(profiles, "a distance")
    return np.asarray(squareform(pdist(profiles.values)))


def coverage(profiles: Profiles, labels: Sequence[Any], chosen: Iterable[str]) -> float:
    """Mean distance of a profile to the nearest chosen one of its group, or of any group if its own has none."""
    members = [profiles.datasets.index(name) for name in profiles.select(datasets=list(chosen)).datasets]
    return _cost(distances(profiles), _codes(profiles, labels), members)


def representatives(
    profiles: Profiles, labels: Sequence[Any], count: int | None = None, *, saturated: float = SATURATED
) -> Subset:
    r"""Choose datasets so that every profile is near a chosen one of its group.

    Minimises the mean distance to the nearest chosen member of the same group: first the medoid of every group, then,
    one at a time, the dataset that lowers it most, then exchanges inside a group as long as one helps (as in PAM).
    Datasets whose unperturbed AUROC is above ``saturated`` are not chosen unless their group has no others.

    Args:
        profiles: Complete profiles.
        labels: Group of every dataset, [d].
        count: Number of datasets to choose; a third of the datasets if not given, and at least one per group.
        saturated: Highest AUROC of a dataset worth choosing; ignored if only ratios are known.

    Differs from the paper: it chooses by hand, by the same wishes and by size; ours is an algorithm that anybody can run again.

    References:
        Kaufman and Rousseeuw, *Finding Groups in Data*, 1990 (PAM).
    """
    codes = _codes(profiles, labels)
    groups = int(codes.max()) + 1
    count = max(groups, round(len(codes) / 3)) if count is None else count
    if not groups <= count <= len(codes):
        raise DataError(
            f"{count} representatives of {groups} groups were asked for, but {groups} to {len(codes)} are possible: "
            "at least one per group"
        )
    apart = distances(profiles)
    allowed = _allowed(profiles, codes, saturated)
    chosen: list[int] = []
    for group in range(groups):
        own = np.flatnonzero(codes == group)
        candidates = [index for index in own if allowed[index]]
        chosen.append(int(min(candidates, key=lambda index: (apart[index, own].sum(), index))))
    while len(chosen) < count:
        left = [index for index in np.flatnonzero(allowed) if index not in chosen]
        if not left:
            break
        chosen.append(int(min(left, key=lambda index: (_cost(apart, codes, [*chosen, int(index)]), index))))
    chosen = _exchanged(apart, codes, chosen, allowed)
    chosen.sort(key=lambda index: codes[index])
    names = tuple(profiles.datasets[index] for index in chosen)
    over = () if profiles.original is None else np.flatnonzero(profiles.original > saturated)
    worn = tuple(profiles.datasets[index] for index in chosen if index in over)
    return Subset(names, _cost(apart, codes, chosen), worn)


def _codes(profiles: Profiles, labels: Sequence[Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
    if len(labels) != len(profiles.datasets):
        raise DataError(f"there are {len(labels)} labels, but {len(profiles.datasets)} datasets")
    return np.asarray(np.unique([str(label) for label in labels], return_inverse=True)[1], dtype=np.int64)


def _allowed(profiles: Profiles, codes: Any, saturated: float) -> Any:
    """Whom to choose from: the unsaturated, and of a group without such its least saturated one."""
    if profiles.original is None:
        return np.ones(len(codes), dtype=bool)
    allowed = profiles.original <= saturated
    for group in np.unique(codes[~np.isin(codes, codes[allowed])]):
        own = np.flatnonzero(codes == group)
        allowed[own[profiles.original[own].argmin()]] = True
    return allowed


def _cost(apart: Array, codes: Any, chosen: Sequence[int]) -> float:
    foreign = codes[:, None] != codes[chosen][None, :]
    near = np.where(foreign, np.inf, apart[:, chosen]).min(1)
    return float(np.where(np.isinf(near), apart[:, chosen].min(1), near).mean())


def _exchanged(apart: Array, codes: Any, chosen: list[int], allowed: Any) -> list[int]:
    """Swap a chosen dataset for another of its group until no swap helps."""
    best = _cost(apart, codes, chosen)
    improved = True
    while improved:
        improved = False
        for index, member in enumerate(chosen):
            for other in np.flatnonzero(allowed & (codes == codes[member])):
                if other in chosen:
                    continue
                tried = [*chosen[:index], int(other), *chosen[index + 1 :]]
                cost = _cost(apart, codes, tried)
                if cost < best - 1e-12:
                    chosen, best, improved = tried, cost, True
                    break
    return chosen
