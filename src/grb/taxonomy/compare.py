"""Own profiles compared with the published ones: cell by cell, as one correlation, and by their nearest neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from grb.errors import DataError
from grb.taxonomy.assignment import IGNORED, Placement, assign
from grb.taxonomy.profile import Profiles
from grb.taxonomy.reference import PUBLISHED, Reference, published
from grb.taxonomy.uncertainty import ratio_errors

AS_PUBLISHED = " (gtaxogym)"
"""Behind the name of a perturbation that was done as the published code does it."""
FEWEST = 4


def number(value: float, digits: int = 1, *, sign: str = "") -> str:
    """Write a number with some digits behind the point; NaN is a dash."""
    return "-" if np.isnan(value) else f"{value:{sign}.{digits}f}"


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and np.isnan(value) else value


class Cell(NamedTuple):
    """AUROC left under a perturbation, as a fraction of the unperturbed one.

    Args:
        perturbation: Name of the perturbation.
        runs: Number of our runs.
        left: Our mean over our unperturbed mean.
        low: Lower end of the 95 % interval of that ratio of means, which has the variance of both; NaN with a single run.
        high: Upper end of that interval.
        published: The published fraction; NaN if there is none.
    """

    perturbation: str
    runs: int
    left: float
    low: float
    high: float
    published: float

    @property
    def text(self) -> str:
        """What is left, in per cent, with half of its interval if there is one."""
        half = 100 * (self.high - self.left)
        return f"{100 * self.left:.0f}" if np.isnan(half) else f"{100 * self.left:.0f} ± {half:.0f}"


@dataclass(frozen=True, eq=False)
class DatasetComparison:
    """One dataset, ours and published.

    Args:
        dataset: Published name of the dataset.
        original: Our mean AUROC of the unperturbed dataset.
        published: The published one.
        runs: Number of our runs of the unperturbed dataset.
        cells: One for every perturbation that was run.
        group: Published group of the dataset.
        placement: Assignment of our profile with its own published row left out, as `grb taxonomy place` does it; None with
            fewer than four perturbations.
    """

    dataset: str
    original: float
    published: float
    runs: int
    cells: tuple[Cell, ...]
    group: str
    placement: Placement | None

    @property
    def in_its_group(self) -> bool:
        """Whether it is placed in its published group."""
        return self.placement is not None and self.placement.group == self.group

    @property
    def placed(self) -> tuple[str, str, str, str]:
        """The dataset, its nearest published neighbour, where it is placed with which probability, and its published group."""
        assert self.placement is not None
        found = self.placement
        where = (
            "fits nowhere" if found.group is None else f"{found.group} ({100 * found.probability[found.group]:.0f} %)"
        )
        return self.dataset, found.nearest.dataset, where, self.group

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values, for JSON; None stands for NaN."""
        return {
            "dataset": self.dataset,
            "original": _known(self.original),
            "published": _known(self.published),
            "runs": self.runs,
            "group": self.group,
            "nearest": None if self.placement is None else self.placement.nearest.dataset,
            "placed": None if self.placement is None else self.placement.group,
            "probability": None if self.placement is None else dict(self.placement.probability),
            "cells": [{key: _known(value) for key, value in cell._asdict().items()} for cell in self.cells],
        }


@dataclass(frozen=True, eq=False)
class Comparison:
    """Own profiles compared with published ones.

    Args:
        datasets: One for every dataset that was published.
        correlation: Pearson's, of all log2 ratios that both sides have, pooled over datasets; None with fewer than three.
        pairs: Number of these ratios.
        notes: What a reader should know about the numbers.
    """

    datasets: tuple[DatasetComparison, ...]
    correlation: float | None
    pairs: int
    notes: tuple[str, ...] = ()

    def rows(self) -> list[dict[str, Any]]:
        """Every cell as JSON values."""
        return [{"dataset": own.dataset, **cell._asdict()} for own in self.datasets for cell in own.cells]

    def placed(self) -> tuple[int, int]:
        """How many datasets were placed in their published group, and how many were placed or said to fit nowhere."""
        placed = [own for own in self.datasets if own.placement is not None]
        return sum(own.in_its_group for own in placed), len(placed)

    @property
    def summary(self) -> str:
        """The correlation, as a sentence."""
        if self.correlation is None:
            return f"{self.pairs} ratios are too few for a correlation"
        return f"correlation of {self.pairs} log2 ratios with the published ones: {self.correlation:.3f}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values, for JSON; None stands for NaN."""
        right, placed = self.placed()
        return {
            "correlation": self.correlation,
            "pairs": self.pairs,
            "placed_in_group": right,
            "placed": placed,
            "datasets": [own.to_dict() for own in self.datasets],
            "notes": list(self.notes),
        }

    def to_markdown(self) -> str:
        """Return a table with two rows per dataset, the correlation, and the nearest neighbour of every dataset."""
        names = list(dict.fromkeys(cell.perturbation for own in self.datasets for cell in own.cells))
        lines = [f"| | runs | original | {' | '.join(names)} |", "|---|" + "---|" * (len(names) + 2)]
        for own in self.datasets:
            cells = {cell.perturbation: cell for cell in own.cells}
            ours = [cells[name].text if name in cells else "-" for name in names]
            theirs = [number(100 * cells[name].published, 0) if name in cells else "-" for name in names]
            lines += [
                f"| {own.dataset}, ours | {own.runs} | {own.original:.3f} | {' | '.join(ours)} |",
                f"| published | | {number(own.published, 3)} | {' | '.join(theirs)} |",
            ]
        lines += ["", f"{self.summary}.", "", "| dataset | nearest without its own row | placed | published group |"]
        lines += ["|---|---|---|---|"]
        lines += [f"| {' | '.join(own.placed)} |" for own in self.datasets if own.placement is not None]
        return "\n".join(lines)


