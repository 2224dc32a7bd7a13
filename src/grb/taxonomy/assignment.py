"""Where a new dataset belongs among the published ones: its neighbours, its group or none, and what that means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grb.errors import DataError, UnknownName
from grb.taxonomy.calibration import Calibration, as_mapping, calibrate, group_probabilities, log_kernels
from grb.taxonomy.describe import MEANINGS, describe_profile, meaning
from grb.taxonomy.placement import APART, Mark, Neighbour, Placement
from grb.taxonomy.profile import FEATURES, STRUCTURE, Array, Profiles
from grb.taxonomy.reference import Reference, published
from grb.taxonomy.uncertainty import ratio_errors, student_draws

# neighbours that are named
SHOWN = 3
LEVEL = 0.95
TYPICAL_ERROR = 0.15
"""Standard deviation of the log2 ratio of a single run: the median over the ten datasets of ``docs/results``."""
IGNORED = ("FiedlerFrag",)
"""Published by another definition than the paper's, and so not comparable with results of ours."""


def assign(
    row: Mapping[str, float] | Profiles,
    reference: str | Reference = "inductive",
    *,
    dataset: str | None = None,
    errors: Mapping[str, float] | None = None,
    original: float | None = None,
    exclude: str | None = None,
    ignore: Sequence[str] = IGNORED,
    model: str = "GCN",
    draws: int = 1000,
    seed: int = 0,
) -> Placement:
    r"""Assign a dataset to a published group by its sensitivity profile, or say that it fits nowhere.

    Distances are Euclidean between log2 ratios, over the perturbations that both sides have. The probability of a group is

    .. math:: p_g = (1 - \lambda) \frac{\sum_{i \in g} k_i}{\sum_i k_i} + \frac{\lambda}{G}, \quad
              k_i = \exp\Big(-\tfrac12 \sum_j \frac{(x_j - t_{ij})^2}{w^2 + \sigma_j^2}\Big)

    with the standard errors :math:`\sigma_j` of the profile; width :math:`w` and doubt :math:`\lambda` are those under which
    published datasets, left out in turn, find back to their groups with the largest likelihood
    (:func:`grb.taxonomy.calibrate`). A dataset that, its noise taken off, is farther from the nearest published one than
    Tukey's outer fence of the published nearest distances fits nowhere, and no group is stated.

    Args:
        row: log2 of the AUROC under a perturbation over the unperturbed one, by perturbation; NaN or no entry if it is
            missing. Or profiles, of which the one called ``dataset`` is placed, with its runs if there are any.
        reference: The published taxonomy: ``inductive`` for collections of graphs, ``transductive`` for single ones.
        dataset: Name of the dataset; may be left out where there is only one.
        errors: Standard errors of the entries of ``row``.
        original: AUROC on the unperturbed dataset, for the sentences; taken from profiles if they have it.
        exclude: Published dataset to leave out: the dataset's own row, to see where it would be assigned without it.
        ignore: Perturbations that are not compared.
        model: Model of the published profiles.
        draws: Number of draws behind the intervals.
        seed: Random seed of the draws.

    References:
        Liu et al., *Taxonomy of Benchmarks in Graph Representation Learning*, LoG 2022.
        Tukey, *Exploratory Data Analysis*, 1977.

    >>> own = published("transductive").profiles.row("Actor")
    >>> found = assign(own, "transductive", exclude="Actor", draws=50)
    >>> found.nearest.dataset, found.group
    ('DzEu', 'T-1')
    """
    if draws < 1:
        raise DataError(f"intervals need at least one draw, got {draws}")
    known = published(reference) if isinstance(reference, str) else reference
    own = _One.of(row, dataset, errors, original)
    table, notes = _compared(own, known, model, exclude, ignore)
    columns = list(table.perturbations)
    values = np.array([own.values[name] for name in columns])
    error = own.standard_errors(columns)
    several = own.drawn(columns, draws, np.random.default_rng(seed))
    fitted = calibrate(table, known, model=model)
    neighbours = _neighbours(table, known, values, several)
    nearest = neighbours[0]
    # noise alone makes a distance: its expected part is taken off
    net = float(np.sqrt(max(nearest.distance**2 - float(np.square(error).sum()), 0.0)))
    probability = _probability(table, known, values, error, fitted) if net <= fitted.fence else {}
    group = next(iter(probability), None)
    labels = np.array([known.groups[name] for name in table.datasets])
    marks = _marks(table, values, several, labels == (group or nearest.group))
    ratios = {mark.perturbation: mark.ratio for mark in marks}
    drawn = None if several is None else dict(zip(columns, np.exp2(several).T))
    sentences = [
        _where(own.name, group, probability, neighbours, fitted),
        *([meaning(group, ratios, drawn)] if group in MEANINGS else []),
        *describe_profile(ratios, own.original, drawn),
        *_unlike(marks),
    ]
    notes += own.remarks()
    return Placement(
        own.name,
        known.name,
        model,
        group,
        probability,
        neighbours,
        marks,
        fitted,
        tuple(filter(None, sentences)),
        tuple(notes),
    )


