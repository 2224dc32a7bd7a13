"""AGIA, SeqGIA and MetaGIA: injections whose edges come from gradients, all with HAO's term if wanted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from grb.attack.base import AttackContext, accepts_paper_names
from grb.attack.features import FeatureRule, SignAscent, SmoothMap, check_steps
from grb.attack.injection.base import InjectionProblem, Limits, _target_state
from grb.attack.injection.edges import EdgeRule, class_edges, defective_edges, random_edges
from grb.attack.injection.rewiring import edge_scores, exchange
from grb.attack.injection.starts import noise
from grb.attack.losses import cross_entropy
from grb.attack.modification.gradient import Victim
from grb.errors import DataError
from grb.graph import Adjacency, GraphEdit

Wiring = Literal["random", "classes", "tdgia", "agia", "meta"]
RULES: dict[str, EdgeRule] = {"random": random_edges, "classes": class_edges, "tdgia": defective_edges}
# a target whose label is as unlikely as this is lost, and its loss is left out, so that HAO's term keeps a say
LOST = 1e-8


def live_cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    r""":math:`-\log p_y` of the targets whose label still has a probability of at least 1e-8; 0 of the others."""
    loss = cross_entropy(logits, y)
    return torch.where(loss.detach() <= -math.log(LOST), loss, 0.0)


@accepts_paper_names
@dataclass(frozen=True, kw_only=True)
class SeqGIA(Limits):
    r"""Inject batch after batch; each batch is wired by a rule or by gradients, then all injected features are optimised.

    Features take signed steps on the cross-entropy of the targets that are not yet lost, plus
    :math:`\lambda \, \mathrm{mean}_u \cos(x_u, r_u)` (HAO, :mod:`~grb.attack.injection.homophily`). The edges of a batch:

    - ``agia``: from a random wiring, the weights :math:`w \ge 0` of all pairs of new nodes and targets ascend
      :math:`L - \beta \|w\|_1` by Adam; each new node keeps its heaviest pairs, its features start anew. The first
      ``random_share`` of all nodes are wired at random.
    - ``meta``: from a random wiring, features are optimised and edges with low gradients exchanged for absent ones with high
      gradients, in turn.
    - ``random``, ``classes``, ``tdgia``: a rule of :mod:`~grb.attack.injection.edges`.

    Args:
        wiring: How the edges of a batch come about.
        steps: Number of feature steps after each batch.
        step_size: Size of one feature step.
        fraction: Fraction of the nodes in one batch.
        homophily: :math:`\lambda` of HAO; 0 for none.
        edge_steps: Number of steps of the edge weights (``agia``).
        edge_rate: Learning rate of the edge weights.
        penalty: :math:`\beta` in units of the mean absolute gradient.
        random_share: Fraction of the nodes that ``agia`` leaves at random.
        exchanges: Rounds of ``meta``, one for this number of nodes of a batch.

    References:
        Chen et al., *Understanding and Improving Graph Injection Attack by Promoting Unnoticeability*, ICLR 2022. In their code
        :math:`\beta` is 1 beside a mean loss, so that it outweighs every gradient, weights may become negative, and MetaGIA
        keeps only the total number of edges; here :math:`\beta` is relative, weights are not negative, and no node ever has
        more edges than it may.
    """

    wiring: Wiring = "agia"
    steps: int = 100
    step_size: float = 0.01
    fraction: float = 0.2
    homophily: float = 0.0
    edge_steps: int = 20
    edge_rate: float = 0.1
    penalty: float = 1.0
    random_share: float = 0.5
    exchanges: int = 6
    version = 1

    def __post_init__(self) -> None:
        check_steps(
            step_size=float(self.step_size), steps=self.steps, edge_steps=self.edge_steps, edge_rate=self.edge_rate
        )
        if self.wiring not in get_args(Wiring):
            raise DataError(f"wiring is {self.wiring!r}, but one of {', '.join(get_args(Wiring))} is needed")
        if not 0 < self.fraction <= 1 or not 0 <= self.random_share <= 1 or self.exchanges < 1:
            raise DataError(
                f"fraction is {self.fraction}, random_share {self.random_share} and exchanges {self.exchanges}, but above 0 to "
                "1, 0 to 1 and at least 1 are needed"
            )
        if not 0 <= self.homophily < math.inf or not 0 <= self.penalty < math.inf:
            raise DataError(
                f"homophily is {self.homophily} and penalty {self.penalty}, but finite numbers of at least 0 are needed"
            )

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Inject all batches."""
        threat = context.injection
        context.surrogate()  # refuses a context without a model
        clean = GraphEdit(n=context.graph.n)
        if not (threat.nodes and threat.edges_per_node and len(context.targets)):
            return clean
        problem = InjectionProblem(context)
        edit, done, total = clean, 0, threat.nodes
        probs = torch.softmax(problem.logits, dim=1)
        while done < total:
            count = min(max(1, math.floor(self.fraction * total)), total - done)
            rule = RULES.get(self.wiring, random_edges)
            state = _target_state(context, edit.add, done, problem.labels, probs)
            pairs = torch.cat([edit.add, rule(state, count, generator)], dim=1)
            so_far = _rows(edit) if done else torch.empty(0, context.graph.num_features)
            edit = self._optimised(problem, pairs, self._fresh(problem, so_far, pairs, count, generator), generator)
            if self.wiring == "agia" and done >= math.floor(self.random_share * total):
                pairs = optimised_edges(problem, edit, count, self.edge_steps, self.edge_rate, self.penalty)
                edit = self._optimised(problem, pairs, self._fresh(problem, so_far, pairs, count, generator), generator)
            for _ in range(max(1, count // self.exchanges) if self.wiring == "meta" else 0):
                after = exchanged_edges(problem, edit, count)
                if after is None:
                    break
                edit = self._optimised(problem, after, _rows(edit), generator)
            done += count
            if done < total:
                with torch.no_grad():
                    probs = torch.softmax(problem.forward(edit)(_rows(edit)), dim=1)
        return edit

    def _fresh(
        self, problem: InjectionProblem, so_far: Tensor, pairs: Tensor, count: int, generator: torch.Generator
    ) -> Tensor:
        """Features of earlier nodes, and noise for new ones, [m, d]."""
        limits = problem.context.injection.feature_range
        new = noise(problem.wiring(pairs, len(so_far), count), generator).clamp(*limits)
        return torch.cat([so_far, new])

    def _optimised(self, problem: InjectionProblem, pairs: Tensor, x: Tensor, generator: torch.Generator) -> GraphEdit:
        wired = GraphEdit(n=problem.context.graph.n, add=pairs, new_x=x)
        objective = problem.objective(wired, live_cross_entropy, self.homophily)
        found = self._features()(objective, x, problem.context.injection.feature_range, generator)
        return GraphEdit(n=wired.n, add=pairs, new_x=found.detach())

    def _features(self) -> FeatureRule:
        if self.wiring == "tdgia":
            return SmoothMap(lambda variables: torch.optim.Adam(variables, lr=self.step_size), self.steps)
        return SignAscent(self.step_size, self.steps)


@dataclass(frozen=True, kw_only=True)
class AGIA(SeqGIA):
    """Adaptive graph injection: all nodes at once, a random wiring first, then edges by their optimised weights.

    :class:`SeqGIA` with ``wiring="agia"`` and one batch, none of which is left at random.
    """

    fraction: float = 1.0
    random_share: float = 0.0


@dataclass(frozen=True, kw_only=True)
class MetaGIA(SeqGIA):
    """Exchanges of edges by meta-gradients, batch after batch: :class:`SeqGIA` with ``wiring="meta"``."""

    wiring: Wiring = "meta"


def optimised_edges(
    problem: InjectionProblem, edit: GraphEdit, count: int, steps: int, rate: float, penalty: float
) -> Tensor:
    """Edges of the last ``count`` injected nodes by weights that were optimised, the others as they are, [2, e].

    Args:
        problem: The context and what its wirings share.
        edit: Injected nodes with edges and features.
        count: Number of the last nodes that are wired anew.
        steps: Number of Adam steps of the weights.
        rate: Learning rate.
        penalty: Weight of the sum of all weights, in units of the mean absolute gradient.
    """
    context, targets = problem.context, problem.context.targets
    first = edit.n + edit.num_new - count
    low, high = edit.add.min(0).values, edit.add.max(0).values
    own = (high >= first) & (low < edit.n)
    number = torch.full((edit.n,), -1)
    number[targets] = torch.arange(len(targets))
    start = torch.zeros(count, len(targets))
    start[high[own] - first, number[low[own]]] = 1.0
    every = torch.stack([targets.repeat(count), torch.arange(first, first + count).repeat_interleave(len(targets))])
    kept = torch.stack([low, high])[:, ~own]
    attacked = context.graph.apply(GraphEdit(n=edit.n, add=torch.cat([kept, every], dim=1), new_x=edit.new_x))
    pattern, keys = attacked.adj.pattern, attacked.adj.keys
    at = [torch.searchsorted(keys, a * attacked.n + b) for a, b in (every, every.flip(0))]
    victim = Victim(problem.gradient_model, attacked, targets, live_cross_entropy, problem.labels)
    weights = start.clone().requires_grad_()
    optimiser = torch.optim.Adam([weights], lr=rate)
    ones = torch.ones(pattern.entries) if attacked.adj.values is None else attacked.adj.values
    for _ in range(steps):
        values = ones.clone()
        for places in at:
            values[places] = weights.detach().flatten()
        gradient = victim.gradient(Adjacency(pattern, values)).block(torch.arange(first, attacked.n), targets).detach()
        weights.grad = penalty * gradient.abs().mean() - gradient
        optimiser.step()
        with torch.no_grad():
            weights.clamp_(min=0.0)
    width = min(context.injection.edges_per_node, len(targets))
    chosen = weights.detach().topk(width, dim=1).indices
    nodes = torch.arange(first, first + count).repeat_interleave(width)
    return torch.cat([kept, torch.stack([targets[chosen.flatten()], nodes])], dim=1)


def exchanged_edges(problem: InjectionProblem, edit: GraphEdit, count: int) -> Tensor | None:
    """Edges after as many exchanges as a node has edges, among the last ``count`` nodes, [2, e]; None if none helps."""
    targets = problem.context.targets
    first = edit.num_new - count
    low, high = edit.add.min(0).values, edit.add.max(0).values
    own = (high >= edit.n + first) & (low < edit.n)
    number = torch.full((edit.n,), -1)
    number[targets] = torch.arange(len(targets))
    joined = torch.zeros(count, len(targets), dtype=torch.bool)
    joined[high[own] - edit.n - first, number[low[own]]] = True
    scores = edge_scores(problem, edit, live_cross_entropy, torch.arange(len(targets)))[first:]
    after = exchange(joined, scores, problem.context.injection.edges_per_node)
    if torch.equal(after, joined):
        return None
    node, position = after.nonzero().T
    changed = torch.stack([targets[position], node + edit.n + first])
    return torch.cat([torch.stack([low, high])[:, ~own], changed], dim=1)


def _rows(edit: GraphEdit) -> Tensor:
    assert edit.new_x is not None, "an injection has features"
    return edit.new_x
