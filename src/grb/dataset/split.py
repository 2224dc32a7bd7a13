"""The difficulty split of GRB: three test sets whose nodes have few, some and many neighbours."""

from __future__ import annotations

import itertools
import math
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from grb.errors import DataError

Index = NDArray[np.int64]


class SplitIndex(TypedDict):
    """Disjoint sorted node ids that together hold every node once."""

    index_train: Index
    index_val: Index
    index_test_easy: Index
    index_test_medium: Index
    index_test_hard: Index


def difficulty_split(
    degrees: NDArray[Any],
    generator: np.random.Generator,
    *,
    train: float = 0.6,
    test: float = 0.1,
    cut: float = 0.05,
) -> SplitIndex:
    r"""Split the nodes of any graph into train, validation and easy, medium and hard test nodes.

    All nodes are ranked by degree. The ``cut`` lowest and ``cut`` highest are set aside, the rest forms three equal
    bands, and :math:`\lfloor \text{test} \cdot n \rfloor` nodes are drawn from each band. Of all nodes left over, those
    set aside included, :math:`\lfloor \text{train} \cdot n \rfloor` are train nodes and the others validation nodes.
    With the defaults the sizes are those of the shipped datasets: 1608, 268 and 3 x 268 for the 2680 nodes of grb-cora,
    1914, 320 and 3 x 319 for the 3191 nodes of grb-citeseer.

    Args:
        degrees: Number of neighbours of every node, [n].
        generator: Breaks ties between equal degrees and draws the samples; equal state, equal split.
        train: Share of all nodes to train on.
        test: Share of all nodes in *each* of the three test sets.
        cut: Share of all nodes set aside at each end of the ranking.

    Raises:
        DataError: If degrees are not a vector of finite numbers >= 0, or if a part would be empty (n < 10 by default).

    References:
        Zheng et al., *Graph Robustness Benchmark: Benchmarking the Adversarial Robustness of Graph Machine Learning*,
        NeurIPS Datasets and Benchmarks 2021, section 4.2.

    >>> split = difficulty_split(np.arange(10), np.random.default_rng(0))
    >>> [len(part) for part in split.values()]
    [6, 1, 1, 1, 1]
    """
    degrees = _checked(degrees)
    n = len(degrees)
    n_train, n_test, n_cut = (_whole(share, n) for share in (train, test, cut))
    bounds = [n_cut + band * (n - 2 * n_cut) // 3 for band in range(4)]
    _check_sizes(n, n_train, n_test, narrowest=int(min(np.diff(bounds))))

    ranked = _shuffled(np.arange(n, dtype=np.int64), generator)
    ranked = ranked[np.argsort(degrees[ranked], kind="stable")]
    easy, medium, hard = (_shuffled(ranked[lo:hi], generator)[:n_test] for lo, hi in itertools.pairwise(bounds))
    rest = _shuffled(np.setdiff1d(ranked, np.concatenate([easy, medium, hard])), generator)
    return {
        "index_train": np.sort(rest[:n_train]),
        "index_val": np.sort(rest[n_train:]),
        "index_test_easy": np.sort(easy),
        "index_test_medium": np.sort(medium),
        "index_test_hard": np.sort(hard),
    }


def _whole(share: float, n: int) -> int:
    if not 0 <= share <= 1:
        raise DataError(f"train, test and cut are shares of all nodes between 0 and 1, got {share}")
    # the small term makes 0.29 of 100 nodes 29, though the product is 28.999999999999996
    return math.floor(share * n + 1e-9)


def _shuffled(ids: Index, generator: np.random.Generator) -> Index:
    # Sorting uniform numbers instead of generator.permutation: numpy may change the latter's stream between releases.
    return ids[np.argsort(generator.random(len(ids)), kind="stable")]


def _checked(degrees: NDArray[Any]) -> NDArray[Any]:
    degrees = np.asarray(degrees)
    if degrees.ndim != 1:
        raise DataError(f"degrees must be a vector [n], got shape {degrees.shape}")
    if degrees.dtype.kind not in "iuf":
        raise DataError(f"degrees must be numbers, got dtype {degrees.dtype}")
    if degrees.size and not (np.isfinite(degrees).all() and degrees.min() >= 0):
        raise DataError("degrees must be finite and >= 0; count the neighbours of every node, e.g. np.diff(indptr)")
    return degrees


def _check_sizes(n: int, n_train: int, n_test: int, narrowest: int) -> None:
    n_val = n - n_train - 3 * n_test
    if min(n_train, n_test, n_val) < 1:
        raise DataError(
            f"cannot split {n} nodes into train {n_train}, validation {n_val} and three test sets of {n_test}, "
            "because none may be empty; the default shares need 10 nodes, use a larger graph or other shares"
        )
    if n_test > narrowest:
        raise DataError(
            f"each test set takes {n_test} nodes, but a band of the degree ranking has {narrowest}; lower test or cut"
        )
