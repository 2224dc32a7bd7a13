"""Random search over injected nodes: their features and edges, by nothing but answers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from grb.attack.base import AttackContext
from grb.attack.injection.base import Limits
from grb.attack.modification.random_search import MILESTONES
from grb.attack.oracle import QueryOracle, judge_of, oracle_of
from grb.errors import DataError
from grb.graph import GraphEdit, dense


@dataclass(frozen=True, kw_only=True)
class QuerySearch(Limits):
    r"""Change some injected nodes at random, and keep the change if it helps; one change is one query.

    As :class:`~grb.attack.injection.random_search.InjectionRandomSearch`, for an attacker who gets no model but answers about
    all nodes, scores or labels. Every injected node starts with random targets and features at corners of the allowed range:
    with the mean :math:`\mu` of the class that most of its targets have and the features :math:`z` of a random node of another
    class, a coordinate is at the upper end where :math:`z > \mu` and at the lower one elsewhere. A proposal changes some of the
    nodes, half of them at first and one at the end, in one of three ways: other corners; a random block of features, all at
    first and few at the end, anew at random ends; or other edges, to targets that still keep their label. It is accepted if
    fewer targets keep their label, or as many with a larger loss; where the answers are labels, a change without effect is
    accepted by the toss of a coin.

    Args:
        steps: Number of queries where the threat model has no limit of them and a model is at hand.
        share: Fraction of the nodes that the first proposals change.

    References:
        After Andriushchenko et al., *Square Attack: a query-efficient black-box adversarial attack via random search*,
        ECCV 2020.
    """

    steps: int = 1000
    share: float = 0.5
    version = 1

    def __post_init__(self) -> None:
        if self.steps < 1 or not 0 < self.share <= 1:
            raise DataError(f"steps is {self.steps} and share {self.share}, but at least 1 and above 0 to 1 are needed")

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Search until the queries are spent."""
        threat = context.injection
        if not (threat.nodes and threat.edges_per_node and len(context.targets)):
            return GraphEdit(n=context.graph.n)
        return _Search(self, context, oracle_of(context, self.steps), generator)()


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Injected nodes: positions of their targets, [m, w], and features, [m, d]."""

    chosen: Tensor
    x: Tensor


class _Search:
    def __init__(
        self, attack: QuerySearch, context: AttackContext, oracle: QueryOracle, generator: torch.Generator
    ) -> None:
        self.attack, self.context, self.oracle, self.generator = attack, context, oracle, generator
        self.ends = torch.tensor(context.injection.feature_range, dtype=torch.float32)
        self.rows = dense(context.graph.x)
        self.m = context.injection.nodes
        self.width = min(context.injection.edges_per_node, len(context.targets))

    def __call__(self) -> GraphEdit:
        everyone = torch.arange(len(self.context.targets))
        chosen = torch.stack([self._targets(everyone) for _ in range(self.m)])
        if self.oracle.left < 2:  # too few to learn anything
            ends = torch.randint(2, (self.m, self.rows.shape[1]), generator=self.generator)
            return self._edit(_Nodes(chosen, self.ends[ends]))
        told = self.oracle()
        self.known = told if told.dim() == 1 else told.argmax(1)
        sizes = torch.bincount(self.known)
        sums = torch.zeros(len(sizes), self.rows.shape[1]).index_add_(0, self.known, self.rows)
        self.means = sums / sizes.clamp_min(1).unsqueeze(1)
        targets = self.context.targets
        self.labels, judge = judge_of(told[targets])
        nodes = _Nodes(chosen, self._corners(chosen))
        losses, right = judge(self.oracle(self._edit(nodes))[targets])
        steps = self.oracle.left
        for step in range(steps):
            halvings = sum(step >= milestone * steps for milestone in MILESTONES)
            proposed = self._proposal(nodes, right, 2**halvings)
            new_losses, new_right = judge(self.oracle(self._edit(proposed))[targets])
            gain = (int(right.sum()) - int(new_right.sum()), float(new_losses.sum() - losses.sum()))
            tied = told.dim() == 1 and gain[0] == 0
            if gain > (0, 0.0) or (tied and bool(torch.rand((), generator=self.generator) < 0.5)):
                nodes, losses, right = proposed, new_losses, new_right
            self.context.report(float(losses.mean()), float(right.double().mean()))
        return self._edit(nodes)

    def _proposal(self, nodes: _Nodes, right: Tensor, division: int) -> _Nodes:
        count = max(1, round(self.attack.share * self.m / division))
        moved = torch.randperm(self.m, generator=self.generator)[:count]
        kind = int(torch.randint(3, (), generator=self.generator))
        chosen, x = nodes.chosen.clone(), nodes.x.clone()
        if kind == 0:
            x[moved] = self._corners(chosen[moved])
        elif kind == 1:
            size = max(1, x.shape[1] // division)
            block = torch.randperm(x.shape[1], generator=self.generator)[:size]
            x[moved.unsqueeze(1), block] = self.ends[torch.randint(2, (count, len(block)), generator=self.generator)]
        else:
            standing = right.nonzero().flatten()
            pool = standing if len(standing) >= self.width else torch.arange(len(right))
            for node in moved.tolist():
                chosen[node] = self._targets(pool)
        return _Nodes(chosen, x)

    def _targets(self, pool: Tensor) -> Tensor:
        return pool[torch.randperm(len(pool), generator=self.generator)[: self.width]]

    def _corners(self, chosen: Tensor) -> Tensor:
        """Features of nodes with some targets, away from the class that most of these have, [k, d]."""
        own = self.labels[chosen].mode(1).values
        draws = torch.rand(len(chosen), len(self.known), generator=self.generator)
        others = (draws + (self.known != own.unsqueeze(1))).argmax(1)
        return torch.where(self.rows[others] > self.means[own], self.ends[1], self.ends[0])

    def _edit(self, nodes: _Nodes) -> GraphEdit:
        n = self.context.graph.n
        ids = torch.arange(self.m).repeat_interleave(nodes.chosen.shape[1]) + n
        pairs = torch.stack([ids, self.context.targets[nodes.chosen.flatten()]])
        return GraphEdit(n=n, add=pairs, new_x=nodes.x)
