"""Principal components of profiles or of graph properties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grb.errors import DataError
from grb.taxonomy.cluster import check_comparable
from grb.taxonomy.profile import Array, Profiles, to_list


@dataclass(frozen=True, eq=False)
class Components:
    """Principal components, the one with most variance first.

    Args:
        rows: What was observed (datasets), in the order of the scores.
        columns: What it was described by (perturbations), in the order of the loadings.
        scores: Coordinates of the rows, [d, c].
        loadings: Weight of every column in every component, unit vectors, [c, p]; the largest weight is positive.
        explained: Fraction of the variance, [c], adding up to 1.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    scores: Array
    loadings: Array
    explained: Array

    @property
    def cumulative(self) -> Array:
        """Fraction of the variance that the first components explain together, [c]."""
        return np.asarray(np.cumsum(self.explained))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values for JSON."""
        return {
            "explained": to_list(self.explained),
            "cumulative": to_list(self.cumulative),
            "loadings": {name: to_list(self.loadings[:, j]) for j, name in enumerate(self.columns)},
            "scores": {name: to_list(self.scores[i]) for i, name in enumerate(self.rows)},
        }


def principal_components(
    rows: Sequence[str], columns: Sequence[str], table: Array, *, scaled: bool = False
) -> Components:
    """Principal components of a table by singular values, centred.

    Args:
        rows: Names of the observations, at least two.
        columns: Names of the variables.
        table: Finite numbers, [d, p].
        scaled: Divide every column by its deviation first (needed where columns have different units). A column without
            any variance stays zero.

    Returns:
        min(d - 1, p) components.
    """
    table = np.asarray(table, dtype=np.float64)
    if table.shape != (len(rows), len(columns)):
        raise DataError(
            f"the table has shape {list(table.shape)}, but {len(rows)} rows and {len(columns)} columns are named"
        )
    if len(rows) < 2:
        raise DataError(f"principal components need at least two rows, got {len(rows)}")
    if not np.isfinite(table).all():
        raise DataError("principal components need finite numbers, but a cell is missing or infinite")
    centred = table - table.mean(0)
    if scaled:
        deviation = centred.std(0, ddof=1)
        centred = centred / np.where(deviation > 0, deviation, 1)
    left, sizes, right = np.linalg.svd(centred, full_matrices=False)
    count = min(len(rows) - 1, len(columns))
    left, sizes, right = left[:, :count], sizes[:count], right[:count]
    variances = sizes**2
    if variances.sum() <= 1e-24 * max(1.0, float((table**2).sum())):
        raise DataError("all rows are the same, so there is no variance to find components of")
    signs = np.sign(right[np.arange(count), np.abs(right).argmax(1)])
    return Components(
        tuple(rows), tuple(columns), left * sizes * signs, right * signs[:, None], variances / variances.sum()
    )


def profile_components(profiles: Profiles) -> Components:
    """Principal components of complete profiles: centred, not scaled, as all entries are log2 ratios (Figure 3)."""
    check_comparable(profiles, "PCA")
    return principal_components(profiles.datasets, profiles.perturbations, profiles.values)
