"""The published results of the taxonomy paper, shipped with the package as numbers."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

import numpy as np

from grb.errors import UnknownName
from grb.taxonomy.components import Components, principal_components
from grb.taxonomy.profile import Array, Profiles, from_auroc
from grb.taxonomy.uncertainty import SeedSpread

CITATION = (
    "Liu, Cantürk, Wenkel, McGuire, Wang, Little, O'Bray, Perlmutter, Rieck, Hirn, Wolf, Rampášek: "
    "Taxonomy of Benchmarks in Graph Representation Learning. Learning on Graphs Conference, 2022."
)
MEANS_ONLY = "published means over nominally ten seeds or folds; the runs behind them are not known"


@dataclass(frozen=True, eq=False)
class Reference:
    """A published taxonomy.

    Args:
        name: ``inductive`` or ``transductive``.
        models: Profiles by model; those of GCN are the paper's main ones. ChebNet, GatedGCN and GCNII lack FullyConn of the
            largest graphs.
        groups: The paper's group of every dataset.
        representatives: The datasets that the paper recommends.
        cut: Number of groups to cut the tree into to find the paper's.
        joins: Pairs of these groups, counted from the top, that are then merged.
    """

    name: str
    models: Mapping[str, Profiles]
    groups: Mapping[str, str]
    representatives: tuple[str, ...]
    cut: int
    joins: tuple[tuple[int, int], ...] = ()

    @property
    def profiles(self) -> Profiles:
        """Profiles of GCN, the paper's main ones."""
        return self.models["GCN"]


_FACTS = {
    "inductive": (
        ("GCN", "GIN", "GIN-2L", "ChebNet", "GatedGCN", "GCNII"),
        ("PCQM4Mv2-subset", "CIFAR10", "D&D", "ogbg-molpcba", "NCI1", "COLLAB", "REDDIT-MULTI-5K", "CLUSTER"),
        4,
        ((3, 4),),
    ),
    "transductive": (
        ("GCN",),
        ("WebKB-Wis", "Actor", "WikiNet-cham", "WikiCS", "Flickr", "WikiNet-squir", "Twitch-EN", "Github"),
        3,
        (),
    ),
}
PUBLISHED = tuple(_FACTS)
PROPERTIES = (
    "nodes",
    "edges",
    "density",
    "connectivity",
    "diameter",
    "max_clique",
    "centrality",
    "clustering",
    "triangles",
)
"""The columns of Table D.1."""


def published(name: str) -> Reference:
    """The paper's results on its ``inductive`` or its ``transductive`` datasets.

    References:
        Liu et al., *Taxonomy of Benchmarks in Graph Representation Learning*, LoG 2022; numbers from the authors' result files.

    >>> reference = published("transductive")
    >>> reference.profiles.values.shape, reference.groups["Actor"]
    ((25, 11), 'T-1')
    """
    if name not in _FACTS:
        raise UnknownName("published taxonomy", name, PUBLISHED, advice=f"Allowed: {', '.join(PUBLISHED)}.")
    return _read(name)


@cache
def _read(name: str) -> Reference:
    models, chosen, groups, joins = _FACTS[name]
    found = {}
    for model in models:
        header, *rows = _table(f"auroc-{name}-{model.lower()}.csv")
        scores = np.array([[float(cell) if cell else np.nan for cell in row[1:]] for row in rows])
        own = from_auroc([row[0] for row in rows], header[2:], scores[:, 0], scores[:, 1:], model=model)
        own.values.setflags(write=False)
        found[model] = replace(own, notes=(MEANS_ONLY,))
    labels = {row[0]: row[1] for row in _table(f"groups-{name}.csv")[1:]}
    return Reference(name, found, labels, chosen, groups, joins)


def published_properties() -> dict[tuple[str, int], dict[str, float]]:
    """Table D.1: mean properties of the graphs of one class, by dataset and class."""
    return {(row[0], int(row[1])): dict(zip(PROPERTIES, map(float, row[2:]))) for row in _table("properties.csv")[1:]}


def property_components(table: Mapping[tuple[str, int], Mapping[str, float]] | None = None) -> Components:
    """Principal components of classical properties, scaled to equal deviations (Figure D.1).

    Args:
        table: Properties by dataset and class; those of the paper if not given.
    """
    chosen = published_properties() if table is None else table
    rows: Array = np.array([[own[name] for name in PROPERTIES] for own in chosen.values()])
    names = [f"{dataset} ({label})" for dataset, label in chosen]
    return principal_components(names, PROPERTIES, rows, scaled=True)


def published_seed_study() -> dict[str, list[SeedSpread]]:
    """Tables E.1 and E.2: AUROC of Frag-k over ten seeds, by model."""
    found: dict[str, list[SeedSpread]] = {}
    for model, dataset, perturbation, mean, std, percent in _table("fragmentation-seeds.csv")[1:]:
        row = SeedSpread(dataset, perturbation, 10, float(mean), float(std), float(percent))
        found.setdefault(model, []).append(row)
    return found


def _table(name: str) -> list[list[str]]:
    text = resources.files("grb.taxonomy").joinpath("published").joinpath(name).read_text(encoding="utf-8")
    return list(csv.reader(text.splitlines()))
