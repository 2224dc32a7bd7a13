r"""Hash votes: every edit reaches few of many groups, so that a vote of all groups survives as many edits as its lead allows.

Edges (or senders of messages) are divided into groups by a hash. Each group is classified on its own, and the class with most
votes wins, ties to the smaller id. One edit changes at most one group, hence at most one vote of each node: nothing is
sampled, and the certificate holds with certainty.

References:
    Xia et al., *GNNCert: Deterministic Certification of Graph Neural Networks against Adversarial Perturbations*, ICLR 2024.
    Li and Wang, *AGNNCert: Defending Graph Neural Networks against Arbitrary Perturbations with Deterministic Certification*,
    USENIX Security 2025.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from grb.certificate.collective import ROUNDING, SolverError, maximum
from grb.certificate.confidence import Bools, Floats, Ints
from grb.errors import DataError


def winner(votes: Ints) -> Ints:
    """Class with most votes, ties to the smaller id, [n] from [n, C]."""
    return np.asarray(votes).argmax(1)


def vote_budget(votes: Ints) -> Ints:
    r"""Number of changed votes that the winner survives, for every node, [n].

    .. math:: M = \Big\lfloor \frac{N_a - \max_{b \ne a} (N_b + [b < a])}{2} \Big\rfloor

    Args:
        votes: Number of groups that vote for each class, [n, C].

    >>> vote_budget(np.array([[5, 3], [3, 5]])).tolist()
    [1, 0]
    """
    counts = _checked(votes)
    label, rows = winner(counts), np.arange(len(counts))
    classes = np.arange(counts.shape[1])
    rivals = counts + (classes[None, :] < label[:, None])
    rivals[rows, label] = -1
    return (counts[rows, label] - rivals.max(1)) // 2


def collective_broken(group_labels: Ints, budget: int, *, classes: int, exact: bool = False) -> int:
    r"""Largest number of nodes that can change together if at most ``budget`` groups are corrupted; an upper bound.

    A node changes to class :math:`b` only if the corrupted groups take enough from its winner: a corrupted group that voted
    :math:`a` takes two from the lead over :math:`b`, one that voted :math:`b` nothing, any other one. So with
    :math:`x_g \in [0, 1]`, :math:`\sum_g x_g \le B` and the lead :math:`m_{vb} = N_a - N_b - [b < a]`,

    .. math:: \max \sum_v y_v, \qquad y_v \le \sum_b y_{vb}, \quad y_{vb} (m_{vb} + 1) \le \sum_g w_{vgb} x_g, \quad y \le 1 .

    Args:
        group_labels: Class that every group says, [groups, n].
        budget: Groups that may be corrupted.
        classes: Number of classes.
        exact: Solve the integer program instead of its relaxation.

    Returns:
        How many nodes fall at most: the floor of the optimum.
    """
    labels = np.asarray(group_labels)
    groups, n = labels.shape
    if budget <= 0 or not n:
        return 0
    if budget >= groups:
        return n
    from scipy import sparse

    counts = count_votes(labels, classes)
    first = winner(counts)
    budgets = vote_budget(counts)
    reachable = np.flatnonzero(budgets < budget)
    rows: list[sparse.coo_array] = []
    owners: list[Ints] = []
    for rival in range(classes):
        nodes = reachable[first[reachable] != rival]
        lead = counts[nodes, first[nodes]] - counts[nodes, rival] - (rival < first[nodes])
        nodes, lead = nodes[lead < 2 * budget], lead[lead < 2 * budget]
        said = labels[:, nodes].T
        weight = 1 + (said == first[nodes][:, None]).astype(float) - (said == rival)
        rows.append(sparse.coo_array(weight / (lead + 1)[:, None]))
        owners.append(nodes)
    owner = np.concatenate(owners)
    if not len(owner):
        return 0
    taken = sparse.vstack(rows).tocsr()
    pairs, number = len(owner), len(reachable)
    position = np.full(n, -1)
    position[reachable] = np.arange(number)
    each = sparse.csr_array((np.ones(pairs), (position[owner], np.arange(pairs))), shape=(number, pairs))
    # variables: y_v, y_vb, x_g
    upper = sparse.vstack(
        [
            sparse.hstack([sparse.eye_array(number), -each, sparse.csr_array((number, groups))]),
            sparse.hstack([sparse.csr_array((pairs, number)), sparse.eye_array(pairs), -taken]),
            sparse.hstack([sparse.csr_array((1, number + pairs)), sparse.csr_array(np.ones((1, groups)))]),
        ]
    ).tocsr()
    limits = np.concatenate([np.zeros(number + pairs), [budget]])
    goal = np.concatenate([np.ones(number), np.zeros(pairs + groups)])
    try:
        most = _integer_maximum(goal, upper, limits) if exact else maximum(goal, upper, limits, np.ones(len(goal)))
    except SolverError:
        return number
    return min(number, int(np.floor(most + ROUNDING)))


def _integer_maximum(goal: Floats, matrix: Any, limits: Floats) -> float:
    """Optimum over zeros and ones."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    found = milp(
        -goal, constraints=LinearConstraint(matrix, ub=limits), bounds=Bounds(0, 1), integrality=np.ones(len(goal))
    )
    if found.status != 0:
        raise SolverError(f"the integer program was not solved ({' '.join(str(found.message).split())[:120]})")
    return float(-found.fun)


def count_votes(group_labels: Ints, classes: int) -> Ints:
    """Number of groups that say each class, [n, classes] from [groups, n]."""
    labels = np.asarray(group_labels)
    counts = np.zeros((labels.shape[1], classes), dtype=np.int64)
    nodes = np.arange(labels.shape[1])
    for said in labels:
        counts[nodes, said] += 1
    return counts


def certified_at(votes: Ints, edits: int) -> Bools:
    """Whether every node survives that many edits, [n]."""
    return vote_budget(votes) >= edits


def _checked(votes: Ints) -> Ints:
    counts = np.array(votes, dtype=np.int64)
    if counts.ndim != 2 or counts.shape[1] < 2 or (counts < 0).any():
        raise DataError(f"votes have shape {list(counts.shape)}, but counts of [nodes, two or more classes] are needed")
    return counts
