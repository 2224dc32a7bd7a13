r"""Bounded influence: every malicious neighbour has one bounded vote, so that the number that a label survives is exact.

References:
    The counting is that of majority votes; see Levine and Feizi, *Deep Partition Aggregation*, ICLR 2021, for votes of parts
    of a training set.
"""

from __future__ import annotations

import numpy as np

from grb.certificate.confidence import Bools, Floats, Ints
from grb.certificate.result import UNLIMITED
from grb.errors import DataError


def malicious_votes(own: Floats, heard: Floats, count: Ints, influence: float, slack: Floats | float = 0.0) -> Ints:
    r"""Largest number of malicious votes that every label survives, [t]; -1 where the lead is no more than ``slack``.

    The label :math:`a = \arg\max s_v` of :math:`s_v = z_v + c\, V_v / N`, with :math:`V_v` the sum of :math:`n` votes from the
    simplex and :math:`N = n + 1`, survives :math:`k` further votes, whatever they say, iff for all :math:`b \ne a`

    .. math:: z_a - z_b + c\, \frac{V_a - V_b - k}{N + k} > \epsilon ,

    because a vote takes most from the lead if all of it goes to :math:`b`. The left side falls with :math:`k` to
    :math:`z_a - z_b - c`, hence

    .. math:: k_v = \min_b \Big\lceil \frac{l N + c\,(V_a - V_b)}{c - l} \Big\rceil - 1, \qquad l = z_a - z_b - \epsilon ,

    and any number where :math:`l \ge c`.

    Args:
        own: Logits without unknown nodes, :math:`z`, [t, classes].
        heard: Sums of the votes that are there already, :math:`V`, [t, classes].
        count: Number of these votes, :math:`n`, [t].
        influence: :math:`c`.
        slack: Lead that rounding explains, :math:`\epsilon`, [t] or one for all.

    >>> malicious_votes([[0.5, 0.0], [2.0, 0.0]], [[1.0, 0.0], [0.0, 0.0]], [1, 0], 1.0).tolist()
    [3, 2147483647]
    """
    z, votes = np.asarray(own, dtype=np.float64), np.asarray(heard, dtype=np.float64)
    if z.ndim != 2 or z.shape != votes.shape or z.shape[1] < 2 or len(np.asarray(count)) != len(z):
        raise DataError(f"logits of shape {list(z.shape)} and votes of shape {list(votes.shape)} do not fit together")
    if not 0 <= influence < np.inf:
        raise DataError(f"influence is {influence}, but a finite number of at least 0 is needed")
    seats = np.asarray(count, dtype=np.float64)[:, None] + 1
    label, rows = (z + influence * votes / seats).argmax(1), np.arange(len(z))
    lead = z[rows, label][:, None] - z - np.broadcast_to(np.asarray(slack, dtype=np.float64), len(z))[:, None]
    ahead = lead * seats + influence * (votes[rows, label][:, None] - votes)
    room = influence - lead
    with np.errstate(divide="ignore", invalid="ignore"):
        # a quotient that is a whole number but for rounding counts as that number, which is one vote too many
        most = np.where(room > 0, np.ceil(ahead / room * (1 - 1e-9)) - 1, UNLIMITED)
    most = np.where(ahead > 0, np.clip(most, 0, UNLIMITED), -1)
    most[rows, label] = UNLIMITED
    found: Ints = most.min(1).astype(np.int64)
    return found


def fallen_together(budgets: Ints, *, nodes: int, edges_per_node: int) -> int:
    r"""Largest number of labels that fall together under one injection: the cheapest ones.

    A label that survives :math:`k_v` malicious neighbours costs :math:`k_v + 1` edges, which must come from different injected
    nodes; all of them have :math:`B` = ``nodes * edges_per_node``. So at most the cheapest with
    :math:`\sum (k_v + 1) \le B` fall, and only those with :math:`k_v` < ``nodes``.

    Args:
        budgets: Malicious neighbours that every label survives, [t]; -1 falls for nothing.
        nodes: Number of injected nodes.
        edges_per_node: Edges of each.

    >>> fallen_together([0, 1, 4, 9], nodes=5, edges_per_node=1), fallen_together([0, 1, 4, 9], nodes=5, edges_per_node=9)
    (2, 3)
    """
    costs = np.asarray(budgets, dtype=np.int64) + 1
    reachable = np.sort(costs[costs <= nodes])
    return int((reachable.cumsum() <= nodes * edges_per_node).sum())


def survives(budgets: Ints, neighbours: Ints) -> Bools:
    """Whether every label survives that many malicious neighbours, [t]."""
    return np.asarray(np.asarray(budgets) >= np.asarray(neighbours))
