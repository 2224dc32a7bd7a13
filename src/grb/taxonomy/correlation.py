"""Which perturbations, and which models, tell the same story."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from grb.errors import DataError
from grb.taxonomy.profile import Array, Profiles, to_list

Of = Literal["log2", "auroc"]


class Correlation(NamedTuple):
    """Pearson's r of every pair of names, [k, k]; NaN where one of the two does not vary. ``cells`` numbers it rests on."""

    names: tuple[str, ...]
    r: Array
    cells: int

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values for JSON; None stands for NaN."""
        return {"names": list(self.names), "r": to_list(self.r), "cells": self.cells}


def perturbation_correlation(profiles: Profiles) -> Correlation:
    """Pearson correlation of perturbations over datasets, on log2 ratios (Figure B.2).

    Datasets with a missing cell are left out.

    Differs from GTaxoGym: it divides by n - 1 what was scaled with n, so that its values are n / (n - 1) times ours
    (transductive RandFtrs and NodeDeg: .603 there, .579 here).
    """
    whole = profiles.values[~np.isnan(profiles.values).any(1)]
    if len(whole) < 3:
        raise DataError(f"correlations need at least 3 datasets without missing cells, got {len(whole)}")
    if len(profiles.perturbations) < 2:
        raise DataError(f"correlations need two perturbations, but there is only '{profiles.perturbations[0]}'")
    return Correlation(profiles.perturbations, _pearson(whole.T), len(whole))


def model_correlation(models: Mapping[str, Profiles], *, of: Of = "log2") -> Correlation:
    """Pearson correlation of models over all cells that every model has (Figure 5).

    Args:
        models: Profiles of the models by name, at least two.
        of: Correlate ``log2`` ratios, which are what the clustering sees, or ``auroc`` with the unperturbed scores, as
            the paper does. Raw scores differ mostly because datasets are of different difficulty: their r is higher.
    """
    if len(models) < 2:
        raise DataError(f"a correlation of models needs at least two models, got {len(models)}")
    every = list(models.values())
    datasets = [name for name in every[0].datasets if all(name in own.datasets for own in every)]
    names = [name for name in every[0].perturbations if all(name in own.perturbations for own in every)]
    if not datasets or not names:
        raise DataError(f"the models {', '.join(models)} share no {'perturbation' if datasets else 'dataset'}")
    tables = []
    for name, own in models.items():
        shared = own.select(datasets, names)
        if of == "log2":
            tables.append(shared.values.ravel())
        elif shared.original is None:
            raise DataError(f"the profiles of '{name}' hold ratios only; correlate log2 ratios instead")
        else:
            tables.append(np.column_stack([shared.original, shared.original[:, None] * shared.ratio]).ravel())
    cells = np.stack(tables)
    cells = cells[:, ~np.isnan(cells).any(0)]
    if cells.shape[1] < 3:
        raise DataError(f"the models {', '.join(models)} share {cells.shape[1]} cells, but at least 3 are needed")
    return Correlation(tuple(models), _pearson(cells), cells.shape[1])


def _pearson(rows: Array) -> Array:
    """Of every pair of rows, [k, n] to [k, k]."""
    centred = rows - rows.mean(1, keepdims=True)
    sizes = np.linalg.norm(centred, axis=1)
    # what floating point leaves of a constant row is no variance
    flat = sizes <= 1e-12 * np.maximum(1.0, np.abs(rows).max(1)) * np.sqrt(rows.shape[1])
    units = centred / np.where(flat, np.nan, sizes)[:, None]
    r = np.clip(units @ units.T, -1, 1)
    np.fill_diagonal(r, np.where(flat, np.nan, 1.0))
    return np.asarray(r)
