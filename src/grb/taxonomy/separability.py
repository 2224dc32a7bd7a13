"""Whether a perturbation changes anything beyond chance: permutation tests over runs, corrected for their number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grb.errors import DataError
from grb.taxonomy.profile import Array, Profiles

ALPHA = 0.05
# above this number of arrangements they are drawn at random instead of listed
LISTED = 2**14


class Separability(NamedTuple):
    """How sure it is that a perturbation changes the AUROC of a dataset.

    Args:
        dataset: Name of the dataset.
        perturbation: Name of the perturbation.
        difference: Mean AUROC under the perturbation minus that of the unperturbed dataset.
        p: Two-sided p-value of the permutation test.
        holm: The same, corrected for all perturbations of the dataset.
        runs: Number of runs under the perturbation.
        paired: Whether runs with the same seed were compared.
    """

    dataset: str
    perturbation: str
    difference: float
    p: float
    holm: float
    runs: int
    paired: bool

    @property
    def significant(self) -> bool:
        """Whether the corrected p-value is below 5 %."""
        return self.holm < ALPHA


def separability(profiles: Profiles, *, draws: int = 9999, seed: int = 0) -> list[Separability]:
    r"""Test every perturbation of every dataset against the unperturbed runs.

    Runs with the same seed share split and weights: where a dataset is paired, the signs of their differences are flipped in
    all :math:`2^n` ways; otherwise runs change sides between the two samples. Of the arrangements, drawn at random where there
    are many, p is the fraction with a mean difference as large as the one found. Holm's correction is for all perturbations of
    one dataset. With n paired runs no p is below :math:`2^{1-n}`: three runs separate nothing, thirteen perturbations need ten.

    Args:
        profiles: Profiles with runs.
        draws: Number of arrangements that are drawn where they are too many to list.
        seed: Random seed of these draws.

    References:
        Coupette et al., *No Metric to Rule Them All: Toward Principled Evaluations of Graph-Learning Datasets*, ICML 2025
        (performance separability; Bonferroni there, Holm here).
        Holm, *A Simple Sequentially Rejective Multiple Test Procedure*, Scandinavian Journal of Statistics 1979.
    """
    if profiles.runs is None or profiles.paired is None:
        raise DataError("these profiles hold means only; a test needs the AUROC of every run")
    generator = np.random.default_rng(seed)
    found = []
    for i, dataset in enumerate(profiles.datasets):
        first = profiles.runs[i, 0]
        tested = []
        for j, name in enumerate(profiles.perturbations):
            other = profiles.runs[i, 1 + j]
            paired = bool(profiles.paired[i])
            a, b = other[~np.isnan(other)], first[~np.isnan(first)]
            if not len(a) or not len(b):
                continue
            p = paired_p(a - b, draws, generator) if paired else unpaired_p(a, b, draws, generator)
            tested.append((name, float(a.mean() - b.mean()), p, len(a), paired))
        corrected = holm([each[2] for each in tested])
        found += [
            Separability(dataset, name, difference, p, corrected[k], runs, paired)
            for k, (name, difference, p, runs, paired) in enumerate(tested)
        ]
    return found


def paired_p(differences: Array, draws: int, generator: np.random.Generator) -> float:
    """Two-sided p-value of a sign-flip test of the mean; exact if there are few differences.

    >>> paired_p(np.array([0.1, 0.2, 0.3]), 99, np.random.default_rng(0))
    0.25
    """
    n = len(differences)
    if 2**n <= LISTED:
        signs = 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        return _fraction(np.abs(signs @ differences), abs(float(differences.sum())), exact=True)
    signs = generator.choice([-1.0, 1.0], size=(draws, n))
    return _fraction(np.abs(signs @ differences), abs(float(differences.sum())), exact=False)


def unpaired_p(first: Array, second: Array, draws: int, generator: np.random.Generator) -> float:
    """Two-sided p-value of a permutation test of the difference of two means; exact if there are few runs."""
    from itertools import combinations
    from math import comb

    values, n, m = np.concatenate([first, second]), len(first), len(second)
    total, observed = values.sum(), abs(float(first.mean() - second.mean()))
    if comb(n + m, n) <= LISTED:
        sums = np.array([values[list(chosen)].sum() for chosen in combinations(range(n + m), n)])
        return _fraction(np.abs(sums / n - (total - sums) / m), observed, exact=True)
    order = generator.permuted(np.tile(values, (draws, 1)), axis=1)
    sums = order[:, :n].sum(1)
    return _fraction(np.abs(sums / n - (total - sums) / m), observed, exact=False)


def _fraction(arranged: Array, observed: float, *, exact: bool) -> float:
    # sums of the same numbers in another order differ by rounding
    hits: NDArray[np.bool_] = arranged >= observed - 1e-12 * max(observed, 1.0)
    return float(hits.mean()) if exact else float((1 + hits.sum()) / (1 + len(arranged)))


def holm(values: Sequence[float]) -> list[float]:
    """Holm's corrected p-values.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(values, kind="stable")
    count = len(values)
    stepped: Any = np.maximum.accumulate([(count - k) * values[i] for k, i in enumerate(order)]) if count else []
    corrected = [0.0] * count
    for k, i in enumerate(order):
        corrected[i] = min(float(stepped[k]), 1.0)
    return corrected
