"""Sensitivity profiles: how the AUROC of a model on a dataset changes under every perturbation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grb.errors import DataError, UnknownName

Array = NDArray[np.float64]

ORIGINAL = "-"
"""How the published tables call the unperturbed dataset."""
FEATURES = ("RandFtrs", "NoNodeFtrs", "NodeDeg", "LowPass", "MidPass", "HighPass")
STRUCTURE = ("RandRewire", "NoEdges", "FullyConn", "Frag-k1", "Frag-k2", "Frag-k3", "FiedlerFrag")
PAPER_ORDER = (*FEATURES, *STRUCTURE)
COLLECTIONS_ONLY = ("FullyConn", "FiedlerFrag")
"""Perturbations that the paper leaves out where the data is one large graph."""
GTAXOGYM = "gtaxogym"
"""Value of a perturbation's ``compat``: what the published code does, where it is not what the paper says."""


def paper_perturbations(*, collection: bool) -> list[str]:
    """Return the paper's perturbations in its order: 13 for collections of graphs, 11 for one graph."""
    return [name for name in PAPER_ORDER if collection or name not in COLLECTIONS_ONLY]


def comparable_perturbations(*, collection: bool) -> dict[str, dict[str, str]]:
    """Return the perturbations, with their parameters, under which a dataset can be compared with published results.

    FiedlerFrag was published by another definition. The published RandFtrs has the same numbers in every graph of a
    collection.
    """
    names = [name for name in paper_perturbations(collection=collection) if name != "FiedlerFrag"]
    return {name: {"compat": GTAXOGYM} if collection and name == "RandFtrs" else {} for name in names}


def to_list(value: Array | float | int) -> Any:
    """Return an array as nested lists, and a number as itself; None stands for NaN."""
    if isinstance(value, np.ndarray):
        return [to_list(each) for each in value]
    number = float(value)
    return None if np.isnan(number) else int(value) if isinstance(value, int) else number


@dataclass(frozen=True, eq=False)
class Profiles:
    r"""The sensitivity matrix of some datasets: one row, a dataset's profile, per dataset.

    .. math:: S_{ij} = \log_2 \frac{\overline{\mathrm{AUROC}}_{ij}}{\overline{\mathrm{AUROC}}_{i0}}

    with means over runs; 0 is the unperturbed dataset, so a negative entry is a loss and -1 a halved AUROC.

    Args:
        datasets: Names of the rows.
        perturbations: Names of the columns.
        values: :math:`S`, [d, p]; NaN where a result is missing.
        original: Mean AUROC of the unperturbed datasets, [d]; None if only ratios are known.
        runs: AUROC of every run, [d, 1 + p, r], the unperturbed dataset first and NaN where a cell has fewer runs; None
            if only means are known. Run ``k`` of all cells of a dataset shares its seed if the dataset is ``paired``.
        paired: Whether all cells of a dataset have the same seeds, [d]; None without runs.
        model: Name of the model that was trained.
        notes: What a reader should know about these numbers, in sentences.
        complementarity: Mode complementarity by dataset, where it is known.
        single_run: Whether every cell is one run, whose spread nobody knows.

    References:
        Liu et al., *Taxonomy of Benchmarks in Graph Representation Learning*, LoG 2022, Appendix A.1.
    """

    datasets: tuple[str, ...]
    perturbations: tuple[str, ...]
    values: Array
    original: Array | None = None
    runs: Array | None = None
    paired: NDArray[np.bool_] | None = None
    model: str | None = None
    notes: tuple[str, ...] = ()
    complementarity: Mapping[str, float] = field(default_factory=dict)
    single_run: bool = False

    def __post_init__(self) -> None:
        for kind, names in (("dataset", self.datasets), ("perturbation", self.perturbations)):
            if not names:
                raise DataError(f"there is no {kind}; profiles need at least one dataset and one perturbation")
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise DataError(f"{kind} '{twice[0]}' occurs twice; give every {kind} one name")
        if self.values.shape != (len(self.datasets), len(self.perturbations)):
            raise DataError(
                f"the matrix has shape {list(self.values.shape)}, but there are {len(self.datasets)} datasets "
                f"and {len(self.perturbations)} perturbations"
            )
        if np.isinf(self.values).any():
            raise DataError(f"the log2 ratio of {self._first(np.isinf(self.values))} is infinite; write NaN if missing")

    @property
    def ratio(self) -> Array:
        """AUROC as a fraction of the unperturbed one, [d, p]."""
        return np.asarray(np.exp2(self.values))

    @property
    def missing(self) -> list[tuple[str, str]]:
        """Cells without a result."""
        return [(self.datasets[i], self.perturbations[j]) for i, j in np.argwhere(np.isnan(self.values))]

    def row(self, dataset: str) -> dict[str, float]:
        """Return the profile of one dataset, by perturbation."""
        values = self.values[_indices(self.datasets, [dataset], "dataset")[0]]
        return dict(zip(self.perturbations, values.tolist()))

    def select(self, datasets: Sequence[str] | None = None, perturbations: Sequence[str] | None = None) -> Profiles:
        """Return some rows and columns, in the given order."""
        rows = _indices(self.datasets, self.datasets if datasets is None else datasets, "dataset")
        columns = _indices(
            self.perturbations, self.perturbations if perturbations is None else perturbations, "perturbation"
        )
        return replace(
            self,
            datasets=tuple(self.datasets[i] for i in rows),
            perturbations=tuple(self.perturbations[j] for j in columns),
            values=self.values[np.ix_(rows, columns)],
            original=None if self.original is None else self.original[rows],
            runs=None if self.runs is None else self.runs[np.ix_(rows, [0, *(1 + j for j in columns)])],
            paired=None if self.paired is None else self.paired[rows],
        )

    def without(self, *names: str) -> Profiles:
        """Return the profiles without some datasets or perturbations."""
        for name in names:
            if name not in (*self.datasets, *self.perturbations):
                known = [*self.datasets, *self.perturbations]
                raise UnknownName("dataset or perturbation", name, known, advice="Give one of the profiles.")
        return self.select(
            [name for name in self.datasets if name not in names],
            [name for name in self.perturbations if name not in names],
        )

    def _first(self, where: NDArray[np.bool_]) -> str:
        i, j = np.argwhere(where)[0]
        return f"dataset '{self.datasets[i]}' under '{self.perturbations[j]}'"


