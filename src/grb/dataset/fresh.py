"""Fresh graphs: a part of the world that shares no node and no edge with the one that models are trained on.

In the published inductive split a defender knows most of the graph that it is tested on, so that a model which listens to
known nodes only cannot be changed by any injection. Here whole communities are cut off as the test graph, and memory of the
training graph does not help.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grb.dataset.raw_arrays import RawArrays
from grb.dataset.splits import Index
from grb.errors import DataError
from grb.graph import Adjacency

# fraction of nodes in the test graph, and of the others that validate; above 1 the resolution gives smaller communities
TEST, VAL, RESOLUTION = 0.3, 1 / 7, 2.0
# fraction of the wanted nodes of a class that a community may be too many
SLACK = 0.05


def fresh(raw: RawArrays, *, seed: int = 0, test: float = TEST, resolution: float = RESOLUTION) -> RawArrays:
    r"""Cut whole communities off as the test graph.

    Louvain communities join the test graph, the largest first, if they fit into the wanted number of nodes of every class,
    :math:`\lfloor \text{test} \cdot n_c \rceil` of class c; then communities go in and out as long as that brings the counts
    nearer. Edges between the two parts are dropped. Test nodes
    are easy, medium or hard by thirds of their degree inside the test graph; of the others one in seven validates.

    Args:
        raw: A single graph with one class per node.
        seed: Random seed of the communities and of the validation nodes.
        test: Fraction of nodes in the test graph.
        resolution: Louvain's; larger values give smaller communities and better balanced classes, and cut more edges.

    References:
        Blondel et al., *Fast unfolding of communities in large networks*, 2008.
    """
    y = np.asarray(raw.y)
    if raw.sizes is not None or y.ndim != 1:
        raise DataError(f"'{raw.name}' has no fresh graph: a single graph with one class per node is needed")
    source, target = raw.edge_index
    inside = _balanced(_communities(raw.n, source, target, seed, resolution), y, test)
    kept = inside[source] == inside[target]
    ids = np.flatnonzero(inside)
    if len(ids) < 3 or inside.all():
        raise DataError(f"'{raw.name}' cannot be cut into a training and a test graph: it has too few communities")
    degrees = np.bincount(source[kept], minlength=raw.n)[ids]
    generator = np.random.default_rng(seed)
    ranked = ids[np.lexsort((generator.random(len(ids)), degrees))]
    bands = dict(zip(("easy", "medium", "hard"), np.array_split(ranked, 3), strict=True))
    rest = np.flatnonzero(~inside)
    rest = rest[np.argsort(generator.random(len(rest)), kind="stable")]
    val = max(1, int(VAL * len(rest)))
    lost = int((~kept).sum()) // (2 if isinstance(raw.edges, Adjacency) else 1)
    note = f"{len(ids)} nodes in whole communities are the test graph; {lost} edges to the others were dropped"
    split = {
        "train": np.sort(rest[val:]),
        "val": np.sort(rest[:val]),
        **{name: np.sort(own) for name, own in bands.items()},
    }
    weights = None if raw.weights is None else np.asarray(raw.weights)[kept]
    return replace(
        raw,
        edges=np.stack([source[kept], target[kept]]),
        weights=weights,
        splits=[split],
        scheme=None,
        notes=[*raw.notes, note],
    )


def _communities(n: int, source: Index, target: Index, seed: int, resolution: float) -> NDArray[np.int64]:
    """Number of the community of every node, [n]; 0 is the largest."""
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(zip(source.tolist(), target.tolist(), strict=True))
    found = nx.community.louvain_communities(graph, seed=seed, resolution=resolution)
    numbers = np.empty(n, dtype=np.int64)
    for number, nodes in enumerate(sorted(found, key=lambda nodes: (-len(nodes), min(nodes)))):
        numbers[list(nodes)] = number
    return numbers


def _balanced(communities: NDArray[np.int64], y: NDArray[Any], test: float) -> NDArray[np.bool_]:
    """Which nodes are in the test graph, [n]: whole communities with the wanted number of nodes of every class."""
    classes = np.unique(y, return_inverse=True)[1]
    counts = np.zeros((communities.max() + 1, classes.max() + 1), dtype=np.int64)
    np.add.at(counts, (communities, classes), 1)
    wanted = np.rint(test * counts.sum(0)).astype(np.int64)
    left, chosen = wanted.copy(), np.zeros(len(counts), dtype=bool)
    for number, own in enumerate(counts):  # communities, not nodes: a few hundred; first those that fit
        if (own <= left + SLACK * wanted).all():
            chosen[number] = True
            left -= own
    while True:  # then whatever brings the counts nearer, in or out, the best first
        moved = left + np.where(chosen, 1, -1)[:, None] * counts
        distances = np.abs(moved).sum(1)
        best = int(distances.argmin())
        if distances[best] >= np.abs(left).sum():
            return np.asarray(chosen[communities])
        chosen[best], left = not chosen[best], moved[best]
