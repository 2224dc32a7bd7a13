"""An injection attack = an edge rule x a feature optimiser x rounds; the famous names are compositions of these."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from grb._paper_calls import PaperCalls, paper_calls
from grb.attack.base import Attack, AttackContext, context_from_arrays, is_mask, run_attack
from grb.attack.features import FeatureRule, Objective
from grb.attack.incremental import Forward, Rewired
from grb.attack.injection.edges import EdgeRule, TargetState
from grb.attack.injection.homophily import homophily
from grb.attack.injection.starts import Start, Wiring
from grb.attack.losses import Loss, cross_entropy
from grb.errors import DataError
from grb.graph import GraphEdit, convert, dense
from grb.threat import Injection

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class InjectionProblem:
    """One context with what every wiring of it shares: the clean logits, the labels to take away, incremental passes.

    Args:
        context: With an :class:`~grb.threat.Injection` threat model and a model.
        relaxed: A model whose gradients are used in place of the victim's, see
            :func:`grb.model.base.relaxations`; the logits stay the victim's. None for the victim's own gradients.
    """

    def __init__(self, context: AttackContext, relaxed: nn.Module | None = None) -> None:
        self.context, self.relaxed = context, relaxed
        self._exact = Rewired(context.surrogate(), context.graph)
        self._rough = None if relaxed is None else Rewired(relaxed, context.graph)
        self.logits = self._exact.logits()[context.targets]
        self.labels = context.aimed_labels(self.logits)

    @property
    def gradient_model(self) -> nn.Module:
        """The model whose gradients are used."""
        return self.context.surrogate() if self.relaxed is None else self.relaxed

    def forward(self, wired: GraphEdit) -> Forward:
        """A function from the features of the nodes that ``wired`` injects to the logits of the targets."""
        exact, incremental = self._exact.forward(wired, self.context.targets)
        if not incremental:
            self.context.note("full forward pass in every step: the model has no stages")
        if self._rough is None:
            return exact
        rough, _ = self._rough.forward(wired, self.context.targets)

        def straight_through(features: Tensor) -> Tensor:
            with torch.no_grad():
                logits = exact(features)
            bent = rough(features)
            return logits + (bent - bent.detach())

        return straight_through

    def objective(self, wired: GraphEdit, loss: Loss, homophily_weight: float = 0.0) -> Objective:
        """What an optimiser of the features of a wiring may ask; homophily refers to the features in ``wired``."""
        term = None
        if homophily_weight:
            term = homophily(homophily_weight, self.context.graph.apply(wired), wired.num_new)
        return Objective(self._allowed(self.forward(wired)), self.labels, loss, self.context.report, term)

    def _allowed(self, forward: Forward) -> Forward:
        """Features as the constraints leave them, with the gradients of those before: a straight-through projection."""
        constraints = self.context.injection.constraints
        if constraints is None:
            return forward
        graph, within = self.context.graph, self.context.injection.feature_range

        def projected(features: Tensor) -> Tensor:
            moved = constraints.project_rows(features.detach(), graph, within)
            return forward(features + (moved - features).detach())

        return projected

    def wiring(self, pairs: Tensor, first: int, count: int) -> Wiring:
        """What a start sees of ``count`` new nodes from number ``first`` on."""
        n, (low, high) = self.context.graph.n, (pairs.min(0).values, pairs.max(0).values)
        own = (low < n) & (high >= n + first) & (high < n + first + count)
        return Wiring(
            dense(self.context.graph.x),
            self.context.targets,
            self.labels,
            torch.stack([high[own] - n - first, low[own]]),
            count,
            self.context.injection.feature_range,
        )


def inject(
    context: AttackContext,
    *,
    edges: EdgeRule,
    features: FeatureRule,
    generator: torch.Generator,
    loss: Loss = cross_entropy,
    fraction: float = 1.0,
    start: Start | None = None,
    homophily_weight: float = 0.0,
    problem: InjectionProblem | None = None,
) -> GraphEdit:
    """Wire nodes to targets and optimise their features, a fraction of the nodes in each round.

    In every round the edge rule sees the graph attacked so far; the features of earlier rounds go on being optimised.

    Args:
        context: With an :class:`~grb.threat.Injection` threat model and a model.
        edges: Where the nodes of a round attach.
        features: Optimiser of all injected features.
        generator: The only source of randomness.
        loss: What to raise, per target.
        fraction: Fraction of the nodes injected in one round, 1 for all at once.
        start: Where the features of new nodes begin; the optimiser's own start if None.
        homophily_weight: Weight of the :class:`~grb.attack.injection.homophily.Homophily` of the injected nodes.
        problem: What was made of the context before, if it was.
    """
    threat = context.injection
    total = threat.nodes if len(context.targets) and threat.edges_per_node else 0
    clean = GraphEdit(n=context.graph.n)
    if total == 0:
        return clean
    problem = problem or InjectionProblem(context)
    labels, probs = problem.labels, torch.softmax(problem.logits, dim=1)
    pairs, x = clean.add, torch.empty(0, context.graph.num_features)
    while len(x) < total:
        count = min(max(1, math.floor(fraction * total)), total - len(x))
        pairs = torch.cat([pairs, edges(_target_state(context, pairs, len(x), labels, probs), count, generator)], dim=1)
        new = torch.full((count, context.graph.num_features), torch.nan)
        if start is not None:
            new = start(problem.wiring(pairs, len(x), count), generator).clamp(*threat.feature_range)
        x = torch.cat([x, new])
        objective = problem.objective(
            GraphEdit(n=context.graph.n, add=pairs, new_x=torch.nan_to_num(x)), loss, homophily_weight
        )
        x = features(objective, x, threat.feature_range, generator)
        if len(x) < total:
            with torch.no_grad():
                probs = torch.softmax(objective.forward(x), dim=1)
    return GraphEdit(n=context.graph.n, add=pairs, new_x=x.detach())


def _target_state(
    context: AttackContext, pairs: Tensor, so_far: int, labels: Tensor | None, probs: Tensor | None
) -> TargetState:
    degrees = context.graph.adj.degrees[context.targets].long()
    if pairs.numel():
        added = torch.bincount(pairs.flatten(), minlength=context.graph.n)
        degrees = degrees + added[context.targets]
    return TargetState(
        targets=context.targets,
        degrees=degrees,
        labels=labels,
        probs=probs,
        edges_per_node=context.injection.edges_per_node,
        first=context.graph.n + so_far,
    )


def wire_only(context: AttackContext, edges: EdgeRule, generator: torch.Generator) -> Tensor:
    """Edges of all injected nodes by a rule that needs no model, [2, e]; none if there is nothing to inject."""
    threat = context.injection
    if not (threat.nodes and threat.edges_per_node and len(context.targets)):
        return GraphEdit(n=context.graph.n).add
    return edges(_target_state(context, GraphEdit(n=context.graph.n).add, 0, None, None), threat.nodes, generator)


@dataclass(frozen=True, kw_only=True)
class Limits(metaclass=PaperCalls):
    """The paper's way to give the threat model to an attack; with ``run_attack`` the context's own counts instead.

    Args:
        n_inject_max: Maximum number of injected nodes.
        n_edge_max: Maximum number of edges of one injected node.
        feat_lim_min: Lowest injected feature.
        feat_lim_max: Highest injected feature.
    """

    n_inject_max: int | None = None
    n_edge_max: int | None = None
    feat_lim_min: float | None = None
    feat_lim_max: float | None = None

    def threat(self) -> Injection:
        """The threat model that the constructor's limits describe."""
        if (
            self.n_inject_max is None
            or self.n_edge_max is None
            or self.feat_lim_min is None
            or self.feat_lim_max is None
        ):
            raise DataError("attack() needs n_inject_max, n_edge_max, feat_lim_min and feat_lim_max in the constructor")
        return Injection(self.n_inject_max, self.n_edge_max, (self.feat_lim_min, self.feat_lim_max))

    @paper_calls(is_mask)
    def attack(
        self,
        model: nn.Module | None,
        adj: Any,
        features: Tensor,
        target_mask: Tensor,
        *,
        seed: int = 0,
    ) -> tuple[csr_matrix, Tensor]:
        """The paper's call: attack a model on arrays.

        Args:
            model: The victim or a surrogate.
            adj: Clean adjacency, a scipy sparse matrix [n, n].
            features: Clean features, [n, d].
            target_mask: Which nodes to attack, [n] booleans.
            seed: Random seed.

        Returns:
            The attacked adjacency, [n + m, n + m], and the features of the m injected nodes, [m, d].
        """
        assert isinstance(self, Attack)
        context = context_from_arrays(model, adj, features, target_mask, self.threat())
        edit = run_attack(self, context, seed=seed).edit
        none = torch.empty(0, context.graph.num_features)
        return convert.to_scipy(context.graph.apply(edit).adj), none if edit.new_x is None else edit.new_x
