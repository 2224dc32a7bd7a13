"""What to do about missing cells of a sensitivity matrix: one declared rule, and a note on what it did."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from grb.errors import DataError, UnknownName
from grb.taxonomy.profile import Profiles


def drop_perturbations(profiles: Profiles) -> Profiles:
    """Leave out every perturbation with a missing cell: the paper's rule.

    GTaxoGym sets such a column to zero for the clustering, which leaves all distances as without it, and removes it for PCA.
    """
    gone = [name for name, bad in zip(profiles.perturbations, _holes(profiles, 0)) if bad]
    return _dropped(profiles, gone, "perturbations", "datasets")


def drop_datasets(profiles: Profiles) -> Profiles:
    """Leave out every dataset with a missing cell."""
    gone = [name for name, bad in zip(profiles.datasets, _holes(profiles, 1)) if bad]
    return _dropped(profiles, gone, "datasets", "perturbations")


def _holes(profiles: Profiles, axis: int) -> list[bool]:
    """Which columns (axis 0) or rows (axis 1) have a missing cell."""
    return [bool(any_) for any_ in np.asarray(np.isnan(profiles.values).any(axis))]


def _dropped(profiles: Profiles, gone: list[str], what: str, other: str) -> Profiles:
    if not gone:
        return profiles
    if len(gone) == len(getattr(profiles, what)):
        raise DataError(
            f"every one of the {len(gone)} {what} has a missing cell, so nothing is left to compare; "
            f"use another rule for missing cells: drop-{other} or mean"
        )
    kept = profiles.without(*gone)
    return replace(kept, notes=(*kept.notes, f"left out, because a cell is missing: {', '.join(gone)}"))


def fill_with_mean(profiles: Profiles) -> Profiles:
    """Give a missing cell the mean of its perturbation over the other datasets."""
    holes = np.isnan(profiles.values)
    if not holes.any():
        return profiles
    empty = [name for name, bad in zip(profiles.perturbations, np.asarray(holes.all(0))) if bad]
    kept = _dropped(profiles, empty, "perturbations", "datasets")
    holes = np.isnan(kept.values)
    values = np.where(holes, np.nanmean(kept.values, axis=0), kept.values)
    count = int(holes.sum())
    note = f"{count} missing cell{'s' if count > 1 else ''} filled with the mean of the perturbation"
    return replace(kept, values=values, runs=None, paired=None, notes=(*kept.notes, note))


MISSING: Mapping[str, Callable[[Profiles], Profiles]] = {
    "drop-perturbations": drop_perturbations,
    "drop-datasets": drop_datasets,
    "mean": fill_with_mean,
}
"""The rules for missing cells by name; the first is the paper's and the default."""


def complete(profiles: Profiles, rule: str = "drop-perturbations") -> Profiles:
    """Profiles without missing cells, by one of the rules of :data:`MISSING`; a note says what was done."""
    if rule not in MISSING:
        raise UnknownName("rule for missing cells", rule, MISSING, advice=f"Allowed: {', '.join(MISSING)}.")
    return MISSING[rule](profiles)
