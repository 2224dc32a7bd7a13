"""Everything about some profiles at once: groups, components, correlations, stability, representatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np

from grb.errors import DataError
from grb.taxonomy.cluster import Labels, Tree, agreement, as_groups, cut, join, lookup, tree
from grb.taxonomy.components import Components, profile_components
from grb.taxonomy.correlation import Correlation, Of, model_correlation, perturbation_correlation
from grb.taxonomy.missing import complete
from grb.taxonomy.profile import Profiles, to_list
from grb.taxonomy.reference import Reference, published
from grb.taxonomy.representative import SATURATED, Subset, coverage, representatives
from grb.taxonomy.separability import ALPHA, Separability, separability
from grb.taxonomy.stability import Stability, assess_stability
from grb.taxonomy.uncertainty import SeedSpread, Spread, seed_study, spread

DEFAULT_GROUPS = 3
LEVEL = 0.95
T = TypeVar("T")


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
        models: Correlation of the models, of ``log2`` ratios, of AUROCs (``log2-auroc``) and as in ``figure-5``.
        spread: Bootstrap error and interval of every cell of ``profiles``.
        seeds: Spread of Frag-k over seeds.
        separability: Whether each perturbation changes anything beyond chance; empty without runs.
        stability: How much the groups depend on choices.
        chosen: A subset that stands for all.
        recommended: A recommended subset, rated in the same way.
        notes: What a reader should know, in sentences.
        draws: Number of shuffles of the permutation test and of bootstrap draws.
        seed: Random seed of both.
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
    separability: tuple[Separability, ...] = ()
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

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values for JSON: strings, numbers, lists and dicts; NaN becomes None.

        ::

            model            name or None
            datasets         [d] names, as given
            perturbations    [p] names, as given
            original         [d] AUROC of the unperturbed datasets, or None
            log2_ratio       [d][p], None where missing
            missing          [[dataset, perturbation], ...]
            used             {datasets: [...], perturbations: [...]} behind everything below
            interval         {level, draws, error, low, high}, each matrix [used d][used p] of log2 ratios; None without runs
            tree             {datasets: [...], linkage: [[left, right, height, size], ...], leaves: [top, ...]} or None
            groups           {cut, joins: [[3, 4]], of: {dataset: group}, members: {group: [dataset, ...]}}
            known            {of: {dataset: group}, agreement} or None
            pca              {explained: [c], cumulative: [c], loadings: {perturbation: [c]}, scores: {dataset: [c]}} or None
            correlation      {perturbations: {names, r: [[...]], cells} or None, models: {log2: {...}, ...}}
            seeds            [{dataset, perturbation, runs, mean, std, percent}, ...]
            separability     [{dataset, perturbation, difference, p, holm, runs, paired, significant}, ...]
            complementarity  {dataset: value or None}
            stability        {verdict, against, agreement: {k: {variant: index}}, kept: {dataset: fraction},
                              silhouettes: {k: value},
                              permutation: {distance|within: {observed, null_mean, null_low, p, draws}},
                              bootstrap: {draws, mean, low, high, together: [[...]]} or None} or None
            representatives  {datasets: [...], distance, saturated: [...]} or None
            recommended      the same for a recommended subset, or None
            notes            [sentence, ...]
            draws, seed      of the shuffles and of the bootstrap

        Keys of dicts are strings, also the numbers of groups.
        """
        given, used, found = self.given, self.profiles, self.tree
        interval = (
            None if self.spread is None else {name: to_list(each) for name, each in self.spread._asdict().items()}
        )
        return {
            "model": given.model,
            "datasets": list(given.datasets),
            "perturbations": list(given.perturbations),
            "original": None if given.original is None else to_list(given.original),
            "log2_ratio": to_list(given.values),
            "missing": [list(cell) for cell in given.missing],
            "used": {"datasets": list(used.datasets), "perturbations": list(used.perturbations)},
            "interval": None if interval is None else {"level": LEVEL, "draws": self.draws, **interval},
            "tree": None if found is None else found.to_dict(),
            "groups": {
                "cut": self.cut,
                "joins": [list(pair) for pair in self.joins],
                "of": dict(self.groups),
                "members": as_groups(used.datasets, self.labels) if self.groups else {},
            },
            "known": None if self.known is None else {"of": dict(self.known), "agreement": self.agreement},
            "pca": None if self.components is None else self.components.to_dict(),
            "correlation": {
                "perturbations": None if self.perturbations is None else self.perturbations.to_dict(),
                "models": {of: table.to_dict() for of, table in self.models.items()},
            },
            "seeds": [row._asdict() for row in self.seeds],
            "separability": [{**row._asdict(), "significant": row.significant} for row in self.separability],
            "complementarity": {name: given.complementarity.get(name) for name in given.datasets},
            "stability": None if self.stability is None else self.stability.to_dict(),
            "representatives": None if self.chosen is None else self.chosen.to_dict(),
            "recommended": None if self.recommended is None else self.recommended.to_dict(),
            "notes": list(self.notes),
            "draws": self.draws,
            "seed": self.seed,
        }


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
    """Cluster profiles, describe the groups, and say how far to trust them.

    Args:
        profiles: Profiles to analyse.
        groups: Number of groups to cut Ward's tree into; 3, as in the paper, if not given (fewer for 3 datasets or less).
        joins: Sibling groups of the cut to join, numbered from the top of the tree.
        known: Group of every dataset to compare with.
        recommended: Subset of datasets to rate in the same way as our representatives.
        models: Profiles of all models at hand, for their correlation.
        missing: Rule for missing cells, one of :data:`grb.taxonomy.MISSING`.
        count: Number of representatives; as many as are recommended, else a third of the datasets, if not given.
        saturated: Highest unperturbed AUROC of a dataset worth representing others.
        draws: Number of shuffles of the permutation test and of bootstrap draws.
        seed: Random seed of both; equal seeds give equal results.

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
        stability = attempt(lambda: assess_stability(used, found, labels, wanted, known, draws, seed))
    resampled = used.runs is not None
    notes += _powerless(profiles)
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
        separability=tuple(separability(profiles, seed=seed)) if profiles.runs is not None else (),
        stability=stability,
        chosen=chosen,
        recommended=advised,
        notes=tuple(notes),
        draws=draws,
        seed=seed,
    )


def _powerless(profiles: Profiles) -> list[str]:
    """A note on datasets that have too few runs for any significance."""
    if profiles.runs is None:
        return []
    count, tests = profiles.runs.shape[2], len(profiles.perturbations)
    needed = int(np.ceil(1 - np.log2(ALPHA / tests)))
    if count >= needed:
        return []
    return [f"{count} runs cannot show significance: {tests} perturbations need {needed} runs with the same seeds each"]


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


def _comparable(models: Mapping[str, Profiles]) -> tuple[Of, ...]:
    """By what several models can be correlated: Figure 5 needs the paper's datasets."""
    if len(models) < 2:
        return ()
    if any(own.original is None for own in models.values()):
        return ("log2",)
    inductive = published("inductive").profiles.datasets
    of_the_paper = all(set(own.datasets) == set(inductive) for own in models.values())
    return ("log2", "log2-auroc", "figure-5") if of_the_paper else ("log2", "log2-auroc")


def analyse_published(reference: Reference, *, draws: int = 999, seed: int = 0) -> Analysis:
    """Analyse the published results with the cut, the groups and the recommendation of the paper.

    Args:
        reference: The published results.
        draws: Number of shuffles of the permutation test and of bootstrap draws.
        seed: Random seed of both.
    """
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
