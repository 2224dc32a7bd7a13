r"""Message-interception smoothing: what a hijacked node sends must arrive before it can change a prediction.

Smoothing deletes every directed edge with probability :math:`p_d` and replaces the features of every node by a token with
:math:`p_a`. A node :math:`w` whose features an adversary controls reaches :math:`v` with probability at most

.. math:: \delta_w(v) = (1 - p_a) \Big(1 - \prod_{P : w \to v} (1 - (1 - p_d)^{|P|})\Big)

over the simple paths of at most as many edges as the network has layers; its own prediction with :math:`1 - p_a`. With
:math:`r` hijacked nodes :math:`\Delta = 1 - \prod_{i \le r} (1 - \delta_{(i)})` over the largest, and a node is certified if
:math:`\underline p - \Delta > \overline p + \Delta`. Features may change in any way.

References:
    Scholten et al., *Randomized Message-Interception Smoothing: Gray-box Certificates for Graph Neural Networks*, NeurIPS 2022.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from grb.certificate.confidence import Bools, Floats, Ints
from grb.errors import DataError


def arrival(paths: list[int], *, p_delete: float, p_ablate: float) -> float:
    """Largest probability that a message arrives over paths of the given lengths.

    >>> round(arrival([1], p_delete=0.361449, p_ablate=0.794), 6), round(arrival([2], p_delete=0.361449, p_ablate=0.794), 6)
    (0.131542, 0.083996)
    """
    _check(p_delete, p_ablate)
    blocked = np.prod([1 - (1 - p_delete) ** length for length in paths]) if paths else 0.0
    return float((1 - p_ablate) * (1 - blocked))


def arrivals(adj: Any, targets: Ints, *, p_delete: float, p_ablate: float, own: bool = True) -> Any:
    """Probability of arrival from every node within two hops at every target, for networks of two layers.

    Args:
        adj: Adjacency of an undirected graph, a scipy sparse matrix [n, n].
        targets: Ids, [t].
        p_delete: Probability that a directed edge is deleted.
        p_ablate: Probability that features are replaced.
        own: Whether the adversary may control the target itself; with a skip connection of clean features it is left out.

    Returns:
        A scipy CSR matrix [t, n] of the probabilities.
    """
    from scipy import sparse

    _check(p_delete, p_ablate)
    ones = sparse.csr_array((np.ones(adj.nnz), adj.indices, adj.indptr), shape=adj.shape)
    direct = ones[targets]
    # simple paths of two edges: one for every common neighbour, the way back to the target is none
    around = without_returns(direct @ ones, targets)
    keep = 1 - p_delete
    with np.errstate(divide="ignore"):  # nothing is deleted: every message arrives
        logs = direct * np.log(1 - keep) + around * np.log(1 - keep**2)
    logs = logs.tocsr()
    logs.data = (1 - p_ablate) * -np.expm1(logs.data)
    if own:
        itself = sparse.csr_array(
            (np.full(len(targets), 1 - p_ablate), (np.arange(len(targets)), targets)), shape=logs.shape
        )
        logs = logs + itself
    return logs.tocsr()


def without_returns(walks: Any, targets: Ints) -> Any:
    """Counts of walks without those that end at their own target, a scipy CSR matrix [t, n]."""
    found = walks.tocsr()
    rows = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr))
    found.data[found.indices == np.asarray(targets)[rows]] = 0
    found.eliminate_zeros()
    return found


def largest_sum(probabilities: Any, count: int) -> Floats:
    """Probability that one of the ``count`` most influential nodes arrives, for every row of :func:`arrivals`, [t]."""
    rows = np.repeat(np.arange(probabilities.shape[0]), np.diff(probabilities.indptr))
    order = np.lexsort((-probabilities.data, rows))
    rank = np.arange(len(order)) - probabilities.indptr[rows]
    first = rank < count
    total = np.zeros(probabilities.shape[0])
    with np.errstate(divide="ignore"):
        np.add.at(total, rows[first], np.log1p(-probabilities.data[order][first]))
    return -np.expm1(total)


def hijacked_nodes(low: Floats, high: Floats, probabilities: Any, most: int) -> Ints:
    """Largest number of hijacked nodes that every target survives, [t]; at most ``most``, -1 where the vote abstains."""
    found = np.where(low > high, 0, -1).astype(np.int64)
    alive = low > high
    for count in range(1, min(most, probabilities.shape[1]) + 1):
        alive &= _ahead(low, high, largest_sum(probabilities, count))
        if not alive.any():
            return found
        found[alive] = count
    found[alive] = most  # there are no more nodes
    return found


def _ahead(low: Floats, high: Floats, lost: Floats) -> Bools:
    return low - lost > high + lost + 1e-12


def _check(p_delete: float, p_ablate: float) -> None:
    for name, value in (("p_delete", p_delete), ("p_ablate", p_ablate)):
        if not 0 <= value <= 1:
            raise DataError(f"{name} is {value}, but a probability is between 0 and 1")
