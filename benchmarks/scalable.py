"""Synthetic graphs of any size, for benchmarks of speed and memory.

Same parts as :mod:`grb.dataset.synthetic`, with numbers that suit many nodes. The named sizes have the node, edge,
feature and class counts of the five GRB datasets and, within about a fifth, their mean degrees per difficulty; nothing
else is fitted, so scores on them mean nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from grb.dataset.synthetic import Arrays, Recipe, make
from grb.errors import DataError, UnknownName


@dataclass(frozen=True)
class Size:
    """Counts of a graph and the shape of its degree distribution; see :func:`scale_graph`."""

    nodes: int
    edges: int
    features: int
    classes: int
    homophily: float
    tail: float
    heaviest: int
    evenness: float


SIZES = {
    "cora": Size(2_680, 5_148, 302, 7, homophily=0.81, tail=2.1, heaviest=170, evenness=1.8),
    "citeseer": Size(3_191, 4_172, 768, 6, homophily=0.74, tail=1.5, heaviest=100, evenness=1.8),
    "flickr": Size(89_250, 449_878, 500, 7, homophily=0.32, tail=2.4, heaviest=100, evenness=0.0),
    "reddit": Size(232_965, 11_606_919, 602, 41, homophily=0.76, tail=1.7, heaviest=30, evenness=0.7),
    "aminer": Size(659_574, 2_878_577, 100, 18, homophily=0.70, tail=1.7, heaviest=100, evenness=0.7),
}


def named_graph(name: str, seed: int = 0) -> Arrays:
    """A synthetic graph of the size of a GRB dataset: cora, citeseer, flickr, reddit or aminer."""
    if name not in SIZES:
        raise UnknownName("size", name, SIZES, advice=f"There are {', '.join(SIZES)}.")
    return scale_graph(**vars(SIZES[name]), seed=seed)


def scale_graph(
    nodes: int,
    edges: int,
    features: int,
    classes: int,
    seed: int,
    *,
    homophily: float = 0.8,
    closure: float = 0.3,
    tail: float = 2.1,
    heaviest: int = 170,
    evenness: float = 1.0,
) -> Arrays:
    r"""Draw a graph with communities and power-law degrees, with features, labels and a difficulty split.

    The labels are the communities; class :math:`k = 1, 2, \dots` has a share proportional to :math:`1 / \sqrt{k}`.
    Time and memory grow with the edges and with nodes times features; features are made a few thousand rows at a time.

    Args:
        nodes: Exact number of nodes, at least 10.
        edges: Exact number of undirected edges; no duplicates, no self-loops.
        features: Columns of the features.
        classes: Number of classes.
        seed: Equal seed, equal arrays.
        homophily: Wanted share of edges between nodes of equal label. It comes out one or two points lower, because
            picks that repeat an edge or return to their start are dropped, and most of those are inside a community.
        closure: Share of the picks inside a community that close a triangle.
        tail: Exponent of the power law of the expected degrees; smaller is heavier.
        heaviest: Largest expected degree, in units of the smallest.
        evenness: Mean of the Poisson number added to the power law; larger makes degrees more equal.

    Raises:
        DataError: If a number is out of its range, or the edges do not fit.
    """
    _check(nodes, edges, features, classes, homophily)
    rank = max(classes, min(32, features))
    return make(
        Recipe(
            nodes=nodes,
            edges=edges,
            features=features,
            shares=tuple(1 / math.sqrt(k) for k in range(1, classes + 1)),
            seed=seed,
            homophily=homophily,
            closure=closure,
            tail=tail,
            heaviest=heaviest,
            evenness=evenness,
            rounds=6,
            rank=rank,
            separation=2.6 / math.sqrt(rank),
            relabelled=0.0,
        )
    )


def _check(nodes: int, edges: int, features: int, classes: int, homophily: float) -> None:
    if not 1 <= classes <= nodes:
        raise DataError(f"a graph of {nodes} nodes has between 1 and {nodes} classes, got {classes}")
    if features < 1:
        raise DataError(f"a graph needs at least 1 feature, got {features}")
    if not 0 <= edges <= nodes * (nodes - 1) // 2:
        raise DataError(f"{nodes} nodes have between 0 and {nodes * (nodes - 1) // 2} edges, got {edges}")
    if not 0 <= homophily <= 1:
        raise DataError(f"homophily is a share between 0 and 1, got {homophily}")