def _indices(names: Sequence[str], wanted: Sequence[str], kind: str) -> list[int]:
    known = {name: index for index, name in enumerate(names)}
    for name in wanted:
        if name not in known:
            raise UnknownName(kind, name, names, advice=f"These profiles have: {', '.join(names)}.")
    return [known[name] for name in wanted]


def from_auroc(
    datasets: Sequence[str],
    perturbations: Sequence[str],
    original: Any,
    perturbed: Any,
    *,
    model: str | None = None,
) -> Profiles:
    """Profiles from mean AUROCs; a NaN is a missing result.

    A dataset whose unperturbed AUROC is missing has no profile: it is left out, and a note says so.

    Args:
        datasets: Names of the rows.
        perturbations: Names of the columns.
        original: AUROC of the unperturbed datasets, [d].
        perturbed: AUROC of the perturbed ones, [d, p].
        model: Name of the model that was trained.

    >>> from_auroc(["a", "b"], ["NoEdges"], [0.8, 0.9], [[0.4], [0.9]]).values.tolist()
    [[-1.0], [0.0]]
    """
    table = np.column_stack([np.asarray(original, dtype=np.float64), np.asarray(perturbed, dtype=np.float64)])
    return _from_means(list(datasets), list(perturbations), table, model, None, None)


