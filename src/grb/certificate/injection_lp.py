r"""Collective certificate against injection: how many predictions can all injected nodes break together?

With bi-smoothing (:mod:`grb.certificate.bismoothing`) a message of an injected node reaches :math:`v` of a network of two
layers with probability :math:`s = (1 - p_e)(1 - p_n)` over an edge and :math:`s^2` over a path of two. Blocked paths are
positively correlated (Harris), so

.. math:: -\log P(\text{none arrives at } v) \le c_1 a_v + c_2 \Big(\sum_w A_{wv} a_w + Q_v\Big), \quad
          c_k = -\log(1 - s^k),

where :math:`a_v` counts edges of injected nodes to :math:`v` and :math:`Q_v` paths over a second injected node. The prediction
falls only if this reaches :math:`-\log(1 - (p_A - p_B) / 2)`. Injected nodes are exchangeable, so that sums over them are
enough: averaging a solution over all their orders keeps it feasible and its value. The program has two variables per node
instead of one for every node and injected node, and the same optimum.

References:
    Lai et al., *Collective Certified Robustness against Graph Injection Attacks*, ICML 2024 (LP2).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from grb.certificate.collective import _maximum
from grb.certificate.confidence import Floats, Ints
from grb.errors import DataError

# tangents of the concave bound on paths over two injected nodes
TANGENTS = 8


def injection_attacked(
    low: Floats,
    high: Floats,
    targets: Ints,
    adj: Any,
    *,
    nodes: int,
    edges_per_node: int,
    p_edge: float,
    p_node: float,
) -> float:
    r"""Most of the given predictions that an injection can change together; an upper bound.

    Args:
        low: Lower bound of the leading class of every target, [t].
        high: Upper bound of every other class, [t].
        targets: Ids, [t]; predictions whose vote abstains count as changed.
        adj: Adjacency of the clean graph, a scipy sparse matrix [n, n].
        nodes: Injected nodes.
        edges_per_node: Edges of each; one between injected nodes counts at both.
        p_edge: Probability that smoothing deletes an edge.
        p_node: Probability that smoothing deletes a node.

    A path over a second injected node needs edges at both; with :math:`z_j` of the edges of node j going to injected nodes,
    :math:`\sum_v Q_v \le \sum_j z_j (\tau - z_j)`, which is concave in their mean and enters by tangents. LP2 does not have it.
    """
    from scipy import sparse

    if not 0 < p_edge < 1 or not 0 <= p_node < 1:
        raise DataError(f"p_edge is {p_edge} and p_node is {p_node}, but 0 < p_edge < 1 and 0 <= p_node < 1 are needed")
    lead = np.asarray(low - high, dtype=float)
    lost = int((lead <= 0).sum())
    alive = np.flatnonzero(lead > 0)
    if nodes <= 0 or edges_per_node <= 0 or not len(alive):
        return float(lost)
    survive = (1 - p_edge) * (1 - p_node)
    direct, around = -np.log1p(-survive), -np.log1p(-(survive**2))
    needed = -np.log1p(-np.minimum(lead[alive] / 2, 1 - 1e-15))
    n, count = adj.shape[0], len(alive)
    ids = np.asarray(targets)[alive]
    ones = sparse.csr_array((np.ones(adj.nnz), adj.indices, adj.indptr), shape=adj.shape)
    own = sparse.csr_array((np.ones(count), (np.arange(count), ids)), shape=(count, n))
    reach = direct * own + around * ones[ids]
    scale = sparse.diags_array(1 / needed)
    # variables: m [count], a [n], q [count], z (edges of injected nodes to injected nodes, all together)
    eye, column = sparse.eye_array(count), sparse.csr_array(np.ones((count, 1)))
    inner = max(min(edges_per_node - 1, nodes - 1), 0)
    rows = [
        sparse.hstack([eye, -scale @ reach, -around * scale, sparse.csr_array((count, 1))]),
        # a path over j to v needs an edge of j to v, and at most `inner` edges of j go on
        sparse.hstack([sparse.csr_array((count, count)), -inner * own, eye, sparse.csr_array((count, 1))]),
        sparse.hstack([sparse.csr_array((count, count + n)), eye, -column]),
        sparse.hstack(
            [
                sparse.csr_array((1, count)),
                sparse.csr_array(np.ones((1, n))),
                sparse.csr_array((1, count)),
                sparse.csr_array(np.ones((1, 1))),
            ]
        ),
    ]
    budget = float(nodes * edges_per_node)
    limits = [np.zeros(count), np.zeros(count), np.zeros(count), np.array([budget])]
    for mean in np.linspace(0, inner, TANGENTS if inner else 1):
        # z (tau - z) <= mean (tau - mean) + (tau - 2 mean) (z - mean), summed over all injected nodes
        slope, constant = edges_per_node - 2 * mean, nodes * mean**2
        rows.append(
            sparse.hstack(
                [
                    sparse.csr_array((1, count + n)),
                    sparse.csr_array(np.ones((1, count))),
                    sparse.csr_array(np.array([[-slope]])),
                ]
            )
        )
        limits.append(np.array([constant]))
    upper = np.concatenate(
        [np.ones(count), np.full(n, float(nodes)), np.full(count, float(inner * nodes)), [float(nodes * inner)]]
    )
    goal = np.zeros(count * 2 + n + 1)
    goal[:count] = 1
    return lost + _maximum(goal, sparse.vstack(rows), np.concatenate(limits), upper)
