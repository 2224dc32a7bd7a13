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


class RatioErrors(NamedTuple):
    """Standard error of every log2 ratio and its degrees of freedom, [d, p] each; NaN where a cell has a single run."""

    error: Array
    freedom: Array


def ratio_errors(profiles: Profiles) -> RatioErrors:
    r"""Standard errors of log2 ratios of means, with the variance of the unperturbed runs.

    To first order the deviation of :math:`\log_2(\bar a_j / \bar a_0)` is
    :math:`(\delta_j / \bar a_j - \delta_0 / \bar a_0) / \ln 2`. Where runs are paired the two deviations are those of one run,
    with :math:`n - 1` degrees of freedom; otherwise their variances add up, with the degrees of freedom of Welch and
    Satterthwaite.

    References:
        Welch, *The Generalization of "Student's" Problem*, Biometrika 1947.
    """
    if profiles.runs is None or profiles.paired is None:
        raise DataError("these profiles hold means only; an error needs the AUROC of every run")
    parts = _deviations(profiles)
    counts = (~np.isnan(parts)).sum(2)
    several = np.where(counts > 1, counts, np.nan)
    with np.errstate(invalid="ignore"):
        variance = np.nansum(np.square(parts), axis=2) / (several - 1) / several
        both = parts[:, 1:] - parts[:, :1]
        paired = np.nansum(np.square(both), axis=2) / (several[:, 1:] - 1) / several[:, 1:]
        total = variance[:, 1:] + variance[:, :1]
        welch = np.square(total) / (
            np.square(variance[:, 1:]) / (several[:, 1:] - 1) + np.square(variance[:, :1]) / (several[:, :1] - 1)
        )
    together = profiles.paired[:, None]
    fewest = np.fmin(several[:, 1:], several[:, :1]) - 1
    freedom = np.where(together, several[:, 1:] - 1, np.where(np.isfinite(welch), welch, fewest))
    return RatioErrors(np.sqrt(np.where(together, paired, total)), freedom)


def _deviations(profiles: Profiles) -> Array:
    """Relative deviations of runs from the mean of their cell, in units of log2, [d, 1 + p, r]."""
    assert profiles.runs is not None
    counts = (~np.isnan(profiles.runs)).sum(2, keepdims=True)
    means = np.nansum(profiles.runs, axis=2, keepdims=True) / np.where(counts > 0, counts, np.nan)
    return np.asarray((profiles.runs / means - 1) / np.log(2))


def student_draws(profiles: Profiles, draws: int, generator: np.random.Generator) -> Array:
    r"""Profiles that the runs do not rule out, [draws, d, p]: the means plus a multivariate t of their errors.

    A percentile bootstrap of three runs is far too sure of itself; the t with :math:`n - 1` degrees of freedom is not. Where
    runs are paired, cells vary together as the runs do, so that differences between cells are as sure as they are. A cell with
    a single run has the largest error of the others.

    References:
        Gelman et al., *Bayesian Data Analysis*, 2013, Section 3.6.
    """
    parts = _deviations(profiles)
    found = np.broadcast_to(profiles.values, (draws, *profiles.values.shape)).copy()
    assert profiles.paired is not None
    for i, own in enumerate(parts):
        there = ~np.isnan(own)
        counts = np.maximum(there.sum(1), 1)
        # equal seeds share their random numbers, which makes equal weights of equal runs
        shape = (draws, 1, own.shape[1]) if profiles.paired[i] else (draws, *own.shape)
        normal = generator.standard_normal(shape)
        scale = np.where(counts > 1, 1 / np.sqrt(counts * np.maximum(counts - 1, 1)), 0.0)
        freedom = np.maximum(counts - 1, 1)
        chi = generator.chisquare(freedom.min(), (draws, 1)) / freedom.min()
        cells = (np.where(there, own, 0.0)[None] * normal).sum(2) * scale / np.sqrt(chi)
        single = counts < 2
        if single.any() and not single.all():
            largest = np.sqrt((np.nansum(np.square(own), axis=1) * np.square(scale)).max())
            cells[:, single] = largest * generator.standard_normal((draws, int(single.sum()))) / np.sqrt(chi)
        found[:, i] += cells[:, 1:] - cells[:, :1]
    if profiles.original is not None:  # no AUROC is above 1
        found = np.minimum(found, np.maximum(-np.log2(profiles.original)[None, :, None], profiles.values))
    return np.asarray(found)


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