def from_runs(
    rows: Sequence[tuple[str, str, Any, float]],
    *,
    model: str | None = None,
) -> Profiles:
    """Profiles from single runs, which also give their uncertainty.

    Datasets are sorted by name, perturbations in the paper's order with others behind. A run with a NaN is left out.

    Args:
        rows: Dataset, perturbation (``"-"`` is the unperturbed dataset), seed or fold (None if not known), AUROC.
        model: Name of the model that was trained.

    >>> found = from_runs([("a", "-", 0, 0.8), ("a", "-", 1, 0.9), ("a", "NoEdges", 0, 0.4), ("a", "NoEdges", 1, 0.45)])
    >>> found.values.tolist(), found.runs.shape, found.paired.tolist()
    ([[-1.0]], (1, 2, 2), [True])
    """
    cells: dict[tuple[str, str], dict[Any, float]] = {}
    for dataset, perturbation, seed, auroc in rows:
        cell = cells.setdefault((dataset, perturbation), {})
        key = ("run", len(cell)) if seed is None else seed
        if key in cell:
            raise DataError(
                f"dataset '{dataset}' under '{perturbation}' has two runs with seed {seed}; "
                "keep one, give folds different seeds, or choose by a column that tells them apart with --where COLUMN=VALUE"
            )
        cell[key] = auroc
    datasets = sorted({dataset for dataset, _ in cells})
    named = dict.fromkeys(perturbation for _, perturbation in cells if perturbation != ORIGINAL)
    names = [*(name for name in PAPER_ORDER if name in named), *(name for name in named if name not in PAPER_ORDER)]
    finite = {name: {k: v for k, v in cell.items() if not np.isnan(v)} for name, cell in cells.items()}
    lost = sum(len(cells[name]) - len(cell) for name, cell in finite.items())
    most = max((len(cell) for cell in finite.values()), default=0)
    runs = np.full((len(datasets), 1 + len(names), max(most, 1)), np.nan)
    paired = np.zeros(len(datasets), dtype=bool)
    for i, dataset in enumerate(datasets):
        own = [finite.get((dataset, name), {}) for name in (ORIGINAL, *names)]
        filled = [frozenset(cell) for cell in own if cell]
        paired[i] = len(set(filled)) == 1 and not any(isinstance(key, tuple) for key in filled[0])
        for j, cell in enumerate(own):
            runs[i, j, : len(cell)] = [cell[key] for key in sorted(cell, key=str)]
    counts = (~np.isnan(runs)).sum(2)
    table = np.full(counts.shape, np.nan)
    np.divide(np.nansum(runs, 2), counts, out=table, where=counts > 0)
    _check_scores(runs, datasets, [ORIGINAL, *names])
    # a single run per cell has nothing to resample
    several = runs if runs.shape[2] > 1 else None
    found = _from_means(datasets, names, table, model, several, paired)
    remarks = [f"{lost} run{'s' if lost > 1 else ''} without a number left out"] if lost else []
    uneven = sorted({int(count) for count in counts[counts > 0]})
    if len(uneven) > 1:
        remarks.append(f"cells have between {uneven[0]} and {uneven[-1]} runs")
    return replace(found, notes=(*found.notes, *remarks), single_run=several is None)


def _from_means(
    datasets: list[str],
    names: list[str],
    table: Array,
    model: str | None,
    runs: Array | None,
    paired: NDArray[np.bool_] | None,
) -> Profiles:
    if table.shape != (len(datasets), 1 + len(names)):
        raise DataError(
            f"the AUROCs have shape {[table.shape[0], table.shape[1] - 1]}, but there are {len(datasets)} datasets "
            f"and {len(names)} perturbations"
        )
    _check_scores(table[:, :, None], datasets, [ORIGINAL, *names])
    known = ~np.isnan(table[:, 0])
    if not known.any():
        raise DataError(
            "no dataset has an AUROC of its unperturbed self, which every ratio is taken to; "
            f"add them as column or perturbation '{ORIGINAL}'"
        )
    lost = [name for name, there in zip(datasets, known) if not there]
    notes = (f"left out, because the unperturbed AUROC is missing: {', '.join(lost)}",) if lost else ()
    table = table[known]
    return Profiles(
        tuple(name for name in datasets if name not in lost),
        tuple(names),
        np.log2(table[:, 1:] / table[:, :1]),
        original=table[:, 0],
        runs=None if runs is None else runs[known],
        paired=None if runs is None or paired is None else paired[known],
        model=model,
        notes=notes,
    )


def _check_scores(scores: Array, datasets: Sequence[str], names: Sequence[str]) -> None:
    """Refuse what is no AUROC; NaN is a missing one. Scores: [d, 1 + p, r]."""
    wrong = ~np.isnan(scores) & ~((scores > 0) & (scores <= 1))
    if not wrong.any():
        return
    i, j, k = np.argwhere(wrong)[0]
    value = scores[i, j, k]
    cell = f"the AUROC of dataset '{datasets[i]}' under '{names[j]}' is {value:g}"
    if value == 0:
        raise DataError(f"{cell}, whose log2 ratio is not finite; if the run failed, leave it out or write NaN")
    advice = "; divide percentages by 100" if 1 < value <= 100 else ""
    raise DataError(f"{cell}, but it must lie above 0 and at most at 1{advice}")
