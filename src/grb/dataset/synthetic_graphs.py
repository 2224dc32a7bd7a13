"""``synth-graphs``: a small collection made from a seed, so that graph classification runs without a download.

Nodes have one of three types. In graphs of class 0 edges rather join equal types, in those of class 1 different ones: the
classes are distinguishable by their edges alone. Like the other synthetic datasets it is the same on every machine, because
only ``Generator.random`` is drawn from and nothing but products and comparisons follows.
"""

from __future__ import annotations

import numpy as np

from grb.dataset.raw_arrays import RawArrays
from grb.graph import adjacency_from_edges

NAME = "synth-graphs"
GRAPHS, FEWEST, MOST, TYPES, SEED = 200, 10, 18, 3, 7
# edges per node, and what the random number of a pair that does not suit its class is multiplied by
EDGES, UNSUITED = 1.2, 0.8


def load() -> RawArrays:
    """The dataset: 200 graphs of 10 to 18 nodes, two classes, ten folds."""
    rng = np.random.default_rng(SEED)
    sizes = FEWEST + np.floor(rng.random(GRAPHS) * (MOST + 1 - FEWEST)).astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    types = np.floor(rng.random(int(sizes.sum())) * TYPES).astype(np.int64)
    labels = np.arange(GRAPHS) % 2
    edges = []
    for start, size, label in zip(starts, sizes, labels, strict=True):
        pairs = np.stack(np.triu_indices(int(size), 1)) + start
        alike = types[pairs[0]] == types[pairs[1]]
        keys = rng.random(pairs.shape[1]) * np.where(alike == (label == 0), 1.0, UNSUITED)
        edges.append(pairs[:, np.argsort(-keys, kind="stable")[: round(EDGES * int(size))]])
    adj, _ = adjacency_from_edges(np.concatenate(edges, axis=1), len(types))
    x = np.eye(TYPES, dtype=np.float32)[types]
    return RawArrays(NAME, len(types), adj, labels, x=x, sizes=sizes).with_own_scheme()
