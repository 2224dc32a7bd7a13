"""How sure a profile is: bootstrap over runs, and the paper's study of seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from grb.errors import DataError
from grb.taxonomy.profile import Array, Profiles


class Spread(NamedTuple):
    """Uncertainty of every cell of a sensitivity matrix: standard error and the ends of an interval, [d, p] each."""

    error: Array
    low: Array
    high: Array


def resample(profiles: Profiles, draws: int, generator: np.random.Generator) -> Array:
    """Sensitivity matrices from runs drawn with replacement, [draws, d, p].

    A paired dataset draws its seeds, so that a lucky split counts in every cell alike; otherwise every cell draws its own runs.
    """
    if profiles.runs is None or profiles.paired is None:
        raise DataError("these profiles hold means only; a bootstrap needs the AUROC of every run")
    # valid runs first; the sort is stable, so those of one seed stay at one position where the dataset is paired
    order = np.argsort(np.isnan(profiles.runs), axis=2, kind="stable")
    runs = np.take_along_axis(profiles.runs, order, axis=2)
    counts = (~np.isnan(runs)).sum(2)
    means = np.empty((draws, *counts.shape))
    r = runs.shape[2]
    for i in range(len(profiles.datasets)):
        shape = (draws, 1 if profiles.paired[i] else counts.shape[1], r)
        picks = (generator.random(shape) * counts[i][None, :, None]).astype(np.int64)
        drawn = np.take_along_axis(np.broadcast_to(runs[i], (draws, *runs[i].shape)), picks, axis=2)
        drawn = np.where(np.arange(r) < counts[i][None, :, None], drawn, 0.0)
        means[:, i] = drawn.sum(2) / np.where(counts[i] > 0, counts[i], np.nan)
    return np.asarray(np.log2(means[:, :, 1:] / means[:, :, :1]))


def spread(profiles: Profiles, draws: int = 1000, level: float = 0.95, *, generator: np.random.Generator) -> Spread:
    """Bootstrap standard error and percentile interval of every cell.

    References:
        Efron and Tibshirani, *An Introduction to the Bootstrap*, 1993.
    """
    if not 0 < level < 1:
        raise DataError(f"the level of an interval is {level}, but it must lie between 0 and 1")
    if draws < 2:
        raise DataError(f"a bootstrap of {draws} draws has no spread; at least 2 are needed")
    matrices = resample(profiles, draws, generator)
    low, high = np.quantile(matrices, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Spread(matrices.std(axis=0, ddof=1), low, high)


class SeedSpread(NamedTuple):
    """How much the AUROC of one cell varies over seeds: one row of the paper's Tables E.1 and E.2."""

    dataset: str
    perturbation: str
    runs: int
    mean: float
    std: float
    percent: float


def seed_study(profiles: Profiles, perturbations: Sequence[str] | None = None) -> list[SeedSpread]:
    """Mean, population deviation and 100 std / mean over the runs of every cell.

    Args:
        profiles: Profiles with runs.
        perturbations: Perturbations to study; the Frag-k among them if not given, as in the paper, since their seeds decide
            the fragments.

    References:
        Liu et al., *Taxonomy of Benchmarks in Graph Representation Learning*, LoG 2022, Appendix E.
    """
    if profiles.runs is None:
        raise DataError("these profiles hold means only; a seed study needs the AUROC of every run")
    if perturbations is None:
        perturbations = [name for name in profiles.perturbations if name.lower().startswith("frag")]
    chosen = profiles.select(perturbations=perturbations) if perturbations else None
    if chosen is None or chosen.runs is None:
        return []
    found = []
    for i, dataset in enumerate(chosen.datasets):
        for j, name in enumerate(chosen.perturbations):
            own = chosen.runs[i, 1 + j]
            own = own[~np.isnan(own)]
            if len(own) > 1:
                mean, std = float(own.mean()), float(own.std())
                found.append(SeedSpread(dataset, name, len(own), mean, std, 100 * std / mean))
    return found
