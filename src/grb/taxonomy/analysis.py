"""Everything about some profiles at once: groups, components, correlations, stability, representatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np

from grb.errors import DataError
from grb.taxonomy.cluster import Labels, Tree, agreement, cut, join, lookup, tree
from grb.taxonomy.components import Components, profile_components
from grb.taxonomy.correlation import Correlation, model_correlation, perturbation_correlation
from grb.taxonomy.missing import complete
from grb.taxonomy.profile import Profiles
from grb.taxonomy.reference import Reference
from grb.taxonomy.representative import SATURATED, Subset, coverage, representatives
from grb.taxonomy.stability import (
    WITHOUT,
    BootstrapGroups,
    PermutationTest,
    bootstrap_groups,
    kept,
    permutation_test,
    regrouped,
    silhouettes,
)
from grb.taxonomy.uncertainty import SeedSpread, Spread, seed_study, spread

DEFAULT_GROUPS = 3
LEVEL = 0.95
BOOTSTRAP_TREES = 200
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Stability:
    """How much the groups depend on choices.

    Args:
        against: What agreement is measured with: ``known groups`` or ``these groups``.
        agreement: Adjusted Rand index by number of groups and by variant: a linkage, ``k-means``, or ``without X``.
        kept: Share of the variants (single linkage aside) in which a dataset stays in its group, by dataset.
        bootstrap: Groups over resampled runs; None if only means are known.
        permutation: Tests of ``distance`` and ``within``, see :func:`grb.taxonomy.permutation_test`.
        silhouettes: Mean silhouette by number of groups.
        verdict: One sentence.
    """

    against: str
    agreement: Mapping[int, Mapping[str, float]]
    kept: Mapping[str, float]
    bootstrap: BootstrapGroups | None
    permutation: Mapping[str, PermutationTest]
    silhouettes: Mapping[int, float]
    verdict: str


@dataclass(frozen=True, eq=False)
class Analysis:
    """What :func:`analyse` found; a part is None where the profiles do not allow it, and a note says why.

    Args:
        given: The profiles as they came, perhaps with missing cells.
        profiles: Those without missing cells that everything else is about.
        tree: Ward's dendrogram.
        cut: Number of groups that it was cut into, before joining.
        joins: Groups of the cut that were joined.
        groups: Group of every dataset; called as the known groups if they are the same.
        known: Known groups to compare with.
        components: Principal components of the profiles.
        perturbations: Correlation of the perturbations.
        models: Correlation of the models, of ``log2`` ratios and of raw ``auroc``.
        spread: Bootstrap error and interval of every cell of ``profiles``.
        seeds: Spread of Frag-k over seeds.
        stability: How much the groups depend on choices.
        chosen: A subset that stands for all.
        recommended: A subset that somebody recommends, rated in the same way.
        notes: What a reader should know, in sentences.
        draws: Shuffles and bootstrap draws.
        seed: Of the shuffles and draws.
    """

    given: Profiles
    profiles: Profiles
    tree: Tree | None = None
    cut: int = 1
    joins: tuple[tuple[int, int], ...] = ()
    groups: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, str] | None = None
    components: Components | None = None
    perturbations: Correlation | None = None
    models: Mapping[str, Correlation] = field(default_factory=dict)
    spread: Spread | None = None
    seeds: tuple[SeedSpread, ...] = ()
    stability: Stability | None = None
    chosen: Subset | None = None
    recommended: Subset | None = None
    notes: tuple[str, ...] = ()
    draws: int = 0
    seed: int = 0

    @property
    def labels(self) -> list[str]:
        """Groups in the order of the profiles."""
        return [self.groups[name] for name in self.profiles.datasets]

    @property
    def agreement(self) -> float | None:
        """Adjusted Rand index of the groups with the known ones."""
        if self.known is None or not self.groups:
            return None
        return agreement(self.labels, lookup(self.known, self.profiles.datasets))


def analyse(
    profiles: Profiles,
    *,
    groups: int | None = None,
    joins: Sequence[tuple[int, int]] = (),
    known: Mapping[str, str] | None = None,
    recommended: Sequence[str] = (),
    models: Mapping[str, Profiles] | None = None,
    missing: str = "drop-perturbations",
    count: int | None = None,
    saturated: float = SATURATED,
    draws: int = 999,
    seed: int = 0,
) -> Analysis:
    """Cluster profiles, explain the groups, and say how far to trust them.

    Args:
        profiles: What to analyse.
        groups: Number of groups to cut Ward's tree into; 3, as in the paper, if not given (fewer for 3 datasets or less).
        joins: Sibling groups of the cut to join, numbered from the top of the tree.
        known: Group of every dataset to compare with.
        recommended: A subset of datasets to rate beside our representatives.
        models: Profiles of all models at hand, for their correlation.
        missing: Rule for missing cells, one of :data:`grb.taxonomy.MISSING`.
        count: Number of representatives; as many as are recommended, else a third of the datasets, if not given.
        saturated: Highest unperturbed AUROC of a dataset worth representing others.
        draws: Shuffles of the permutation test and draws of the bootstrap.
        seed: Of both; equal seeds give equal results.

    >>> from grb.taxonomy import published
    >>> found = analyse(published("transductive").profiles, groups=3, draws=19)
    >>> sorted(name for name, group in found.groups.items() if group == "1")
    ['Actor', 'DzEu', 'WebKB-Cor', 'WebKB-Wis']
    """
    _check_draws(draws)
    used = complete(profiles, missing)
    wanted = _wanted(groups, len(used.datasets))
    known = _about(known, used.datasets)
    notes = list(used.notes)

    def attempt(function: Callable[[], T]) -> T | None:
        try:
            return function()
        except DataError as error:
            notes.append(f"not done: {error}")
            return None

    found = attempt(lambda: tree(used))
    labels, names = _grouped(found, wanted, joins, known, used.datasets)
    notes += _uneven(found, wanted)
    components = attempt(lambda: profile_components(used)) if found else None
    perturbations = attempt(lambda: perturbation_correlation(used))
    tables = {of: attempt(partial(model_correlation, models, of=of)) for of in _comparable(models)} if models else {}
    stability = chosen = advised = None
    if found is not None and labels is not None:
        many = count or _as_many(recommended, len(set(names.values())))
        chosen = representatives(used, labels.tolist(), many, saturated=saturated)
        advised = Subset(tuple(recommended), coverage(used, labels.tolist(), recommended)) if recommended else None
        stability = attempt(lambda: _stability(used, found, labels, wanted, known, draws, seed))
    resampled = used.runs is not None
    return Analysis(
        given=profiles,
        profiles=used,
        tree=found,
        cut=wanted,
        joins=tuple(joins),
        groups=names,
        known=known,
        components=components,
        perturbations=perturbations,
        models={of: table for of, table in tables.items() if table is not None},
        spread=spread(used, draws, LEVEL, generator=np.random.default_rng([seed, 0])) if resampled else None,
        seeds=tuple(seed_study(used)) if resampled else (),
        stability=stability,
        chosen=chosen,
        recommended=advised,
        notes=tuple(notes),
        draws=draws,
        seed=seed,
    )


def _check_draws(draws: int) -> None:
    if draws < 2:
        raise DataError(f"{draws} draws were asked for, but at least 2 are needed")


def _uneven(found: Tree | None, wanted: int) -> list[str]:
    if found is None or len(set(cut(found, wanted))) == wanted:
        return []
    return [f"the tree cannot be cut into {wanted} groups, because merges have equal heights"]


def _as_many(recommended: Sequence[str] | None, groups: int) -> int | None:
    """As many representatives as are recommended, if every group gets one."""
    return len(recommended) if recommended and len(recommended) >= groups else None


def _wanted(groups: int | None, most: int) -> int:
    wanted = max(1, min(DEFAULT_GROUPS, most - 1)) if groups is None else groups
    if not 1 <= wanted <= most:
        raise DataError(f"{wanted} groups were asked for, but 1 to {most} are possible with {most} datasets")
    return wanted


def _comparable(models: Mapping[str, Profiles]) -> tuple[Literal["log2", "auroc"], ...]:
    """By what several models can be correlated."""
    if len(models) < 2:
        return ()
    return ("log2", "auroc") if all(own.original is not None for own in models.values()) else ("log2",)


def analyse_published(reference: Reference, *, draws: int = 999, seed: int = 0) -> Analysis:
    """The published results with the cut, the groups and the recommendation of the paper."""
    return analyse(
        reference.profiles,
        groups=reference.cut,
        joins=reference.joins,
        known=reference.groups,
        recommended=reference.representatives,
        models=reference.models,
        draws=draws,
        seed=seed,
    )


def _about(known: Mapping[str, str] | None, datasets: Sequence[str]) -> dict[str, str] | None:
    """Known groups of the datasets at hand; each must have one."""
    return None if known is None else dict(zip(datasets, lookup(known, datasets)))


def _grouped(
    found: Tree | None,
    groups: int,
    joins: Sequence[tuple[int, int]],
    known: Mapping[str, str] | None,
    datasets: Sequence[str],
) -> tuple[Labels | None, dict[str, str]]:
    """The groups as numbers, and by dataset under their names."""
    if found is None:
        return None, {}
    labels = cut(found, groups)
    for first, second in joins:
        labels = join(found, labels, first, second)
    if known is not None and agreement(labels, lookup(known, datasets)) == 1.0:
        return labels, dict(known)
    return labels, {name: str(label) for name, label in zip(datasets, labels)}


def _stability(
    profiles: Profiles,
    found: Tree,
    labels: Labels,
    groups: int,
    known: Mapping[str, str] | None,
    draws: int,
    seed: int,
) -> Stability:
    if not 1 < len(set(labels.tolist())) < len(labels):
        raise DataError(
            "stability needs more than one group and fewer groups than datasets, "
            f"got {len(set(labels.tolist()))} and {len(labels)}"
        )
    if not np.ptp(profiles.values, axis=0).any():
        raise DataError("all profiles are the same, so any groups of them are arbitrary")
    against: Sequence[Any] = labels.tolist() if known is None else lookup(known, profiles.datasets)
    sizes = sorted({groups, len(set(against))})
    variants = {size: regrouped(profiles, size) for size in sizes}
    scores = {
        size: {name: agreement(against, own) for name, own in by_name.items()} for size, by_name in variants.items()
    }
    others = [own for name, own in variants[groups].items() if name not in ("ward", "single")]
    shares = dict(zip(profiles.datasets, kept(against, others).tolist()))
    bootstrap = None
    if profiles.runs is not None:
        generator = np.random.default_rng([seed, 1])
        bootstrap = bootstrap_groups(profiles, against, groups, min(draws, BOOTSTRAP_TREES), generator=generator)
    return Stability(
        against="these groups" if known is None else "known groups",
        agreement=scores,
        kept=shares,
        bootstrap=bootstrap,
        permutation=permutation_test(profiles, groups, draws, generator=np.random.default_rng([seed, 2])),
        silhouettes=silhouettes(profiles, found),
        verdict=_verdict(scores[groups], bootstrap),
    )


def _verdict(scores: Mapping[str, float], bootstrap: BootstrapGroups | None) -> str:
    """A word and the numbers behind it. Single linkage does not count: it puts all but some outliers into one group."""
    counted = {name: score for name, score in scores.items() if name not in ("ward", "single")}
    if bootstrap is not None:
        counted["resampled runs (5 % quantile)"] = float(np.quantile(bootstrap.agreement, 0.05))
    worst = min(counted, key=lambda name: counted[name])
    low = counted[worst]
    word = "stable" if low >= 0.9 else "fairly stable" if low >= 0.65 else "fragile"
    parts = [f"lowest agreement {low:.2f} ({worst})"]
    dropped = {name: score for name, score in scores.items() if name.startswith(WITHOUT)}
    if dropped and not worst.startswith(WITHOUT):
        heaviest = min(dropped, key=lambda name: dropped[name])
        parts.append(f"{dropped[heaviest]:.2f} {heaviest}")
    return f"{word}: {', '.join(parts)}; 1 is the same groups, 0 is chance"
