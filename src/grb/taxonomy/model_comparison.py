"""Several profiling models on the same datasets: which profiles depend on the model, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from grb.errors import DataError
from grb.taxonomy.assignment import IGNORED
from grb.taxonomy.compare import as_published
from grb.taxonomy.correlation import Correlation, model_correlation
from grb.taxonomy.profile import Profiles, to_list
from grb.taxonomy.reference import PUBLISHED, published

FEWEST = 3


class ModelDifference(NamedTuple):
    """How much more than the base a model keeps under one perturbation.

    Args:
        model: Name of the model.
        perturbation: Name of the perturbation.
        datasets: Number of datasets that both have.
        mean: Mean over datasets of the model's log2 ratio minus the base's; above zero if the model loses less.
        low: Smallest of these differences.
        high: Largest of them.
    """

    model: str
    perturbation: str
    datasets: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """Profiles of several models on the datasets that all of them have.

    Args:
        base: Model that the others are compared with.
        models: Names of the models.
        datasets: Datasets that all models have.
        left_out: Models by dataset, of those that only some have.
        ratios: Correlation of the models' log2 ratios.
        scores: Correlation of the logarithms of their AUROCs, unperturbed ones included, as in Figure 5 of the paper; None if
            only ratios are known.
        published: Correlation of the published log2 ratios over those of the cells that were published for all models; None
            with fewer than three.
        published_datasets: Datasets of these cells.
        differences: One for every model but the base and every perturbation.
        notes: What a reader should know, in sentences.
    """

    base: str
    models: tuple[str, ...]
    datasets: tuple[str, ...]
    left_out: Mapping[str, tuple[str, ...]]
    ratios: Correlation
    scores: Correlation | None
    published: Correlation | None
    published_datasets: tuple[str, ...]
    differences: tuple[ModelDifference, ...]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values, for JSON; None stands for NaN."""
        return {
            "base": self.base,
            "models": list(self.models),
            "datasets": list(self.datasets),
            "left_out": {name: list(models) for name, models in self.left_out.items()},
            **{
                name: None if table is None else table.to_dict()
                for name, table in (("ratios", self.ratios), ("scores", self.scores), ("published", self.published))
            },
            "published_datasets": list(self.published_datasets),
            "differences": self.rows(),
            "notes": list(self.notes),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Every difference as JSON values."""
        return [
            {name: to_list(value) if isinstance(value, float) else value for name, value in each._asdict().items()}
            for each in self.differences
        ]

    def tables(self) -> list[tuple[str, list[str], list[list[str]]]]:
        """Title, headers and rows of every table that is shown."""
        found = [_correlations(self.ratios, "log2 ratios")]
        if self.scores is not None:
            found.append(_correlations(self.scores, "logarithms of AUROCs, as the paper's Figure 5"))
        if self.published is not None:
            found.append(
                _correlations(self.published, f"published log2 ratios of {', '.join(self.published_datasets)}")
            )
        others = [name for name in self.models if name != self.base]
        cells = {(each.model, each.perturbation): each for each in self.differences}
        rows = [
            [name, *(_shown(cells.get((model, name))) for model in others)]
            for name in dict.fromkeys(each.perturbation for each in self.differences)
        ]
        title = f"log2 ratio minus that of {self.base}: mean over datasets (smallest to largest)"
        return [*found, (title, ["perturbation", *others], rows)]

    @property
    def coverage(self) -> str:
        """Which datasets count, as a sentence."""
        text = f"{len(self.models)} models on {len(self.datasets)} datasets: {', '.join(self.datasets)}"
        if not self.left_out:
            return text
        left = "; ".join(f"{name} ({', '.join(models)} only)" for name, models in self.left_out.items())
        return f"{text}. Left out: {left}"

    def to_markdown(self) -> str:
        """Return the coverage and all tables."""
        parts = [f"{self.coverage}."]
        for title, heads, rows in self.tables():
            lines = [heads, ["---"] * len(heads), *rows]
            parts.append(
                "\n".join([f"{title[:1].upper()}{title[1:]}:", "", *(f"| {' | '.join(row)} |" for row in lines)])
            )
        return "\n\n".join(parts)


def compare_models(models: Mapping[str, Profiles], base: str = "gcn") -> ModelComparison:
    r"""Compare the profiles of several models: Figure 5 of the paper, and who loses less than the base where.

    .. math:: \Delta_{ij} = S^{m}_{ij} - S^{\text{base}}_{ij}

    Datasets that only some of the models have do not count, and the result says so.

    Args:
        models: Profiles by model, at least two.
        base: Model that the others are compared with, in any case.

    References:
        Liu et al., *Taxonomy of Benchmarks in Graph Representation Learning*, LoG 2022, Figures 5 and B.1.

    >>> found = compare_models(published("inductive").models)
    >>> next(round(row.mean, 2) for row in found.differences if row[:2] == ("GIN", "NoNodeFtrs"))
    0.11
    """
    if len(models) < 2:
        raise DataError(
            f"a comparison of models needs at least two models, but there is only {', '.join(models) or 'none'}"
        )
    names = {name.lower(): name for name in models}
    if base.lower() not in names:
        raise DataError(
            f"the others are compared with {base}, but there are only {', '.join(models)}; choose one by --model"
        )
    first = names[base.lower()]
    own = {name: as_published(profiles) for name, profiles in models.items()}
    every = list(dict.fromkeys(dataset for each in own.values() for dataset in each.datasets))
    having = {dataset: tuple(name for name, each in own.items() if dataset in each.datasets) for dataset in every}
    shared = [dataset for dataset in every if len(having[dataset]) == len(own)]
    if not shared:
        raise DataError(f"the models {', '.join(models)} share no dataset; run one with all of them")
    columns = [name for name in own[first].perturbations if all(name in each.perturbations for each in own.values())]
    if not columns:
        raise DataError(f"the models {', '.join(models)} share no perturbation; run one with all of them")
    chosen = {name: each.select(shared, columns) for name, each in own.items()}
    theirs, there = _published(models, shared, columns)
    known = all(each.original is not None for each in chosen.values())
    single = [name for name, each in chosen.items() if each.single_run or _single(each)]
    notes = [f"one run of each kind, so nothing is known about spread: {', '.join(single)}"] if single else []
    return ModelComparison(
        first,
        tuple(own),
        tuple(shared),
        {dataset: having[dataset] for dataset in every if dataset not in shared},
        model_correlation(chosen),
        model_correlation(chosen, of="log2-auroc") if known else None,
        theirs,
        there,
        tuple(
            difference
            for name, each in chosen.items()
            if name != first
            for difference in _differences(name, each, chosen[first])
        ),
        tuple(notes),
    )


def _single(profiles: Profiles) -> bool:
    return profiles.runs is not None and int((~np.isnan(profiles.runs)).sum(2).max()) < 2


def _differences(model: str, own: Profiles, base: Profiles) -> list[ModelDifference]:
    found = []
    for column, name in enumerate(own.perturbations):
        gaps = own.values[:, column] - base.values[:, column]
        gaps = gaps[~np.isnan(gaps)]
        if gaps.size:
            found.append(
                ModelDifference(model, name, len(gaps), float(gaps.mean()), float(gaps.min()), float(gaps.max()))
            )
    return found


def _published(
    models: Mapping[str, Profiles], shared: Sequence[str], columns: Sequence[str]
) -> tuple[Correlation | None, tuple[str, ...]]:
    """The same models and cells in the published results, and their datasets; nothing where these are the published ones."""
    for taxonomy in PUBLISHED:
        reference = published(taxonomy)
        theirs = {name.lower(): each for name, each in reference.models.items()}
        there = tuple(name for name in shared if name in reference.profiles.datasets)
        names = [name for name in columns if name in reference.profiles.perturbations and name not in IGNORED]
        unknown = any(theirs.get(name.lower()) in (None, each) for name, each in models.items())
        if not unknown and len(there) * len(names) >= FEWEST:
            return model_correlation({name: theirs[name.lower()].select(there, names) for name in models}), there
    return None, ()


def _correlations(table: Correlation, what: str) -> tuple[str, list[str], list[list[str]]]:
    rows = [[name, *("-" if np.isnan(r) else f"{r:.3f}" for r in table.r[i])] for i, name in enumerate(table.names)]
    return f"correlation of models over {table.cells} {what}", ["model", *table.names], rows


def _shown(cell: ModelDifference | None) -> str:
    return "-" if cell is None else f"{cell.mean:+.2f} ({cell.low:+.2f} to {cell.high:+.2f})"