@dataclass(frozen=True, eq=False)
class _One:
    """The profile of one dataset, however it was given."""

    name: str
    values: Mapping[str, float]
    errors: Mapping[str, float]
    original: float | None
    runs: Profiles | None = None
    notes: tuple[str, ...] = ()
    single_run: bool = False

    @classmethod
    def of(cls, row: Mapping[str, float] | Profiles, name: str | None, errors: Any, original: float | None) -> _One:
        if isinstance(row, Profiles):
            if name is None and len(row.datasets) > 1:
                raise DataError(f"the profiles are of {len(row.datasets)} datasets; say which one by dataset=...")
            one = row.select(datasets=[name or row.datasets[0]])
            score = original if original is not None or one.original is None else float(one.original[0])
            alone = one.single_run
            runs = one if one.runs is not None else None
            if runs is not None and (~np.isnan(runs.runs[0])).sum(1).max() < 2:  # type: ignore[index]
                runs, alone = None, True  # other datasets of the file have several runs, this one has not
            return cls(one.datasets[0], one.row(one.datasets[0]), {}, score, runs, one.notes, alone)
        values = {key: float(value) for key, value in row.items()}
        infinite = [key for key, value in values.items() if np.isinf(value)]
        if infinite:
            raise DataError(f"the log2 ratio under '{infinite[0]}' is infinite; write NaN if it is missing")
        errors = {key: float(value) for key, value in (errors or {}).items()}
        wrong = [key for key, value in errors.items() if not value >= 0]
        if wrong:
            raise DataError(f"the error under '{wrong[0]}' is {errors[wrong[0]]}, but 0 or more is needed")
        return cls(name or "the dataset", values, errors, original)

    def standard_errors(self, columns: Sequence[str]) -> Array:
        """Standard errors of log2 ratios, [p]: of the runs, as given, typical ones for single runs, or 0 for bare means.

        The variance of a few runs is itself uncertain: half of it is that of the cell, half the mean over all cells.
        """
        if self.runs is not None:
            own = np.square(ratio_errors(self.runs.select(perturbations=columns)).error[0])
            mean = float(np.nanmean(own)) if not np.isnan(own).all() else TYPICAL_ERROR**2
            return np.asarray(np.sqrt(0.5 * np.where(np.isnan(own), mean, own) + 0.5 * mean))
        typical = TYPICAL_ERROR if self.single_run else 0.0
        return np.array([self.errors.get(name, typical) for name in columns])

    def drawn(self, columns: Sequence[str], draws: int, generator: np.random.Generator) -> Array | None:
        """Profiles that the runs, or the errors, do not rule out, [draws, p]; None if nothing is known about the spread."""
        if self.runs is not None:
            return student_draws(self.runs.select(perturbations=columns), draws, generator)[:, 0]
        error = self.standard_errors(columns)
        if not error.any():
            return None
        values = np.array([self.values[name] for name in columns])
        return np.asarray(values + error * generator.standard_normal((draws, len(columns))))

    def remarks(self) -> list[str]:
        if not self.single_run:
            return list(self.notes)
        word = (
            "one run of every kind, so nothing is known about their spread: intervals and probabilities take a standard "
            f"deviation of {TYPICAL_ERROR} of a log2 ratio, which is typical of other datasets; give it more runs"
        )
        return [word, *self.notes]


