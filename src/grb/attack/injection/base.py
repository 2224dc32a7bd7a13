"""An injection attack = an edge rule x a feature optimiser x rounds; the famous names are compositions of these."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from grb.attack.base import Attack, AttackContext, context_from_arrays, run_attack
from grb.attack.incremental import Rewired
from grb.attack.injection.edges import EdgeRule, TargetState
from grb.attack.injection.features import FeatureRule, Objective
from grb.attack.losses import Loss, cross_entropy
from grb.errors import DataError
from grb.graph import GraphEdit, convert
from grb.threat import Injection

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def inject(
    context: AttackContext,
    *,
    edges: EdgeRule,
    features: FeatureRule,
    generator: torch.Generator,
    loss: Loss = cross_entropy,
    fraction: float = 1.0,
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
    """
    threat = context.injection
    total = threat.nodes if len(context.targets) and threat.edges_per_node else 0
    clean = GraphEdit(n=context.graph.n)
    if total == 0:
        return clean
    rewired = Rewired(context.surrogate(), context.graph)
    logits = rewired.logits()[context.targets]
    labels, probs = logits.argmax(1), torch.softmax(logits, dim=1)
    pairs, x = clean.add, torch.empty(0, context.graph.num_features)
    while len(x) < total:
        count = min(max(1, math.floor(fraction * total)), total - len(x))
        pairs = torch.cat([pairs, edges(_target_state(context, pairs, len(x), labels, probs), count, generator)], dim=1)
        x = torch.cat([x, torch.full((count, context.graph.num_features), torch.nan)])
        wired = GraphEdit(n=context.graph.n, add=pairs, new_x=torch.zeros_like(x))
        forward, incremental = rewired.forward(wired, context.targets)
        if not incremental:
            context.note("full forward pass in every step: the model has no stages")
        x = features(Objective(forward, labels, loss, context.report), x, threat.feature_range, generator)
        if len(x) < total:
            with torch.no_grad():
                probs = torch.softmax(forward(x), dim=1)
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
class Limits:
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
