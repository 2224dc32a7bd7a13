r"""Collective certificate against injection: how many predictions can all injected nodes break together?

With bi-smoothing (:mod:`grb.certificate.bismoothing`) an injected node and an edge of it survive with probability
:math:`s = (1 - p_e)(1 - p_n)`, and so does every further step of a path. Whatever reaches :math:`v` came last from one injected
node and then travelled over original ones alone, so paths over a second injected node need not be counted. Blocked paths are
positively correlated (Harris), hence

.. math:: -\log P(\text{nothing arrives at } v) \le \sum_{k=1}^{R} c_k\, (W_{k-1} a)_v, \qquad c_k = -\log(1 - s^k),

where :math:`a_w` counts edges of injected nodes to :math:`w`, :math:`W_k` counts walks of k edges between original nodes and
:math:`R` is the reach of the network. The prediction falls only if this reaches :math:`-\log(1 - (p_A - p_B) / 2)`. Injected
nodes are exchangeable, so that the sums :math:`a` over them are enough: one variable per original node instead of one for
every pair of an original and an injected one.

References:
    Lai et al., *Collective Certified Robustness against Graph Injection Attacks*, ICML 2024.

Differs from the paper's LP2, which counts paths over two injected nodes by a McCormick relaxation (never tighter than leaving
them out) and stops at two hops: in a GCN the degree of a sender counts, which carries a change one hop further than messages.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from grb.certificate.collective import maximum
from grb.certificate.confidence import Floats, Ints
from grb.certificate.interception import without_returns
from grb.errors import DataError


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
    reach: int = 2,
) -> float:
    """Most of the given predictions that an injection can change together; an upper bound.

    Args:
        low: Lower bound of the leading class of every target, [t].
        high: Upper bound of every other class, [t].
        targets: Ids, [t]; predictions whose vote abstains count as changed.
        adj: Adjacency of the clean graph, a scipy sparse matrix [n, n].
        nodes: Injected nodes.
        edges_per_node: Edges of each.
        p_edge: Probability that smoothing deletes an edge.
        p_node: Probability that smoothing deletes a node.
        reach: Hops over which a node can change a prediction, :math:`R`.
    """
    from scipy import sparse

    if not 0 < p_edge < 1 or not 0 <= p_node < 1 or reach < 1:
        raise DataError(
            f"p_edge is {p_edge}, p_node is {p_node} and reach is {reach}, but 0 < p_edge < 1, 0 <= p_node < 1 and at least "
            "one hop are needed"
        )
    lead = np.asarray(low - high, dtype=float)
    lost = int((lead <= 0).sum())
    alive = np.flatnonzero(lead > 0)
    if nodes <= 0 or edges_per_node <= 0 or not len(alive):
        return float(lost)
    needed = -np.log1p(-np.minimum(lead[alive] / 2, 1 - 1e-15))
    n, count = adj.shape[0], len(alive)
    ids = np.asarray(targets)[alive]
    ones = sparse.csr_array((np.ones(adj.nnz), adj.indices, adj.indptr), shape=adj.shape)
    walks = sparse.csr_array((np.ones(count), (np.arange(count), ids)), shape=(count, n))
    survive, arriving = (1 - p_edge) * (1 - p_node), sparse.csr_array((count, n))
    for hops in range(1, reach + 1):
        arriving = arriving - np.log1p(-(survive**hops)) * walks
        walks = without_returns(walks @ ones, ids)  # a way back to the target is no way to it
    scaled = sparse.diags_array(1 / needed) @ arriving
    rows = sparse.vstack(
        [
            sparse.hstack([sparse.eye_array(count), -scaled]),
            sparse.hstack([sparse.csr_array((1, count)), sparse.csr_array(np.ones((1, n)))]),
        ]
    )
    limits = np.concatenate([np.zeros(count), [float(nodes * edges_per_node)]])
    upper = np.concatenate([np.ones(count), np.full(n, float(nodes))])
    return lost + maximum(np.concatenate([np.ones(count), np.zeros(n)]), rows, limits, upper)
