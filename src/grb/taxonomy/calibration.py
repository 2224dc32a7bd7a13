"""How probable a group is: probabilities fitted by leaving published datasets out, and the check that they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grb.errors import DataError
from grb.taxonomy.profile import Array, Profiles
from grb.taxonomy.reference import Reference, published

WIDTHS = np.geomspace(0.015, 0.6, 30)
"""Widths of the kernel that are tried: root mean square distances, in log2 ratios, over which groups change."""
DOUBTS = (0.02, 0.04, 0.07, 0.1, 0.15, 0.2)
"""Fractions of a probability that are tried for groups that no neighbour speaks for."""
NOISE = (0.03, 0.06, 0.12)
"""Standard errors of log2 ratios of the noisy rows."""
COPIES = 4
EDGES = (0.0, 0.5, 0.65, 0.8, 1.0)
"""Bins of the reliability curve."""
OWN, MODELS, NOISY = "own row", "other models", "noisy rows"
SETTINGS = (OWN, MODELS, NOISY)
"""What is placed while a dataset's own row is left out."""
FENCE = 3.0


def log_kernels(row: Array, table: Array, width: Array | float, error: Array | float = 0.0) -> Array:
    r"""Logarithm of the likelihood of a profile for every published row, up to a constant, [..., d].

    .. math:: -\tfrac12 \sum_j \frac{(x_j - t_{ij})^2}{w^2 + \sigma_j^2}

    over the perturbations j that the profile has.

    Args:
        row: The profile, [p]; NaN where it is missing.
        table: Published profiles, [d, p].
        width: :math:`w`, a number or [k].
        error: Standard errors :math:`\sigma_j` of the profile, a number or [p].
    """
    there = ~np.isnan(row)
    spread = np.broadcast_to(np.square(error), row.shape)[there]
    scale = np.square(np.asarray(width))[..., None] + spread
    return np.asarray(-0.5 * (1 / scale) @ np.square(row[there] - table[:, there]).T)


def group_probabilities(logs: Array, members: Array, doubt: float) -> Array:
    """Probabilities of groups from the kernels of their members, [..., g].

    Args:
        logs: Log kernels, [..., d]; minus infinity for a row that is left out.
        members: 1 where a row belongs to a group, [d, g].
        doubt: Fraction that is shared out among all groups.
    """
    weights = np.exp(logs - logs.max(-1, keepdims=True)) @ members
    found = weights / weights.sum(-1, keepdims=True)
    return np.asarray((1 - doubt) * found + doubt / members.shape[1])


class Calibration(NamedTuple):
    """What was fitted: the width of the kernel, the doubt, and the distance beyond which a dataset fits nowhere.

    Args:
        width: Width of the kernel, in log2 ratios.
        doubt: Fraction of the probability that is shared out among all groups.
        usual: Upper quartile of the distances of published datasets to their nearest.
        fence: Distance to the nearest published dataset beyond which a dataset fits nowhere.
    """

    width: float
    doubt: float
    usual: float
    fence: float


class Case(NamedTuple):
    """A profile whose group is known, to be placed without its own row."""

    setting: str
    dataset: int
    row: Array
    error: float


class Bin(NamedTuple):
    """One bin of a reliability curve: probabilities stated between two bounds, and how many of the groups were right."""

    low: float
    high: float
    stated: float
    right: int
    cases: int


@dataclass(frozen=True)
class Reliability:
    """How often groups are right that are stated with some probability.

    Args:
        setting: What was placed, one of :data:`SETTINGS`.
        bins: Bins of stated probabilities.
        nowhere: Number of placements that were said to fit nowhere, so that no group was stated.
        count: Number of all placements.
    """

    setting: str
    bins: tuple[Bin, ...]
    nowhere: int
    count: int

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        bins = [each._asdict() for each in self.bins]
        return {"setting": self.setting, "bins": bins, "nowhere": self.nowhere, "count": self.count}


def nearest_distances(table: Array) -> Array:
    """Euclidean distance of every row to its nearest other, [d]."""
    apart = np.sqrt(np.square(table[:, None] - table[None]).sum(2))
    return np.asarray((apart + np.diag(np.full(len(table), np.inf))).min(1))


def fence(table: Array) -> tuple[float, float]:
    """The upper quartile of the distances of rows to their nearest, and Tukey's outer fence above it: Q3 + 3 (Q3 - Q1).

    References:
        Tukey, *Exploratory Data Analysis*, 1977.
    """
    first, third = np.quantile(nearest_distances(table), [0.25, 0.75])
    return float(third), float(third + FENCE * (third - first))


def calibrate(table: Profiles, reference: Reference, *, model: str = "GCN", seed: int = 0) -> Calibration:
    """Fit width and doubt by leaving every published dataset out, and find the distance beyond which nothing fits.

    The fit maximises the likelihood of the known groups, summed over three settings that weigh the same: the dataset's own row,
    its rows by other models, and its row with noise.

    Args:
        table: Published rows and columns to compare with, without missing cells.
        reference: The published taxonomy they are from.
        model: Model of these rows.
        seed: Random seed of the noise.
    """
    usual, far = fence(table.values)
    width, doubt = _fitted(reference, model, table.datasets, table.perturbations, seed)
    return Calibration(width, doubt, usual, far)


@lru_cache(maxsize=256)
def _fitted(
    reference: Reference, model: str, datasets: tuple[str, ...], perturbations: tuple[str, ...], seed: int
) -> tuple[float, float]:
    found = _Tried.of(reference, model, datasets, perturbations, seed)
    return found.best(np.ones(len(found.cases), dtype=bool))


