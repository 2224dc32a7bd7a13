r"""Edges on which many targets hang: dropped wherever they are, by gradients first and then by exact outcomes.

Most attacks on edges change pairs with a target at one end. A class that hears of itself only through a hub is lost with one
edge that touches no target. Every present edge is ranked by the derivative of the targets' mean margin with respect to its
weight; the first ones are dropped one by one, judged by the model itself, and the best is kept, round after round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from grb.attack.base import AttackContext, clean_labels
from grb.attack.losses import margin
from grb.errors import BudgetError, DataError
from grb.graph import Adjacency, GraphEdit
from grb.model.base import evaluating, predict, prepare


@dataclass(frozen=True, kw_only=True)
class Bridges:
    """Drop the edges whose loss costs the targets most.

    Args:
        candidates: Edges that are tried in every round.
        rounds: Rounds with exact outcomes; what is left of the budget follows the last ranking.
    """

    candidates: int = 32
    rounds: int = 4
    scenario = "modification"
    version = 1

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """The edges to drop, within the threat model."""
        threat, graph = context.modification, context.graph
        empty = GraphEdit(n=graph.n)
        budget = int(threat.budget(graph))
        if "drop" not in threat.allow or budget < 1 or not graph.num_edges:
            return empty
        model = context.surrogate()
        _, labels = clean_labels(context)
        best = empty
        for step in range(min(self.rounds, budget)):
            ranked = self._ranked(model, context, labels, best)
            tried = [
                (self._judged(model, context, labels, edit), edit) for edit in self._allowed(context, best, ranked)
            ]
            if not tried:
                break
            best = min(tried, key=lambda each: each[0])[1]
            context.report(float(step), 1.0)
        if best.drop.shape[1] < budget:
            best = self._filled(context, best, self._ranked(model, context, labels, best), budget)
        return best

    def _ranked(self, model: nn.Module, context: AttackContext, labels: Tensor, so_far: GraphEdit) -> Tensor:
        """Present edges, the most important first, [2, m]."""
        graph = context.graph.apply(so_far)
        edges = graph.adj.edges()
        weights = torch.ones(graph.adj.pattern.entries) if graph.adj.values is None else graph.adj.values.clone()
        weights.requires_grad_()
        try:
            with evaluating(model), torch.enable_grad():
                op = prepare(model, Adjacency(graph.adj.pattern, weights))
                loss = margin(model(graph.x, op)[context.targets], labels).mean()
                (slope,) = torch.autograd.grad(loss, weights)
        except (DataError, RuntimeError):  # no gradients of edges: edges of hubs first
            degrees = graph.adj.degrees
            return edges[:, torch.argsort(-(degrees[edges[0]] * degrees[edges[1]]), stable=True)]
        rows, columns = graph.adj.pattern.row_ids.long(), graph.adj.pattern.indices.long()
        keys = torch.minimum(rows, columns) * graph.n + torch.maximum(rows, columns)
        own = edges[0] * graph.n + edges[1]
        gain = torch.zeros(len(own)).index_add(0, torch.searchsorted(own, keys), -slope.detach())
        return edges[:, torch.argsort(-gain, stable=True)]

    def _allowed(self, context: AttackContext, so_far: GraphEdit, ranked: Tensor) -> Iterator[GraphEdit]:
        for pair in ranked.T[: self.candidates]:
            edit = replace(so_far, drop=torch.cat([so_far.drop, pair[:, None]], dim=1))
            try:
                context.threat.check(context.graph, edit, context.targets)
            except BudgetError:
                continue
            yield edit

    def _judged(self, model: nn.Module, context: AttackContext, labels: Tensor, edit: GraphEdit) -> tuple[float, float]:
        logits = predict(model, context.graph.apply(edit))[context.targets]
        return float((logits.argmax(1) == labels).double().mean()), -float(margin(logits, labels).mean())

    def _filled(self, context: AttackContext, best: GraphEdit, ranked: Tensor, budget: int) -> GraphEdit:
        """With further edges of the ranking, as many as the threat model allows at once; one by one only where it is small."""
        room = budget - best.drop.shape[1]
        whole = replace(best, drop=torch.cat([best.drop, ranked[:, :room]], dim=1))
        try:
            context.threat.check(context.graph, whole, context.targets)
        except BudgetError:
            return best
        return whole
