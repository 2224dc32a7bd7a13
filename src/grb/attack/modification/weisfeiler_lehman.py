"""Weisfeiler-Lehman features of many alternatives to one graph, all of them at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from grb.attack.graphs import node_types
from grb.graph import CSR, Adjacency, dense

# odd constants of a mixing function of 64 bits (Steele et al., Fast Splittable Pseudorandom Number Generators, 2014)
_STEP, _FIRST, _SECOND = -7046029254386353131, -4658895280553007687, -7723592293110705685


def mixed(numbers: Tensor) -> Tensor:
    """Whole numbers spread over 64 bits, so that sums of different multisets hardly ever agree."""
    out = (numbers + 1) * _STEP
    out = (out ^ (out >> 30)) * _FIRST
    out = (out ^ (out >> 27)) * _SECOND
    return out ^ (out >> 31)


@dataclass(frozen=True, eq=False)
class WLFeatures:
    """What Weisfeiler-Lehman refinement sees in some graphs of the same nodes.

    Args:
        labels: Label of every node of every graph in every round, [graphs, rounds * n]; equal labels are equal subtrees, in
            whichever call they were made.
        means: Mean of the propagated features of every graph in every round, [graphs, rounds * d]; no columns where the types
            of the nodes say all.
    """

    labels: Tensor
    means: Tensor

    def counts(self, known: Tensor) -> Tensor:
        """How often every known label occurs in every graph, [graphs, k]; ``known`` ascends."""
        graphs, k = len(self.labels), len(known)
        place = torch.searchsorted(known, self.labels).clamp(max=max(k - 1, 0))
        if not k:
            return torch.zeros(graphs, 0, dtype=torch.float64)
        there = known[place] == self.labels
        cells = (torch.arange(graphs).unsqueeze(1) * k + place)[there]
        return torch.bincount(cells, minlength=graphs * k).view(graphs, k).double()


def wl_features(adj: Adjacency, x: Tensor | CSR, pairs: Tensor, groups: Tensor, count: int, rounds: int) -> WLFeatures:
    r"""Refined labels and propagated features of ``count`` alternatives, each some flips away from the same graph.

    .. math:: l_v^{h+1} = \mathrm{hash}\Bigl(l_v^h, \{\!\{ l_u^h : u \in N(v) \}\!\}\Bigr), \qquad
              x_v^{h+1} = \frac 1 2 \Bigl( x_v^h + \frac 1 {d_v} \sum_{u \in N(v)} x_u^h \Bigr)

    A multiset is hashed as the sum of its mixed labels modulo :math:`2^{64}`, so that a flipped edge adds or subtracts one
    term and all alternatives share the sums over the graph's own edges. The mean of propagated features is a weighted mean of
    the features, whose weights are propagated instead. The first labels are the types of the nodes
    (:func:`~grb.attack.graphs.node_types`).

    Args:
        adj: Edges of the graph.
        x: Features, [n, d].
        pairs: Flipped pairs of all alternatives, [2, p].
        groups: The alternative that every pair belongs to, [p].
        count: Number of alternatives.
        rounds: Rounds of refinement; 0 gives types alone.

    References:
        Shervashidze et al., *Weisfeiler-Lehman Graph Kernels*, JMLR 2011; Togninalli et al., *Wasserstein
        Weisfeiler-Lehman Graph Kernels*, NeurIPS 2019, for features that are no types.

    >>> from grb.graph import adjacency_from_edges
    >>> path = adjacency_from_edges([[0, 1], [1, 2]], 3)[0]
    >>> flips, groups = torch.tensor([[0, 0], [1, 2]]), torch.tensor([1, 2])
    >>> found = wl_features(path, torch.ones(3, 1), flips, groups, 3, 1)  # the path, a single edge, the triangle
    >>> sorted(found.counts(found.labels[0].unique()).tolist()[0]), len(found.labels[2].unique())
    ([1.0, 2.0, 3.0], 2)
    """
    rows, columns = adj.pattern.row_ids.long(), adj.pattern.indices.long()
    signs = torch.where(adj.has(pairs), -1, 1)
    ends, others = torch.cat([pairs[0], pairs[1]]), torch.cat([pairs[1], pairs[0]])
    groups, signs = groups.repeat(2), signs.repeat(2)

    def summed(values: Tensor) -> Tensor:
        """Sums over the neighbours in every alternative, [n, count]."""
        total = torch.zeros_like(values).index_add_(0, rows, values[columns])
        changes = values[others, groups] * signs
        return total.index_put_((ends, groups), changes, accumulate=True)

    types, whole = node_types(x), dense(x).double()
    labels = mixed(types).unsqueeze(1).expand(-1, count).contiguous()
    weights = torch.ones(adj.n, count, dtype=torch.float64)
    degrees = summed(weights)
    told = [labels]
    means: list[Tensor] = []
    typed = _types_say_all(types, whole)
    for _ in range(rounds):
        labels = mixed(labels * 3 + summed(mixed(labels)))
        told.append(labels)
        if not typed:
            weights = 0.5 * (weights + torch.where(degrees > 0, summed(weights / degrees.clamp(min=1)), weights))
            means.append(weights.T @ whole / max(adj.n, 1))
    none = torch.zeros(count, 0, dtype=torch.float64)
    return WLFeatures(torch.cat(told).T.contiguous(), torch.cat(means, dim=1) if means else none)


def _types_say_all(types: Tensor, rows: Tensor) -> bool:
    """Whether nodes of the same type have the same features."""
    if not len(types):
        return True
    _, first = types.unique(return_inverse=True)
    example = torch.zeros(int(first.max()) + 1, rows.shape[1], dtype=rows.dtype).index_copy_(0, first, rows)
    return bool((example[first] == rows).all())