def _compared(
    own: _One, known: Reference, model: str, exclude: str | None, ignore: Sequence[str]
) -> tuple[Profiles, list[str]]:
    """The published rows and columns to compare with, and notes on what was left out."""
    if model not in known.models:
        raise UnknownName("published model", model, known.models, advice=f"There are {', '.join(known.models)}.")
    table = known.models[model]
    if exclude is not None:
        table = table.select(datasets=[name for name in table.datasets if name != _own(exclude, table)])
    whole = dict(zip(table.perturbations, np.asarray(~np.isnan(table.values).any(0)).tolist()))
    mine = [name for name in table.perturbations if not np.isnan(own.values.get(name, np.nan)) and name not in ignore]
    there = [name for name in mine if whole[name]]
    if len(there) < 2:
        raise DataError(
            f"{own.name} has results under {len(there)} of the {len(table.perturbations)} published perturbations; "
            f"at least 2 are needed to compare, better all: {', '.join(table.perturbations)}"
        )
    notes = []
    missing = [name for name in table.perturbations if name not in mine and name not in ignore]
    if missing:
        notes.append(f"not compared, because the dataset has no result there: {', '.join(missing)}")
    gaps = [name for name in mine if not whole[name]]
    if gaps:
        notes.append(f"not compared, because {model} was not published on every dataset there: {', '.join(gaps)}")
    for part, names in (("features", FEATURES), ("structure", STRUCTURE)):
        if not set(names) & set(there):
            notes.append(f"no perturbation of the {part} is among those compared, so half of the picture is missing")
    return table.select(perturbations=there), notes


def _own(exclude: str, table: Profiles) -> str:
    if exclude not in table.datasets:
        raise UnknownName(
            "published dataset", exclude, table.datasets, advice=f"There are {', '.join(table.datasets)}."
        )
    return exclude


def _neighbours(table: Profiles, known: Reference, values: Array, several: Array | None) -> tuple[Neighbour, ...]:
    distance = np.sqrt(np.square(table.values - values).sum(1))
    drawn = values[None] if several is None else several
    apart = np.square(drawn[:, None, :] - table.values[None]).sum(2)
    nearest = np.bincount(apart.argmin(1), minlength=len(distance)) / len(drawn)
    return tuple(
        Neighbour(table.datasets[i], known.groups[table.datasets[i]], float(distance[i]), float(nearest[i]))
        for i in np.argsort(distance, kind="stable")
    )


def _probability(
    table: Profiles, known: Reference, values: Array, error: Array, fitted: Calibration
) -> Mapping[str, float]:
    labels = [known.groups[name] for name in table.datasets]
    groups = sorted(set(labels))
    members = np.eye(len(groups))[[groups.index(label) for label in labels]]
    logs = log_kernels(values, table.values, fitted.width, error)
    return as_mapping(groups, group_probabilities(logs, members, fitted.doubt))


def _where(
    name: str,
    group: str | None,
    probability: Mapping[str, float],
    neighbours: Sequence[Neighbour],
    fitted: Calibration,
) -> str:
    near = ", ".join(f"{each.dataset} ({each.distance:.2f})" for each in neighbours[:SHOWN])
    if group is None:
        return (
            f"{name} fits nowhere: nearest are {near}, while three of four published datasets have a neighbour within "
            f"{fitted.usual:.2f} and none counts as near beyond {fitted.fence:.2f}; no group is stated."
        )
    others = [f"{other} {100 * part:.0f} %" for other, part in probability.items() if other != group and part >= 0.05]
    doubt = f" ({' and '.join(others)})" if others else ""
    return (
        f"{name} belongs to {group} with a probability of {100 * probability[group]:.0f} %{doubt}; nearest are {near}."
    )


def _unlike(marks: Sequence[Mark]) -> list[str]:
    """What sets it apart from most published datasets, in one sentence."""
    apart = [mark for mark in marks if abs(mark.deviations) >= APART]
    sure = [mark for mark in apart if mark.sure][:3]
    if not apart:
        return ["No perturbation sets it apart: under each it does what most published datasets do."]
    if not sure:
        return ["Whether a perturbation sets it apart is not decided by these runs."]
    parts = [
        f"{mark.perturbation} (it keeps {100 * mark.ratio:.0f} %, published datasets {100 * mark.published:.0f} % on average)"
        for mark in sure
    ]
    return [f"What sets it apart most: {'; '.join(parts)}."]


def _marks(table: Profiles, values: Array, several: Array | None, members: Any) -> tuple[Mark, ...]:
    mean, deviation = table.values.mean(0), np.maximum(table.values.std(0, ddof=1), 1e-9)
    scores = (values - mean) / deviation
    group = table.values[members].mean(0)
    low, high = (None, None) if several is None else np.quantile(several, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    made = []
    for j in np.argsort(-np.abs(scores), kind="stable"):
        ends = (None, None) if low is None or high is None else (float(np.exp2(low[j])), float(np.exp2(high[j])))
        sure = low is None or high is None or bool(low[j] > mean[j] or high[j] < mean[j])
        made.append(
            Mark(
                table.perturbations[j],
                ratio=float(np.exp2(values[j])),
                low=ends[0],
                high=ends[1],
                published=float(np.exp2(mean[j])),
                group=float(np.exp2(group[j])),
                deviations=float(scores[j]),
                sure=sure,
            )
        )
    return tuple(made)
