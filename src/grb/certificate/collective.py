r"""Collective certificates: one edit must break many predictions at once, which its budget and the network's reach limit.

A prediction sees only what lies in its receptive field. So an adversary with one budget for the whole graph cannot give every
node the change that its own certificate allows for; how many can fall together is bounded by a linear program.

References:
    Schuchardt et al., *Collective Robustness Certificates: Exploiting Interdependence in Graph Neural Networks*, ICLR 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grb.certificate.confidence import Bools, Floats, Ints
from grb.errors import DataError, GRBError

ROUNDING = 1e-6


class SolverError(GRBError):
    """A linear program that HiGHS did not solve; the sentence says its reason."""


@dataclass(frozen=True, eq=False)
class Dimension:
    """One kind of change: set bits, deleted bits, deleted edges.

    Args:
        field: Which units (nodes or edges) every prediction sees, a scipy sparse 0/1 matrix [t, units].
        budget: Changes in all.
        most: Changes of one unit; 1 for edges, infinite for bits of a node.
        local: Further limit per unit, from the threat model; infinite for none.
    """

    field: Any
    budget: float
    most: float = np.inf
    local: float = np.inf


def receptive_field(adj: Any, targets: Ints, hops: int) -> Any:
    """Nodes within ``hops`` of every target, a scipy CSR 0/1 matrix [t, n]."""
    from scipy import sparse

    looped = (sparse.csr_array(adj) + sparse.eye_array(adj.shape[0])).tocsr()
    looped.data[:] = 1
    reach = sparse.csr_array(sparse.eye_array(adj.shape[0], format="csr")[targets])
    for _ in range(hops):
        reach = (reach @ looped).tocsr()
        reach.data[:] = 1
    return reach


def edge_field(adj: Any, targets: Ints, hops: int) -> tuple[Any, Ints]:
    """Undirected edges that the prediction of every target sees, [t, edges], and both ends of every edge, [2, edges].

    A network of ``hops`` layers sees an edge if one end is within ``hops - 1`` and the other within ``hops`` of the target;
    degrees that a normalisation takes from one more hop count as seen too, so give one hop more for those.
    """
    from scipy import sparse

    upper = sparse.triu(sparse.csr_array(adj), k=1).tocoo()
    ends = np.stack([upper.row, upper.col]).astype(np.int64)
    near = receptive_field(adj, targets, max(hops - 1, 0)).tocsc()
    seen = (near[:, ends[0]] + near[:, ends[1]]).tocsr()
    if seen.nnz:
        seen.data[:] = 1
    return seen, ends


def smallest_uncertified(grid: Bools) -> Ints:
    """Smallest budget at which every node is not certified, [n] from [n, budgets]; certificates are down-closed."""
    certified = np.asarray(grid, dtype=bool)
    return np.where(certified.all(1), certified.shape[1], (~certified).argmax(1)).astype(np.int64)


def collective_attacked(thresholds: Ints, field: Any, budget: float, *, local: float = np.inf) -> float:
    r"""Most predictions that can change together, for one kind of change: the optimum of

    .. math:: \max \sum_i y_i, \qquad y_i t_i \le \sum_{u \in F_i} b_u, \quad \sum_u b_u \le B, \quad 0 \le y \le 1,
              \; 0 \le b \le \text{local}.

    Args:
        thresholds: Smallest uncertified budget :math:`t_i` of every prediction, [t]; 0 if it is not certified at all.
        field: Units that each prediction sees, [t, units].
        budget: Changes in all, :math:`B`.
        local: Most changes of one unit.

    >>> from scipy import sparse
    >>> collective_attacked(np.array([1, 1, 5]), sparse.eye_array(3, format="csr"), 1)
    1.0
    """
    from scipy import sparse

    lost = int((thresholds <= 0).sum())
    rows = np.flatnonzero((thresholds > 0) & (thresholds <= budget))
    if not len(rows) or budget <= 0:
        return float(lost)
    seen = sparse.csr_array(field)[rows]
    used = np.flatnonzero(seen.sum(0) > 0)
    if not len(used):
        return float(lost)
    scaled = sparse.diags_array(1.0 / thresholds[rows]) @ seen[:, used]
    matrix = sparse.vstack(
        [
            sparse.hstack([sparse.eye_array(len(rows)), -scaled]),
            sparse.hstack([sparse.csr_array((1, len(rows))), sparse.csr_array(np.ones((1, len(used))))]),
        ]
    )
    limits = np.concatenate([np.zeros(len(rows)), [budget]])
    bounds = np.concatenate([np.ones(len(rows)), np.full(len(used), min(local, budget))])
    return lost + maximum(np.concatenate([np.ones(len(rows)), np.zeros(len(used))]), matrix, limits, bounds)


def collective_attacked_grid(grid: Bools, dimensions: Sequence[Dimension], *, attackers: int | None = None) -> float:
    """Most predictions that can change together under several kinds of changes at once.

    A prediction falls if its perceived changes reach one of its smallest uncertified points in every dimension. The program
    relaxes "reach" to fractions.

    Args:
        grid: Certified budgets of every prediction, down-closed, [t, sizes of the dimensions...].
        dimensions: Budget and receptive field of every dimension of the grid.
        attackers: Number of units (of the first dimension) that an adversary controls; None for all.
    """
    from scipy import sparse

    points, owners = _minimal_points(np.asarray(grid, dtype=bool), [each.budget for each in dimensions])
    lost = np.unique(owners[(points == 0).all(1)])
    keep = ~np.isin(owners, lost)
    points, owners = points[keep], owners[keep]
    nodes, position = np.unique(owners, return_inverse=True)
    count, number = len(owners), len(nodes)
    if not count:
        return float(len(lost))
    units = [sparse.csr_array(each.field).shape[1] for each in dimensions]
    if attackers is not None and len(set(units)) > 1:
        raise DataError("attackers limits nodes, but the dimensions have units of different kinds")
    masks = units[0] if attackers is not None else 0
    width = number + count + sum(units) + masks
    each_node = sparse.csr_array((np.ones(count), (position, np.arange(count))), shape=(number, count))
    rows = [sparse.hstack([sparse.eye_array(number), -each_node, sparse.csr_array((number, width - number - count))])]
    ub = [np.zeros(number)]
    start = number + count
    bounds = [np.ones(number + count)]
    for axis, each in enumerate(dimensions):
        touched = np.flatnonzero(points[:, axis] > 0)
        seen = sparse.diags_array(1.0 / points[touched, axis]) @ sparse.csr_array(each.field)[owners[touched]]
        select = sparse.csr_array((np.ones(len(touched)), (np.arange(len(touched)), touched)), (len(touched), count))
        rows.append(_placed([(number, select), (start, -seen)], len(touched), width))
        ub.append(np.zeros(len(touched)))
        rows.append(_placed([(start, sparse.csr_array(np.ones((1, units[axis]))))], 1, width))
        ub.append(np.array([each.budget]))
        most = min(each.most, each.local, each.budget)
        bounds.append(np.full(units[axis], most))
        if masks:
            eye = sparse.eye_array(units[axis])
            rows.append(_placed([(start, eye), (width - masks, -most * eye)], units[axis], width))
            ub.append(np.zeros(units[axis]))
        start += units[axis]
    if masks:
        rows.append(_placed([(width - masks, sparse.csr_array(np.ones((1, masks))))], 1, width))
        ub.append(np.array([float(attackers or 0)]))
        bounds.append(np.ones(masks))
    goal = np.zeros(width)
    goal[:number] = 1
    return len(lost) + maximum(goal, sparse.vstack(rows), np.concatenate(ub), np.concatenate(bounds))


def surviving(total: int, attacked: float) -> int:
    """Predictions that hold whatever the adversary does: all but the floor of the optimum."""
    return total - min(total, int(np.floor(attacked + ROUNDING)))


def _minimal_points(grid: Bools, budgets: Sequence[float]) -> tuple[Ints, Ints]:
    """Smallest uncertified points within the budgets, [points, axes], and whose they are, [points]."""
    wide = np.pad(grid, [(0, 0)] + [(0, 1)] * (grid.ndim - 1))  # beyond the grid nothing is certified
    minimal = ~wide
    for axis in range(1, wide.ndim):
        before = np.roll(wide, 1, axis)
        index: list[Any] = [slice(None)] * wide.ndim
        index[axis] = 0
        before[tuple(index)] = True
        minimal &= before
    found = np.argwhere(minimal)
    within = (found[:, 1:] <= np.array([np.floor(budget) for budget in budgets])).all(1)
    return found[within, 1:].astype(np.int64), found[within, 0].astype(np.int64)


def _placed(parts: Sequence[tuple[int, Any]], rows: int, width: int) -> Any:
    """Blocks of columns at their places in a wide matrix."""
    from scipy import sparse

    pieces, at = [], 0
    for start, block in sorted(parts, key=lambda part: part[0]):
        if start > at:
            pieces.append(sparse.csr_array((rows, start - at)))
        pieces.append(block)
        at = start + block.shape[1]
    if at < width:
        pieces.append(sparse.csr_array((rows, width - at)))
    return sparse.hstack(pieces)


def maximum(goal: Floats, matrix: Any, limits: Floats, upper: Floats) -> float:
    r"""Optimum of a linear program with variables from 0 to ``upper``, by HiGHS; never below the true one.

    A solver stops within a tolerance, and a sum over thousands of variables may come out too small by more than a rounding
    allowance. So what is returned is the bound of weak duality: with prices :math:`y \ge 0` of the limits, right or not,

    .. math:: \max_x g^T x \le b^T y + \sum_j u_j \max(0,\, g_j - (A^T y)_j) .
    """
    from scipy.optimize import linprog

    rows = matrix.tocsr()
    found = linprog(-goal, A_ub=rows, b_ub=limits, bounds=np.stack([np.zeros(len(upper)), upper], 1), method="highs")
    if found.status != 0:
        raise SolverError(f"the linear program was not solved ({' '.join(str(found.message).split())[:120]})")
    prices = np.maximum(-found.ineqlin.marginals, 0.0)
    return float(limits @ prices + upper @ np.maximum(goal - rows.T @ prices, 0.0))
