"""Where a new dataset belongs among the published ones: its neighbours, its group, and what that means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from grb.errors import DataError, UnknownName
from grb.taxonomy.describe import MEANINGS, describe_profile, meaning
from grb.taxonomy.profile import FEATURES, STRUCTURE, Array, Profiles
from grb.taxonomy.reference import Reference, published
from grb.taxonomy.uncertainty import resample

if TYPE_CHECKING:
    from torch import Tensor

    from grb.graph import CSR, Graph

# neighbours that decide the group: with three, all published datasets but their own row fall into their group
VOTES = 3
# deviations from the mean of the published datasets from which a perturbation sets a dataset apart
APART = 1.0
# quantile of the distances of published datasets to their nearest beyond which a dataset fits nowhere
FAR = 0.95
# labelled examples that two classes need at least, in all and each: training, validation and test need one of both
EXAMPLES, PER_CLASS = 20, 3
IGNORED = ("FiedlerFrag",)
"""Published by another definition than the paper's, and so not comparable with results of ours."""


class Neighbour(NamedTuple):
    """A published dataset and how near it is.

    Args:
        dataset: Name of the published dataset.
        group: Published group of that dataset.
        distance: Euclidean distance between the two profiles.
        nearest: Fraction of the draws in which no other dataset is nearer.
    """

    dataset: str
    group: str
    distance: float
    nearest: float


class Mark(NamedTuple):
    """Effect of one perturbation on the dataset, compared with the published ones.

    Args:
        perturbation: Name of the perturbation.
        ratio: AUROC that is left, as a fraction of the unperturbed one.
        published: Mean fraction over all published datasets.
        group: Mean fraction over those of the group that was found.
        deviations: How many standard deviations of the published log2 ratios the dataset is away from their mean.
    """

    perturbation: str
    ratio: float
    published: float
    group: float
    deviations: float