def as_published(profiles: Profiles) -> Profiles:
    """Columns named as in the published tables: what the published code does counts there, where it was run.

    >>> own = Profiles(("a", "b"), ("RandFtrs", "RandFtrs (gtaxogym)"), np.array([[-1.0, -0.5], [-2.0, np.nan]]))
    >>> as_published(own).values.tolist()
    [[-0.5], [-2.0]]
    """
    plain = tuple(dict.fromkeys(name.removesuffix(AS_PUBLISHED) for name in profiles.perturbations))
    values = np.full((len(profiles.datasets), len(plain)), np.nan)
    runs = None if profiles.runs is None else np.full((len(values), 1 + len(plain), profiles.runs.shape[2]), np.nan)
    if runs is not None and profiles.runs is not None:
        runs[:, 0] = profiles.runs[:, 0]
    # the published ones come last and cover the others
    for name in sorted(profiles.perturbations, key=lambda name: name.endswith(AS_PUBLISHED)):
        source, target = profiles.perturbations.index(name), plain.index(name.removesuffix(AS_PUBLISHED))
        there = ~np.isnan(profiles.values[:, source])
        values[there, target] = profiles.values[there, source]
        if runs is not None and profiles.runs is not None:
            runs[there, 1 + target] = profiles.runs[there, 1 + source]
    return replace(profiles, perturbations=plain, values=values, runs=runs)


def compare(
    profiles: Profiles, *, model: str = "GCN", ignore: Sequence[str] = IGNORED, draws: int = 200, seed: int = 0
) -> Comparison:
    r"""Compare own profiles with the published ones of the same datasets.

    .. math:: r = \mathrm{corr}\big(\log_2 \tfrac{\overline{\mathrm{AUROC}}_{ij}}{\overline{\mathrm{AUROC}}_{i0}},
              S^{\text{published}}_{ij}\big)

    over all datasets i and perturbations j that both sides have.

    Args:
        profiles: Ours; datasets that nobody published are left out.
        model: Model of the published profiles, in any case, where they have several.
        ignore: Perturbations that do not count in the correlation and when placing; FiedlerFrag was published by another
            definition than its text's.
        draws: Number of bootstrap draws when placing.
        seed: Random seed of the bootstrap.

    References:
        Liu et al., *Taxonomy of Benchmarks in Graph Representation Learning*, LoG 2022.

    >>> reference = published("transductive").profiles
    >>> found = compare(reference.select(["Actor", "WikiCS"]), draws=10)
    >>> round(found.correlation, 6), found.pairs, found.placed()
    (1.0, 22, (2, 2))
    """
    own = as_published(profiles)
    references = [published(name) for name in PUBLISHED]
    found, pairs = [], []
    for dataset in own.datasets:
        known = next((each for each in references if dataset in each.profiles.datasets), None)
        if known is None:
            continue
        found.append(_compared(own.select([dataset]), known, model, ignore, draws, seed))
        pairs += [
            (cell.left, cell.published)
            for cell in found[-1].cells
            if cell.perturbation not in ignore and not np.isnan(cell.published)
        ]
    if not found:
        raise DataError(
            f"none of the datasets was published: {', '.join(own.datasets[:5])}; "
            "`grb taxonomy analyse inductive` lists those that were"
        )
    left = [name for name in own.datasets if name not in {each.dataset for each in found}]
    notes = [f"not published, and left out: {', '.join(left)}"] if left else []
    correlation = float(np.corrcoef(np.log2(pairs).T)[0, 1]) if len(pairs) > 2 else None
    return Comparison(tuple(found), correlation, len(pairs), tuple(notes))


def _compared(
    own: Profiles, known: Reference, model: str, ignore: Sequence[str], draws: int, seed: int
) -> DatasetComparison:
    (dataset,) = own.datasets
    model = next((name for name in known.models if name.lower() == model.lower()), model)
    table = known.models.get(model)
    if table is not None and dataset not in table.datasets:
        table = None  # nobody published this model on this dataset
    there = {} if table is None else table.row(dataset)
    mean = float("nan") if own.original is None else float(own.original[0])
    cells = []
    errors = None if own.runs is None else ratio_errors(own)
    for column, name in enumerate(own.perturbations):
        ratio = float(own.ratio[0, column])
        if np.isnan(ratio):
            continue
        runs = np.zeros(0) if own.runs is None else own.runs[0, 1 + column]
        runs = runs[~np.isnan(runs)]
        half = np.nan
        if errors is not None:
            half = ratio * np.log(2) * errors.error[0, column] * student(errors.freedom[0, column])
        low, high = ratio - half, ratio + half
        cells.append(Cell(name, max(len(runs), 1), ratio, low, high, float(2 ** there.get(name, np.nan))))
    placement = None
    if len([cell for cell in cells if cell.perturbation not in ignore and not np.isnan(cell.published)]) >= FEWEST:
        placement = assign(
            own, known, dataset=dataset, exclude=dataset, ignore=ignore, model=model, draws=draws, seed=seed
        )
    first = None if own.runs is None else own.runs[0, 0]
    return DatasetComparison(
        dataset,
        mean,
        _original(table, dataset),
        1 if first is None else int((~np.isnan(first)).sum()),
        tuple(cells),
        known.groups[dataset],
        placement,
    )


def student(freedom: float, level: float = 0.95) -> float:
    """Half the width of a central interval of Student's t; NaN without a degree of freedom."""
    from scipy.stats import t

    return float(t.ppf((1 + level) / 2, freedom)) if freedom > 0 else float("nan")


def _original(table: Profiles | None, dataset: str) -> float:
    if table is None or table.original is None:
        return float("nan")
    return float(table.original[table.datasets.index(dataset)])
