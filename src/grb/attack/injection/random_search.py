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

# features of an original node are taken as they are, or so many times as large, within the limits
SCALES = (1.0, 4.0, 64.0)


@dataclass(frozen=True, kw_only=True)
class RandomSearch(Limits):
    """Change some injected nodes at random, and keep the change if it helps; one change is one query.

    Every injected node starts with random targets and the features of a random original node. A proposal changes some of the
    nodes, half of them at first and one at the end, in one of three ways: they get the features of a node of another class than
    the targets they are wired to, as they are or larger; a block of their features, all at first and few at the end, goes to
    the ends of the allowed range, as in the Square attack; or they are wired anew, to targets that still keep their label. It
    is accepted if fewer targets keep their label, or as many with a larger loss; where the answers are labels, a change
    without effect is accepted by the toss of a coin.

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
        self, attack: RandomSearch, context: AttackContext, oracle: QueryOracle, generator: torch.Generator
    ) -> None:
        self.attack, self.context, self.oracle, self.generator = attack, context, oracle, generator
        self.low, self.high = context.injection.feature_range
        self.rows = dense(context.graph.x)
        self.m = context.injection.nodes
        self.width = min(context.injection.edges_per_node, len(context.targets))

    def __call__(self) -> GraphEdit:
        everyone = torch.arange(len(self.context.targets))
        chosen = torch.stack([self._targets(everyone) for _ in range(self.m)])
        nodes = _Nodes(chosen, self._taken(torch.randint(len(self.rows), (self.m,), generator=self.generator)))
        if self.oracle.left < 2:  # too few to learn anything
            return self._edit(nodes)
        told = self.oracle()
        self.known = told if told.dim() == 1 else told.argmax(1)
        targets = self.context.targets
        self.labels, judge = judge_of(told[targets])
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
            x[moved] = self._taken(torch.stack([self._stranger(nodes.chosen[node]) for node in moved.tolist()]))
        elif kind == 1:
            size = max(1, x.shape[1] // division)
            block = torch.randperm(x.shape[1], generator=self.generator)[:size]
            ends = torch.tensor([self.low, self.high])
            x[moved.unsqueeze(1), block] = ends[torch.randint(2, (count, len(block)), generator=self.generator)]
        else:
            standing = right.nonzero().flatten()
            pool = standing if len(standing) >= self.width else torch.arange(len(right))
            for node in moved.tolist():
                chosen[node] = self._targets(pool)
        return _Nodes(chosen, x)

    def _targets(self, pool: Tensor) -> Tensor:
        return pool[torch.randperm(len(pool), generator=self.generator)[: self.width]]

    def _stranger(self, chosen: Tensor) -> Tensor:
        """An original node of another class than most of some targets; any node if there is none."""
        usual = self.labels[chosen].mode().values
        others = (self.known != usual).nonzero().flatten()
        count = len(others) or len(self.known)
        at = torch.randint(count, (), generator=self.generator)
        return others[at] if len(others) else at

    def _taken(self, ids: Tensor) -> Tensor:
        scale = torch.tensor(SCALES)[torch.randint(len(SCALES), (len(ids), 1), generator=self.generator)]
        return (self.rows[ids] * scale).clamp(self.low, self.high)

    def _edit(self, nodes: _Nodes) -> GraphEdit:
        n = self.context.graph.n
        ids = torch.arange(self.m).repeat_interleave(nodes.chosen.shape[1]) + n
        pairs = torch.stack([ids, self.context.targets[nodes.chosen.flatten()]])
        return GraphEdit(n=n, add=pairs, new_x=nodes.x)