@dataclass(frozen=True, eq=False)
class _Tried:
    """Probabilities of the true group of every case, for all widths and doubts."""

    cases: list[Case]
    probabilities: Array  # [cases, widths, groups], without doubt
    truth: NDArray[np.int64]
    groups: tuple[str, ...]
    distance: Array

    @classmethod
    def of(
        cls, known: Reference, model: str, datasets: Sequence[str], perturbations: Sequence[str], seed: int
    ) -> _Tried:
        table = known.models[model].select(datasets, perturbations).values
        groups = tuple(sorted({known.groups[name] for name in datasets}))
        truth = np.array([groups.index(known.groups[name]) for name in datasets])
        members = np.eye(len(groups))[truth]
        cases = list(_cases(known, model, datasets, perturbations, seed))
        found, distance = [], []
        for case in cases:
            logs = log_kernels(case.row, table, WIDTHS, case.error)
            logs[:, case.dataset] = -np.inf
            found.append(group_probabilities(logs, members, 0.0))
            distance.append(_excess(case, table))
        return cls(cases, np.array(found), truth[[case.dataset for case in cases]], groups, np.array(distance))

    def best(self, chosen: NDArray[np.bool_]) -> tuple[float, float]:
        """Width and doubt with the largest likelihood over some cases."""
        true = self.probabilities[np.arange(len(self.truth)), :, self.truth]
        weight = np.zeros(len(self.cases))
        for setting in SETTINGS:
            own = np.array([case.setting == setting for case in self.cases]) & chosen
            weight[own] = 1 / max(own.sum(), 1)
        score = np.array(
            [weight @ np.log((1 - doubt) * true + doubt / len(self.groups)) for doubt in DOUBTS]
        )  # [doubts, widths]
        doubt, width = np.unravel_index(int(score.argmax()), score.shape)
        return float(WIDTHS[width]), DOUBTS[int(doubt)]


def _excess(case: Case, table: Array) -> float:
    """How far the nearest row is beyond the fence of the others, noise taken off; above 0 it fits nowhere."""
    others = np.delete(table, case.dataset, axis=0)
    there = ~np.isnan(case.row)
    squares = np.square(others[:, there] - case.row[there]).sum(1).min() - there.sum() * case.error**2
    return float(np.sqrt(max(squares, 0.0)) - fence(others[:, there])[1])


def _cases(
    known: Reference, model: str, datasets: Sequence[str], perturbations: Sequence[str], seed: int
) -> list[Case]:
    table = known.models[model].select(datasets, perturbations).values
    generator = np.random.default_rng(seed)
    cases = [Case(OWN, i, row, 0.0) for i, row in enumerate(table)]
    for name, own in known.models.items():
        if name != model:
            rows = own.select(datasets, [each for each in perturbations if each in own.perturbations]).values
            cases += [Case(MODELS, i, row, 0.0) for i, row in enumerate(rows)]
    for error in NOISE:
        for _ in range(COPIES):
            rows = table + error * generator.standard_normal(table.shape)
            cases += [Case(NOISY, i, row, error) for i, row in enumerate(rows)]
    return cases


def reliability(
    reference: str | Reference, *, model: str = "GCN", ignore: Sequence[str] = ("FiedlerFrag",), seed: int = 0
) -> list[Reliability]:
    """Place every published dataset without its own row, and count how often the stated group is right.

    Width and doubt are fitted without the dataset that is placed, so that nothing is checked on what it was fitted to.

    Args:
        reference: The published taxonomy.
        model: Model of the rows to compare with.
        ignore: Perturbations that are not compared.
        seed: Random seed of the noise.

    Returns:
        One for every setting that there is; a taxonomy of one model has no rows of others.

    References:
        Niculescu-Mizil and Caruana, *Predicting Good Probabilities with Supervised Learning*, ICML 2005.
    """
    known = published(reference) if isinstance(reference, str) else reference
    if model not in known.models:
        raise DataError(f"nobody published {model} on the {known.name} datasets; there are {', '.join(known.models)}")
    own = known.models[model]
    columns = [
        name
        for name, column in zip(own.perturbations, own.values.T)
        if name not in ignore and not np.isnan(column).any()
    ]
    tried = _Tried.of(known, model, own.datasets, tuple(columns), seed)
    stated, right = np.zeros(len(tried.cases)), np.zeros(len(tried.cases), dtype=bool)
    owner = np.array([case.dataset for case in tried.cases])
    for i in range(len(own.datasets)):
        width, doubt = tried.best(owner != i)
        position = int(np.argmin(np.abs(WIDTHS - width)))
        for k in np.flatnonzero(owner == i):
            found = (1 - doubt) * tried.probabilities[k, position] + doubt / len(tried.groups)
            stated[k], right[k] = found.max(), found.argmax() == tried.truth[k]
    settings = np.array([case.setting for case in tried.cases])
    return [
        _binned(
            setting, stated[settings == setting], right[settings == setting], tried.distance[settings == setting] > 0
        )
        for setting in SETTINGS
        if (settings == setting).any()
    ]


def _binned(setting: str, stated: Array, right: NDArray[np.bool_], nowhere: NDArray[np.bool_]) -> Reliability:
    bins = []
    for low, high in zip(EDGES, EDGES[1:]):
        own = ~nowhere & (stated >= low) & ((stated < high) | (high == 1))
        if own.any():
            bins.append(Bin(low, high, float(stated[own].mean()), int(right[own].sum()), int(own.sum())))
    return Reliability(setting, tuple(bins), int(nowhere.sum()), len(stated))


def as_mapping(groups: Sequence[str], values: Array) -> Mapping[str, float]:
    """Probabilities by group, the largest first."""
    return {groups[k]: float(values[k]) for k in np.argsort(-values, kind="stable")}
