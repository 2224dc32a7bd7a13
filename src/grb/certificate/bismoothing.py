r"""Node-aware bi-smoothing: certificates for injected nodes of any features and any wiring.

Smoothing deletes every edge with probability :math:`p_e` and every node, with all its edges, with :math:`p_n`. An injected
node of at most :math:`\tau` edges is *inert* if it is deleted or all its edges vanish:

.. math:: q = p_n + (1 - p_n)\, u^{\tau}, \qquad u = p_e + p_n - p_e p_n ,

and all of :math:`\rho` injected nodes are inert with probability at least :math:`q^\rho`.

References:
    Lai et al., *Node-aware Bi-smoothing: Certified Robustness against Graph Injection Attacks*, IEEE S&P 2024.
"""

from __future__ import annotations

import math

import numpy as np

from grb.certificate.confidence import Bools, Floats, Ints
from grb.errors import DataError


def inert(edges_per_node: int, *, p_edge: float, p_node: float) -> float:
    """Probability that one injected node has no influence, :math:`q`.

    >>> round(inert(6, p_edge=0.9, p_node=0.8), 6), round(inert(5, p_edge=0.8, p_node=0.9), 6)
    (0.977168, 0.990392)
    """
    for name, value in (("p_edge", p_edge), ("p_node", p_node)):
        if not 0 <= value <= 1:
            raise DataError(f"{name} is {value}, but a probability is between 0 and 1")
    if edges_per_node < 0:
        raise DataError(f"edges_per_node is {edges_per_node}, but must not be negative")
    vanish = p_edge + p_node - p_edge * p_node
    return p_node + (1 - p_node) * vanish**edges_per_node


def largest_injection(edges_per_node: int, *, p_edge: float, p_node: float) -> int:
    """Largest number of injected nodes for which anything can be certified.

    >>> largest_injection(6, p_edge=0.9, p_node=0.8), largest_injection(5, p_edge=0.8, p_node=0.9)
    (30, 71)
    """
    chance = inert(edges_per_node, p_edge=p_edge, p_node=p_node)
    if chance >= 1:
        return 2**31 - 1
    return math.floor(math.log(0.5) / math.log(chance)) if chance > 0 else 0


def certified_included(low: Floats, high: Floats, all_inert: Floats | float) -> Bools:
    r"""The published rule if every node votes, also a deleted or isolated one: :math:`\tilde p\,(p_A - p_B + 1) > 1`, [n].

    It holds where votes do not depend on which original nodes are deleted; :func:`certified_soundly` holds always.
    """
    return np.asarray(all_inert * (low - high + 1) > 1 + 1e-12)


def certified_excluded(
    low: Floats, high: Floats, all_inert: Floats | float, degrees: Ints, *, p_edge: float, p_node: float
) -> Bools:
    r"""Certified if deleted and isolated nodes do not vote, as under poisoning, [n].

    With :math:`p_0 = p_n + (1 - p_n) u^{d}` and :math:`p_2 = p_n + (1 - p_n) u^{2d}`:
    :math:`\tilde p\,(p_A - \frac{1 - p_2}{1 - p_0} p_B + 1 - p_2) > 1 - p_2`.

    Args:
        low: Lower bound of the leading class among the votes, [n].
        high: Upper bound of every other class, [n].
        all_inert: :math:`\tilde p = q^\rho`.
        degrees: Neighbours of every node, [n].
        p_edge: Probability that an edge is deleted.
        p_node: Probability that a node is deleted.
    """
    vanish = p_edge + p_node - p_edge * p_node
    silent = p_node + (1 - p_node) * vanish ** np.asarray(degrees, dtype=float)
    doubled = 1 - (p_node + (1 - p_node) * vanish ** (2 * np.asarray(degrees, dtype=float)))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(silent < 1, doubled / (1 - silent), np.inf)
        kept = all_inert * (low - ratio * high + doubled)
    return np.asarray((kept > doubled + 1e-12) & (silent < 1))


def certified_soundly(
    low: Floats, high: Floats, count: Ints | int, edges_per_node: int, *, p_edge: float, p_node: float
) -> Bools:
    r"""Certified if every node votes, whatever the votes depend on, [n].

    With :math:`\iota(z)` the probability that all injected nodes are inert given what smoothing left of the original graph and
    :math:`g = 1 + [f(z) = A] - [f(z) = B]`, the class keeps its lead iff :math:`E[\iota g] > 1` in the worst case. The
    published rule takes :math:`E[\iota g] = E[\iota]\,E[g]`; but an injected edge vanishes with its original end as well, so
    that :math:`\iota` depends on which original nodes are left, and so do votes. Two bounds hold without independence:

    .. math:: E[\iota g] \ge \big(p_n + (1 - p_n)\, p_e^{\tau}\big)^{\rho} E[g], \qquad
              E[\iota g] \ge E[g] - 2 (1 - q^\rho) .

    The test has a classifier of a few nodes that the published rule certifies and one injected node breaks.
    """
    gain = low - high + 1
    least = (p_node + (1 - p_node) * p_edge**edges_per_node) ** count
    mean = inert(edges_per_node, p_edge=p_edge, p_node=p_node) ** count
    return np.asarray(np.maximum(least * gain, gain - 2 * (1 - mean)) > 1 + 1e-12)


def injected_nodes(low: Floats, high: Floats, *, edges_per_node: int, p_edge: float, p_node: float, most: int) -> Ints:
    """Largest number of injected nodes that every node survives, [n]; at most ``most``, -1 where the vote abstains."""
    ahead = np.asarray(low > high)
    least, beyond = np.where(ahead, 0, -1).astype(np.int64), np.full(len(ahead), most + 1)
    # whoever survives a number survives every smaller one: what is open between the two is halved
    while (between := ahead & (beyond - least > 1)).any():
        middle = (least + beyond) // 2
        kept = certified_soundly(low, high, middle, edges_per_node, p_edge=p_edge, p_node=p_node)
        least = np.where(between & kept, middle, least)
        beyond = np.where(between & ~kept, middle, beyond)
    return least