@dataclass(frozen=True, eq=False)
class Placement:
    """Where a dataset belongs among the published ones.

    Args:
        dataset: Name of the dataset.
        reference: ``inductive`` or ``transductive``.
        group: The published group it belongs to.
        probability: Fraction of the draws in which each group was found, the most frequent first.
        neighbours: All published datasets, the nearest first.
        marks: All perturbations that were compared, those that set it apart most first.
        messages: What that means.
        notes: What a reader should know about the numbers.
    """

    dataset: str
    reference: str
    group: str
    probability: Mapping[str, float]
    neighbours: tuple[Neighbour, ...]
    marks: tuple[Mark, ...]
    messages: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def nearest(self) -> Neighbour:
        """The nearest published dataset."""
        return self.neighbours[0]

    @property
    def apart(self) -> tuple[Mark, ...]:
        """The perturbations under which it differs from most published datasets."""
        return tuple(mark for mark in self.marks if abs(mark.deviations) >= APART)

    def rows(self) -> list[dict[str, Any]]:
        """Return the neighbours as JSON values."""
        return [neighbour._asdict() for neighbour in self.neighbours]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values, for JSON."""
        return {
            "dataset": self.dataset,
            "reference": self.reference,
            "group": self.group,
            "probability": dict(self.probability),
            "neighbours": self.rows(),
            "perturbations": [mark._asdict() for mark in self.marks],
            "apart": [mark.perturbation for mark in self.apart],
            "messages": list(self.messages),
            "notes": list(self.notes),
        }

    def text(self) -> str:
        """Return the answer in sentences."""
        return "\n".join([*self.messages, *(f"Note: {note}." for note in self.notes)])


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
    r"""Assign a dataset to a published group by its sensitivity profile.

    Distances are Euclidean between log2 ratios, over the perturbations that both sides have. The group is that of the three
    nearest, each with the weight of its inverse distance. Its probability is the fraction of draws that find it when the
    perturbations are drawn with replacement, as characters of species are, and with them the runs of the dataset (or, if
    only ``errors`` are known, normal noise).

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
        draws: Number of bootstrap draws.
        seed: Random seed of the bootstrap.

    References:
        Liu et al., *Taxonomy of Benchmarks in Graph Representation Learning*, LoG 2022.
        Felsenstein, *Confidence Limits on Phylogenies: An Approach Using the Bootstrap*, Evolution 1985.

    >>> own = published("transductive").profiles.row("Actor")
    >>> found = assign(own, "transductive", exclude="Actor", draws=50)
    >>> found.nearest.dataset, found.group
    ('DzEu', 'T-1')
    """
    if draws < 1:
        raise DataError(f"a bootstrap needs at least one draw, got {draws}")
    known = published(reference) if isinstance(reference, str) else reference
    own = _One.of(row, dataset, errors, original)
    table, notes = _compared(own, known, model, exclude, ignore)
    groups = np.array([known.groups[name] for name in table.datasets])
    generator = np.random.default_rng(seed)
    values = np.array([own.values[name] for name in table.perturbations])
    distance = np.sqrt(np.square(table.values - values).sum(1))
    sampled = _resampled(own, table, draws, generator)
    found = _vote(distance, groups)
    votes = [_vote(each, groups) for each in sampled]
    shares = {
        name: votes.count(name) / draws for name in sorted(set(groups.tolist()), key=lambda name: -votes.count(name))
    }
    order = np.argsort(distance, kind="stable")
    nearest = np.bincount(sampled.argmin(1), minlength=len(groups)) / draws
    neighbours = tuple(
        Neighbour(table.datasets[i], str(groups[i]), float(distance[i]), float(nearest[i])) for i in order
    )
    marks = _marks(table, values, groups == found)
    notes += [*_far(table, distance), *own.notes]
    ratios = {mark.perturbation: mark.ratio for mark in marks}
    sentences = (
        _where(own.name, found, shares, neighbours),
        *([meaning(found)] if found in MEANINGS else []),
        *describe_profile(ratios, own.original),
        *_unlike(marks),
    )
    return Placement(own.name, known.name, found, shares, neighbours, marks, sentences, tuple(notes))


@dataclass(frozen=True, eq=False)
class _One:
    """The profile of one dataset, however it was given."""

    name: str
    values: Mapping[str, float]
    errors: Mapping[str, float]
    original: float | None
    runs: Profiles | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, row: Mapping[str, float] | Profiles, name: str | None, errors: Any, original: float | None) -> _One:
        if isinstance(row, Profiles):
            if name is None and len(row.datasets) > 1:
                raise DataError(f"the profiles are of {len(row.datasets)} datasets; say which one by dataset=...")
            one = row.select(datasets=[name or row.datasets[0]])
            score = original if original is not None or one.original is None else float(one.original[0])
            runs = one if one.runs is not None else None
            return cls(one.datasets[0], one.row(one.datasets[0]), {}, score, runs, one.notes)
        values = {key: float(value) for key, value in row.items()}
        infinite = [key for key, value in values.items() if np.isinf(value)]
        if infinite:
            raise DataError(f"the log2 ratio under '{infinite[0]}' is infinite; write NaN if it is missing")
        errors = {key: float(value) for key, value in (errors or {}).items()}
        wrong = [key for key, value in errors.items() if not value >= 0]
        if wrong:
            raise DataError(f"the error under '{wrong[0]}' is {errors[wrong[0]]}, but 0 or more is needed")
        return cls(name or "the dataset", values, errors, original)


def _compared(
    own: _One, known: Reference, model: str, exclude: str | None, ignore: Sequence[str]
) -> tuple[Profiles, list[str]]:
    """The published rows and columns to compare with, and notes on what was left out."""
    if model not in known.models:
        raise UnknownName("published model", model, known.models, advice=f"There are {', '.join(known.models)}.")
    table = known.models[model]
    if exclude is not None:
        table = table.select(datasets=[name for name in table.datasets if name != _own(exclude, table)])
    known_here = dict(zip(table.perturbations, np.asarray(~np.isnan(table.values).any(0)).tolist()))
    there = [
        name
        for name, whole in known_here.items()
        if whole and name not in ignore and not np.isnan(own.values.get(name, np.nan))
    ]
    if len(there) < 2:
        raise DataError(
            f"{own.name} has results under {len(there)} of the {len(table.perturbations)} published perturbations; "
            f"at least 2 are needed to compare, better all: {', '.join(table.perturbations)}"
        )
    notes = []
    missing = [name for name in table.perturbations if name not in there and name not in ignore]
    if missing:
        notes.append(f"not compared, because the dataset has no result there: {', '.join(missing)}")
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


def _resampled(own: _One, table: Profiles, draws: int, generator: np.random.Generator) -> Array:
    """Distances to the published datasets with perturbations, and runs, drawn with replacement, [draws, d]."""
    columns = list(table.perturbations)
    values = np.array([own.values[name] for name in columns])
    if own.runs is not None:
        several = resample(own.runs.select(perturbations=columns), draws, generator)[:, 0]
    else:
        noise = np.array([own.errors.get(name, 0.0) for name in columns])
        several = values + noise * generator.standard_normal((draws, len(columns)))
    weights = generator.multinomial(len(columns), np.full(len(columns), 1 / len(columns)), size=draws)
    squares = np.square(several[:, None, :] - table.values[None])
    return np.asarray(np.sqrt((squares * weights[:, None, :]).sum(2)))


def _vote(distance: Array, groups: Any) -> str:
    """The group of the nearest few, each with the weight of its inverse distance."""
    nearest = np.argsort(distance, kind="stable")[:VOTES]
    weights = 1 / np.maximum(distance[nearest], 1e-9)
    names = list(dict.fromkeys(groups[nearest].tolist()))
    return str(max(names, key=lambda name: float(weights[groups[nearest] == name].sum())))


def _where(name: str, group: str, found: Mapping[str, float], neighbours: Sequence[Neighbour]) -> str:
    near = ", ".join(f"{each.dataset} ({each.distance:.2f})" for each in neighbours[:VOTES])
    sure = found.get(group, 0.0)
    others = [f"{other} {100 * part:.0f} %" for other, part in found.items() if other != group and part >= 0.05]
    doubt = f" ({' and '.join(others)})" if others else ""
    return f"{name} belongs to {group}, found in {100 * sure:.0f} % of the draws{doubt}; nearest are {near}."


def _far(table: Profiles, distance: Array) -> list[str]:
    """A note if even the nearest published dataset is farther than published ones are from theirs."""
    apart = np.sqrt(np.square(table.values[:, None] - table.values[None]).sum(2)) + np.diag(
        np.full(len(distance), np.inf)
    )
    usual = apart.min(1)
    if distance.min() <= np.quantile(usual, FAR):
        return []
    return [
        f"it fits nowhere well: the nearest dataset is {distance.min():.2f} away, while half of the published ones have a "
        f"neighbour within {np.median(usual):.2f}"
    ]


def _unlike(marks: Sequence[Mark]) -> list[str]:
    """What sets it apart from most published datasets, in one sentence, or none."""
    apart = [mark for mark in marks if abs(mark.deviations) >= APART][:3]
    if not apart:
        return ["No perturbation sets it apart: under each it does what most published datasets do."]
    parts = [
        f"{mark.perturbation} (it keeps {100 * mark.ratio:.0f} %, published datasets {100 * mark.published:.0f} % on average)"
        for mark in apart
    ]
    return [f"What sets it apart most: {'; '.join(parts)}."]


def _marks(table: Profiles, values: Array, members: Any) -> tuple[Mark, ...]:
    mean, deviation = table.values.mean(0), np.maximum(table.values.std(0, ddof=1), 1e-9)
    scores = (values - mean) / deviation
    group = table.values[members].mean(0)
    return tuple(
        Mark(
            table.perturbations[j],
            ratio=float(np.exp2(values[j])),
            published=float(np.exp2(mean[j])),
            group=float(np.exp2(group[j])),
            deviations=float(scores[j]),
        )
        for j in np.argsort(-np.abs(scores), kind="stable")
    )


def check_placeable(graph: Graph) -> list[str]:
    """Refuse a dataset that cannot be compared with graph datasets; return notes on what limits the comparison.

    Args:
        graph: Graph with its labels: one per graph of a collection, one per node, or a 0/1 matrix of either.
    """
    if graph.y is None:
        raise DataError("the dataset has no labels, so no AUROC can be measured; give it labels")
    if graph.num_edges == 0:
        raise DataError(
            "the dataset has no edges, so no perturbation of its structure can change anything: it is a table, not a graph"
        )
    _check_labels(graph.y.detach().cpu().numpy())
    notes = []
    if graph.num_features == 0 or _constant(graph.x):
        notes.append(
            "all nodes have the same features, so NoNodeFtrs and the band passes can take nothing away; "
            "compare it only with datasets without node features"
        )
    return notes


def _check_labels(labels: Any) -> None:
    if labels.ndim == 2:
        known = [column[np.isfinite(column) & (column >= 0)].astype(np.int64) for column in labels.T]
        if not any((np.bincount(column, minlength=2) >= PER_CLASS).all() for column in known):
            raise DataError(
                f"no label has {PER_CLASS} positive and {PER_CLASS} negative examples, so no AUROC can be measured"
            )
        return
    counts = np.bincount(labels[labels >= 0].astype(np.int64))
    if np.count_nonzero(counts) < 2:
        raise DataError("all labelled examples are of one class, but an AUROC needs at least two classes")
    large = int(np.count_nonzero(counts >= PER_CLASS))
    if counts.sum() < EXAMPLES or large < 2:
        raise DataError(
            f"the dataset is too small: it has {int(counts.sum())} labelled examples and {large} classes with at least "
            f"{PER_CLASS} of them, but {EXAMPLES} and 2 are needed for training, validation and test"
        )


def _constant(x: Tensor | CSR) -> bool:
    """Whether all rows are equal; of sparse features the first thousand are compared."""
    import torch

    if not isinstance(x, torch.Tensor):
        x = x.rows(torch.arange(min(x.shape[0], 1000))) @ torch.eye(x.shape[1])
    return bool((x == x[:1]).all())


def reference_for(graph: Graph) -> str:
    """Return which published taxonomy a dataset is compared with: single graphs with single graphs."""
    return "transductive" if graph.ptr is None else "inductive"
