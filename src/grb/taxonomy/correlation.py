"""Which perturbations, and which models, tell the same story."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from grb.errors import DataError
from grb.taxonomy.profile import Array, Profiles, to_list

Of = Literal["log2", "log2-auroc", "figure-5"]
NOT_IN_FIGURE_5 = ("PCQM4Mv2-subset", "PPI", "ogbg-molpcba")
"""Datasets that the paper's Figure 5 leaves out; the other 21 of its 24 inductive ones are in."""
CELLS_NOT_IN_FIGURE_5 = (
    ("D&D", "FullyConn"),
    ("MalNetTiny", "FullyConn"),
    ("REDDIT-BINARY", "FullyConn"),
    ("REDDIT-MULTI-5K", "FullyConn"),
    ("MNIST", "Frag-k3"),
)
"""Cells that it leaves out for all models."""


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
        of: Correlate ``log2`` ratios, which are what the clustering sees; ``log2-auroc``, the logarithms of the AUROCs
            themselves with those of the unperturbed datasets, as the paper's code does; or ``figure-5``, the same on the
            datasets and cells of the paper's figure (:data:`NOT_IN_FIGURE_5`). AUROCs differ mostly because datasets are of
            different difficulty, so that their r is higher than that of profiles.

    References:
        Liu et al., *Taxonomy of Benchmarks in Graph Representation Learning*, LoG 2022, Figure 5.
    """
    if len(models) < 2:
        raise DataError(f"a correlation of models needs at least two models, got {len(models)}")
    every = list(models.values())
    datasets = [name for name in every[0].datasets if all(name in own.datasets for own in every)]
    if of == "figure-5":
        datasets = [name for name in datasets if name not in NOT_IN_FIGURE_5]
    names = [name for name in every[0].perturbations if all(name in own.perturbations for own in every)]
    if not datasets or not names:
        raise DataError(f"the models {', '.join(models)} share no {'perturbation' if datasets else 'dataset'}")
    cells = np.stack([_numbers(name, own.select(datasets, names), of).ravel() for name, own in models.items()])
    cells = cells[:, ~np.isnan(cells).any(0)]
    if cells.shape[1] < 3:
        raise DataError(f"the models {', '.join(models)} share {cells.shape[1]} cells, but at least 3 are needed")
    return Correlation(tuple(models), _pearson(cells), cells.shape[1])


def _numbers(model: str, own: Profiles, of: Of) -> Array:
    """What is correlated, [d, p] or with the unperturbed datasets [d, 1 + p]."""
    if of == "log2":
        return own.values
    if own.original is None:
        raise DataError(f"the profiles of '{model}' hold ratios only; correlate log2 ratios instead")
    table = np.log2(own.original)[:, None] + np.column_stack([np.zeros(len(own.datasets)), own.values])
    if of == "figure-5":
        for dataset, name in CELLS_NOT_IN_FIGURE_5:
            if dataset in own.datasets and name in own.perturbations:
                table[own.datasets.index(dataset), 1 + own.perturbations.index(name)] = np.nan
    return np.asarray(table)


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
