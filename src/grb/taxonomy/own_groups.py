"""The published groups in one's own runs: which of them hold, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from grb.errors import DataError
from grb.taxonomy.assignment import IGNORED
from grb.taxonomy.cluster import agreement, cut, tree
from grb.taxonomy.compare import as_published
from grb.taxonomy.missing import drop_perturbations
from grb.taxonomy.profile import Array, Profiles
from grb.taxonomy.reference import PUBLISHED, published
from grb.taxonomy.representative import representatives
from grb.taxonomy.uncertainty import student_draws

# with fewer datasets there is nothing to group
FEWEST = 4
# a group is called stable if its members stay together, and others away, at least this often
STABLE = 0.8


class GroupStability(NamedTuple):
    """How well one published group holds in own runs.

    Args:
        group: Name of the published group.
        members: Datasets of it that were run.
        together: Mean fraction of draws in which two members share a group; None with one member.
        apart: Mean fraction of draws in which a member and a dataset of another group do not; None without others.
        stable: Whether both are at least 80 %, as far as they are known; None where neither is.
    """

    group: str
    members: tuple[str, ...]
    together: float | None
    apart: float | None
    stable: bool | None


@dataclass(frozen=True, eq=False)
class OwnGroups:
    """Own runs of datasets of one published taxonomy, grouped anew.

    Args:
        taxonomy: ``inductive`` or ``transductive``.
        datasets: Datasets that were run.
        perturbations: Perturbations that all of them have.
        groups: Group by dataset, of the own means.
        agreement: Adjusted Rand index of these with the published groups.
        interval: 5 and 95 % quantiles of that index over the draws.
        published: The same index if the published means of the same datasets and perturbations are cut in the same way.
        stability: One row for every published group.
        representatives: Fraction of draws in which each dataset is chosen to represent others, the most frequent first.
        single: Whether there is one run of each kind only, so that nothing is known about spread.
    """

    taxonomy: str
    datasets: tuple[str, ...]
    perturbations: tuple[str, ...]
    groups: dict[str, str]
    agreement: float
    interval: tuple[float, float]
    published: float
    stability: tuple[GroupStability, ...]
    representatives: dict[str, float]
    single: bool

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "taxonomy": self.taxonomy,
            "datasets": list(self.datasets),
            "perturbations": list(self.perturbations),
            "groups": dict(self.groups),
            "agreement": self.agreement,
            "interval": list(self.interval),
            "published": self.published,
            "stability": [{**row._asdict(), "members": list(row.members)} for row in self.stability],
            "representatives": dict(self.representatives),
            "single": self.single,
        }


def own_groups(
    profiles: Profiles, *, ignore: Sequence[str] = IGNORED, draws: int = 200, seed: int = 0
) -> list[OwnGroups]:
    """Group own runs of published datasets as the paper does, many times within their error, and compare the groups.

    Every draw is a profile that the runs do not rule out (:func:`~grb.taxonomy.student_draws`), cut by Ward's method into as
    many groups as the datasets at hand have in the published taxonomy.

    Args:
        profiles: Own profiles; with runs, or there is no spread.
        ignore: Perturbations that do not count.
        draws: Number of draws.
        seed: Random seed of the draws.

    Returns:
        One for each published taxonomy of which at least four datasets were run.
    """
    own, found = as_published(profiles), []
    for number, name in enumerate(PUBLISHED):
        reference = published(name)
        there = [each for each in own.datasets if each in reference.profiles.datasets]
        names = [each for each in own.perturbations if each in reference.profiles.perturbations and each not in ignore]
        if len(there) < FEWEST or len(names) < 2:
            continue
        try:
            used = drop_perturbations(own.select(there, names))
        except DataError:  # no perturbation that all of them have
            continue
        labels = [reference.groups[each] for each in used.datasets]
        count = len(set(labels))
        if count < 2:
            continue
        matrices, single = _drawn(used, draws, np.random.default_rng([seed, number]))
        cuts = [_cut(used, values, count) for values in matrices]
        together = np.mean([each[:, None] == each[None, :] for each in cuts], axis=0)
        low, high = np.quantile([agreement(labels, each) for each in cuts], [0.05, 0.95])
        mean = _cut(used, used.values, count)
        theirs = reference.profiles.select(list(used.datasets), list(used.perturbations))
        found.append(
            OwnGroups(
                name,
                tuple(used.datasets),
                tuple(used.perturbations),
                {each: str(label) for each, label in zip(used.datasets, mean, strict=True)},
                agreement(labels, mean),
                (float(low), float(high)),
                agreement(labels, _cut(used, theirs.values, count)),
                tuple(_stability(group, labels, used.datasets, together) for group in sorted(set(labels))),
                representative_frequency(used, mean.tolist(), matrices),
                single,
            )
        )
    return found


def representative_frequency(
    profiles: Profiles, labels: Sequence[Any], draws: Array, count: int | None = None
) -> dict[str, float]:
    """How often each dataset is chosen to represent the others if profiles vary within their error, the most frequent first.

    Args:
        profiles: Complete profiles.
        labels: Group of every dataset, [d].
        draws: Profiles that the runs do not rule out, [draws, d, p].
        count: Number of datasets to choose; see :func:`~grb.taxonomy.representatives`.
    """
    chosen = dict.fromkeys(profiles.datasets, 0)
    for values in draws:
        drawn = Profiles(profiles.datasets, profiles.perturbations, values, original=profiles.original)
        for name in representatives(drawn, labels, count).datasets:
            chosen[name] += 1
    shares = {name: hits / max(len(draws), 1) for name, hits in chosen.items()}
    return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))


def _drawn(profiles: Profiles, draws: int, generator: np.random.Generator) -> tuple[Array, bool]:
    """Profiles within their error, and whether there is none to know because every cell has one run."""
    if profiles.runs is None or int((~np.isnan(profiles.runs)).sum(2).max()) < 2:
        return profiles.values[None], True
    return student_draws(profiles, draws, generator), False


def _cut(profiles: Profiles, values: Array, count: int) -> Any:
    return cut(tree(Profiles(profiles.datasets, profiles.perturbations, values)), count)


def _stability(group: str, labels: Sequence[str], datasets: Sequence[str], together: Array) -> GroupStability:
    inside = np.array([label == group for label in labels])
    pairs = together[np.ix_(inside, inside)][np.triu_indices(int(inside.sum()), 1)]
    across = together[np.ix_(inside, ~inside)]
    kept = float(pairs.mean()) if pairs.size else None
    apart = float(1 - across.mean()) if across.size else None
    known = [each for each in (kept, apart) if each is not None]
    members = tuple(name for name, own in zip(datasets, inside, strict=True) if own)
    return GroupStability(group, members, kept, apart, min(known) >= STABLE if known else None)
