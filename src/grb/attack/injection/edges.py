"""Where injected nodes attach: rules from a state and a number of nodes to edges.

Your own rule is a function of the same form; every edge it returns joins a new node with a target or another new node.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from grb.errors import DataError

CHUNK = 2**22


@dataclass(frozen=True, eq=False)
class TargetState:
    """What an edge rule sees.

    Args:
        targets: Ids of the attacked nodes, [t].
        degrees: Their degrees in the graph attacked so far, [t].
        labels: The labels that the model gave them on the clean graph, [t]; None without a model.
        probs: Their class probabilities in the graph attacked so far, [t, c]; None without a model.
        edges_per_node: Edges of one new node at most.
        first: Id of the first new node.
    """

    targets: Tensor
    degrees: Tensor
    labels: Tensor | None
    probs: Tensor | None
    edges_per_node: int
    first: int

    @property
    def width(self) -> int:
        """Distinct targets that one new node can have."""
        return min(self.edges_per_node, len(self.targets))

    def join(self, chosen: Tensor) -> Tensor:
        """Edges [2, k w] from positions [k, w] in ``targets``, one row per new node."""
        nodes = torch.arange(len(chosen)).repeat_interleave(chosen.shape[1]) + self.first
        return torch.stack([nodes, self.targets[chosen.flatten()]])


EdgeRule = Callable[[TargetState, int, torch.Generator], Tensor]


def random_edges(state: TargetState, count: int, generator: torch.Generator) -> Tensor:
    """Every new node takes distinct targets uniformly at random."""
    # one random number per node and target is the simplest way, but at large sizes it is slower than the attack itself
    if count * len(state.targets) > CHUNK and state.width * 2 <= len(state.targets):
        return state.join(_distinct(len(state.targets), count, state.width, generator))
    rows = max(1, CHUNK // max(1, len(state.targets)))
    chosen = [
        torch.rand(min(rows, count - start), len(state.targets), generator=generator).topk(state.width).indices
        for start in range(0, count, rows)
    ]
    return state.join(torch.cat(chosen))


def uniform_edges(state: TargetState, count: int, generator: torch.Generator) -> Tensor:
    """Targets in turn, in random order: no target gets a second edge before all have one."""
    return state.join(_in_turn(torch.randperm(len(state.targets), generator=generator), count, state.width))


def lowest_degree_edges(state: TargetState, count: int, generator: torch.Generator) -> Tensor:
    """Targets in turn, those with the fewest neighbours first; equal ones by id."""
    return state.join(_in_turn(torch.argsort(state.degrees, stable=True), count, state.width))


def class_edges(state: TargetState, count: int, generator: torch.Generator) -> Tensor:
    """Targets in turn, sorted by their label: a new node speaks to one class, and can say the same to all its targets."""
    return state.join(_in_turn(torch.argsort(_labels_of(state), stable=True), count, state.width))


def low_degree_class_edges(state: TargetState, count: int, generator: torch.Generator) -> Tensor:
    """As :func:`class_edges`, but where edges are too few or left over, the targets with the fewest neighbours get them."""
    total, targets = count * state.width, len(state.targets)
    if not total:
        return state.join(torch.empty(count, 0, dtype=torch.int64))
    labels = _labels_of(state)
    rest = torch.argsort(state.degrees, stable=True)[: total % targets].sort().values
    order = [torch.argsort(labels, stable=True)] * (total // targets) + [rest[torch.argsort(labels[rest], stable=True)]]
    # the last row can reach from one turn into the next and meet a target again
    return state.join(torch.cat(order).view(count, state.width)).unique(dim=1)


def defective_edges(state: TargetState, count: int, generator: torch.Generator) -> Tensor:
    """TDGIA: the most vulnerable targets, spread so that every new node reaches all classes evenly.

    Kept are as many targets as there are edges to give, the best scores first. Always taking the next one from the
    class of which the smallest share is used up equals ordering them by (position in the class) / (size of the class).
    """
    if state.labels is None or state.probs is None:
        raise _no_model("TDGIA's edge rule")
    probs = state.probs.gather(1, state.labels.unsqueeze(1)).squeeze(1)
    return _spread(state, defectiveness(probs, state.degrees + 1, state.edges_per_node), count, generator)


def adaptive_defective_edges(state: TargetState, count: int, generator: torch.Generator) -> Tensor:
    r"""TDGIA's edges with another vulnerability: :math:`1 - p_v` where the label is still predicted, 0 where it is lost.

    References:
        Chen et al., *Understanding and Improving Graph Injection Attack by Promoting Unnoticeability*, ICLR 2022.
    """
    if state.labels is None or state.probs is None:
        raise _no_model("ATDGIA's edge rule")
    probs = state.probs.gather(1, state.labels.unsqueeze(1)).squeeze(1)
    vulnerable = torch.where(state.probs.argmax(1) == state.labels, 1 - probs, 0.0)
    usual = defectiveness(probs, state.degrees + 1, state.edges_per_node)
    return _spread(state, usual / (2 + probs) * vulnerable, count, generator)


def _spread(state: TargetState, score: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """The targets with the best scores, all classes evenly for every new node."""
    assert state.labels is not None
    kept = torch.argsort(score, descending=True, stable=True)[: count * state.width]
    kept = kept[torch.randperm(len(kept), generator=generator)]
    labels = state.labels[kept]
    order = torch.argsort(labels, stable=True)
    sizes = torch.bincount(labels)
    starts = sizes.cumsum(0) - sizes
    share = torch.empty(len(kept), dtype=torch.float64)
    share[order] = (torch.arange(len(kept)) - starts[labels[order]]).double() / sizes[labels[order]]
    return state.join(_in_turn(kept[torch.argsort(share, stable=True)], count, state.width))


def defectiveness(probs: Tensor, degrees: Tensor, edges_per_node: int, *, k1: float = 0.9, k2: float = 0.1) -> Tensor:
    r"""Degree-weighted vulnerability score of TDGIA.

    .. math:: s_v = (2 + p_v) \left( \frac{k_1}{\tilde d_v} + \frac{k_2}{\sqrt{b\, \tilde d_v}} \right)

    with :math:`p_v` the probability of the label predicted before the attack, :math:`\tilde d_v` the degree plus one,
    :math:`b` the edges per injected node: low degrees first, because there one more neighbour weighs most.

    Args:
        probs: Probability of the clean label, [t].
        degrees: Degree plus one, injected edges included, [t].
        edges_per_node: :math:`b`.

    Returns:
        Score of every target, [t]; higher is easier to attack.

    References:
        Zou et al., *TDGIA: Effective Injection Attacks on Graph Neural Networks*, KDD 2021.

    >>> [round(float(s), 3) for s in defectiveness(torch.ones(2), torch.tensor([2, 10]), 20)]
    [1.397, 0.291]
    """
    return (2 + probs) * (k1 / degrees + k2 / torch.sqrt(degrees * float(max(edges_per_node, 1))))


def interconnected_edges(state: TargetState, count: int, generator: torch.Generator) -> Tensor:
    """SPEIT: each target gets one edge while capacity lasts; what is left joins injected nodes with each other."""
    return _interconnected(state, count, state.edges_per_node, generator)


def layered_edges(state: TargetState, count: int, generator: torch.Generator) -> Tensor:
    """SPEIT: a tenth of the nodes form a second layer that no target sees, joined to the first layer alone.

    The first layer is wired as in :func:`interconnected_edges` and keeps a tenth of its edges for distinct random nodes of
    the second, whose own edges stay within the limit too.
    """
    second = count // 10
    limit = state.edges_per_node
    first = count - second
    links = min(second, max(1, limit // 10), limit * second // max(first, 1))
    if second == 0 or links == 0 or links >= limit:
        return interconnected_edges(state, count, generator)
    inner = _interconnected(state, first, limit - links, generator)
    partners = _in_turn(torch.randperm(second, generator=generator), first, links) + state.first + first
    nodes = torch.arange(first).repeat_interleave(links) + state.first
    return torch.cat([inner, torch.stack([nodes, partners.flatten()])], dim=1)


def _interconnected(state: TargetState, count: int, limit: int, generator: torch.Generator) -> Tensor:
    slots = torch.arange(count).repeat_interleave(limit)
    used = min(len(slots), len(state.targets))
    nodes = slots[torch.randperm(len(slots), generator=generator)[:used]]
    targets = state.targets[torch.randperm(len(state.targets), generator=generator)[:used]]
    outer = torch.stack([nodes + state.first, targets])
    inner = _fewest_first(torch.bincount(nodes, minlength=count), limit) + state.first
    return torch.cat([outer, inner], dim=1)


def _labels_of(state: TargetState) -> Tensor:
    if state.labels is None:
        raise _no_model("a rule by classes")
    return state.labels


def _no_model(rule: str) -> DataError:
    return DataError(f"{rule} needs a model: the victim for a white-box attack, a surrogate for a transfer")


def _fewest_first(degrees: Tensor, limit: int) -> Tensor:
    """Edges among injected nodes: the node with the fewest edges is served first, by the nodes with the next fewest."""
    degrees = degrees.clone()
    open_ = degrees < limit
    pairs: list[Tensor] = []
    # every node is served once, so this loop is as long as the number of injected nodes
    while int(open_.sum()) > 1:
        waiting = open_.nonzero().flatten()
        waiting = waiting[torch.argsort(degrees[waiting], stable=True)]
        node, others = waiting[0], waiting[1:]
        partners = others[: limit - int(degrees[node])]
        pairs.append(torch.stack([node.expand(len(partners)), partners]))
        degrees[partners] += 1
        open_ = open_ & (degrees < limit)
        open_[node] = False
    return torch.cat(pairs, dim=1) if pairs else torch.empty(2, 0, dtype=torch.int64)


def _distinct(population: int, count: int, width: int, generator: torch.Generator) -> Tensor:
    """Rows of distinct positions below ``population``, uniformly at random: repeated ones are drawn again, [count, width]."""
    chosen = torch.randint(population, (count, width), generator=generator)
    while True:
        ordered, order = chosen.sort(dim=1, stable=True)
        repeated = torch.zeros_like(chosen, dtype=torch.bool)
        repeated.scatter_(1, order[:, 1:], ordered[:, 1:] == ordered[:, :-1])
        missing = int(repeated.sum())
        if not missing:
            return chosen
        chosen[repeated] = torch.randint(population, (missing,), generator=generator)


def _in_turn(order: Tensor, count: int, width: int) -> Tensor:
    """Rows of ``width`` consecutive items of a repeated order, [count, width]; a row holds no item twice."""
    if not len(order) or not width:
        return torch.empty(count, 0, dtype=torch.int64)
    repeats = math.ceil(count * width / len(order))
    return order.repeat(repeats)[: count * width].view(count, width)


EDGE_RULES: dict[str, EdgeRule] = {
    "random": random_edges,
    "uniform": uniform_edges,
    "low-degree": lowest_degree_edges,
    "classes": class_edges,
    "low-degree-classes": low_degree_class_edges,
    "tdgia": defective_edges,
}
