"""Random search on injected nodes: the Square attack's schedule, for features and edges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from grb.attack.base import AttackContext
from grb.attack.injection.base import InjectionProblem, Limits
from grb.attack.injection.edges import CHUNK
from grb.attack.losses import margin, typical_margin
from grb.attack.oracle import Judge, judge_of
from grb.attack.square import SquareSchedule, shrunk
from grb.graph import GraphEdit, dense


@dataclass(frozen=True, kw_only=True)
class InjectionRandomSearch(SquareSchedule, Limits):
    r"""Change some injected nodes at random, and keep the change if it helps; outputs of the model are all it asks for.

    Every injected node is joined with targets of one class that still keep their label. Its features begin at a corner of the
    allowed range: with the mean :math:`\mu` of its own targets' class and a row :math:`z`, which is the mean of another class
    or a real node of it, a coordinate is at the upper end where :math:`z > \mu` and at the lower one elsewhere. A proposal
    draws one of three for a random fraction of the nodes (half of them at first, one at the end): another row :math:`z`, other
    edges, or the opposite ends in a random block of coordinates. It is accepted if fewer targets keep their label, or as many
    with a larger :math:`\sum_v \tanh(-m_v / s)`, where :math:`m_v` is the margin and :math:`s` the median of the clean
    margins. One proposal is one query. With an oracle (``knowledge="query"``) it proposes until the queries are spent; where
    the answers are labels, a proposal that changes no label is accepted by the toss of a coin.

    Args:
        share: Fraction of the injected nodes, and of the coordinates, that the first proposals change.

    References:
        After Andriushchenko et al., *Square Attack: a query-efficient black-box adversarial attack via random search*,
        ECCV 2020.
    """

    version = 1
    paper_settings: ClassVar[bool] = False
    """The papers' steps are for gradients."""

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Exchange random nodes for random others."""
        threat, oracle = context.injection, context.oracle
        if oracle is None:
            context.surrogate()
        if not (threat.nodes and threat.edges_per_node and len(context.targets)):
            return GraphEdit(n=context.graph.n)
        if oracle is not None and oracle.left < 2:  # too few to learn anything
            return _drawn(context, generator)
        search = Search(context)
        aims = search.new_edges(threat.nodes, generator)
        return self.improve(search, aims, search.new_features(aims, generator), generator)

    def improve(self, search: Search, aims: Tensor, x: Tensor, generator: torch.Generator) -> GraphEdit:
        """The injection after the proposals that helped.

        Args:
            search: Where to ask.
            aims: Positions of every node's targets to begin with, [m, width].
            x: Features to begin with, [m, d].
            generator: Source of the proposals.
        """
        context, oracle, count = search.context, search.context.oracle, len(aims)
        best = search.judge(aims, x)
        steps = self.steps if oracle is None else oracle.left
        for step in range(steps):
            fraction = shrunk(self.share, step, steps)
            changed = torch.randperm(count, generator=generator)[: max(1, round(fraction * count))]
            tried_aims, tried_x = aims.clone(), x.clone()
            what = int(torch.randint(3, (1,), generator=generator))
            if what == 0:
                tried_x[changed] = search.new_features(aims[changed], generator)
            elif what == 1:
                tried_aims[changed] = search.new_edges(len(changed), generator)
                tried_x[changed] = search.new_features(tried_aims[changed], generator)
            else:
                block = torch.rand(x.shape[1], generator=generator) < max(fraction, 1 / x.shape[1])
                tried_x[changed] = torch.where(block, search.opposite(x[changed]), x[changed])
            found = search.judge(tried_aims, tried_x)
            tied = search.hard and found.order[0] == best.order[0]
            if found.order < best.order or (tied and bool(torch.rand((), generator=generator) < 0.5)):
                best, aims, x = found, tried_aims, tried_x
                search.right = found.right
            context.report(-best.order[1], best.order[0] / len(context.targets))
        return search.edit(aims, x)


@dataclass(frozen=True, eq=False)
class Judged:
    """What the model makes of an injection: number of kept labels and minus the loss, lower is stronger."""

    order: tuple[int, float]
    right: Tensor


class Search:
    """Draws of nodes and their judgement; ``right`` says which targets keep their label now, [t]."""

    def __init__(self, context: AttackContext) -> None:
        self.context = context
        if context.oracle is None:
            problem = InjectionProblem(context)
            clean, self.labels = problem.logits, problem.labels
            scale = typical_margin(clean, self.labels)
            self._ask: Callable[[GraphEdit, Tensor], Tensor] = lambda edit, x: problem.forward(edit)(x)
            self._judge: Judge = lambda told: (
                torch.tanh(margin(told, self.labels) / scale),
                told.argmax(1) == self.labels,
            )
        else:
            oracle, targets = context.oracle, context.targets
            clean = oracle()[targets]
            self.labels, self._judge = judge_of(clean)
            self._ask = lambda edit, x: oracle(edit)[targets]
        self.hard = clean.dim() == 1
        self.right = self._judge(clean)[1]
        self.width = min(context.injection.edges_per_node, len(context.targets))
        self.rows = dense(context.graph.x)[context.targets]
        classes = int(self.labels.max()) + 1
        sums = torch.zeros(classes, self.rows.shape[1]).index_add_(0, self.labels, self.rows)
        self.means = sums / torch.bincount(self.labels, minlength=classes).clamp_min(1).unsqueeze(1)

    def new_edges(self, count: int, generator: torch.Generator) -> Tensor:
        """Positions of targets, [count, width]: of one random class for each node, those with their label first."""
        classes = len(self.means)
        sizes = torch.bincount(self.labels[self.right], minlength=classes)
        sizes = sizes if int(sizes.sum()) else torch.bincount(self.labels, minlength=classes)
        own = torch.multinomial(sizes.double(), count, replacement=True, generator=generator)
        return torch.cat(
            [
                (draws + 2.0 * (self.labels == part.unsqueeze(1)) + self.right).topk(self.width).indices
                for part, draws in self._draws(own, generator)
            ]
        )

    def _draws(self, own: Tensor, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        """Parts of a list of labels, and for each label one random number per target, [part, t]."""
        for part in own.split(max(1, CHUNK // len(self.labels))):
            yield part, torch.rand(len(part), len(self.labels), generator=generator)

    def new_features(self, aims: Tensor, generator: torch.Generator) -> Tensor:
        """Corners away from the class of a node's first target, [count, d]."""
        own = self.labels[aims[:, 0]]
        chosen = torch.cat(
            [(draws + (self.labels != part.unsqueeze(1))).argmax(1) for part, draws in self._draws(own, generator)]
        )
        real = torch.rand(len(aims), 1, generator=generator) < 0.5
        towards = torch.where(real, self.rows[chosen], self.means[self.labels[chosen]])
        low, high = self.context.injection.feature_range
        return torch.where(towards > self.means[own], float(high), float(low))

    def opposite(self, x: Tensor) -> Tensor:
        """The other end of the range in every coordinate."""
        low, high = self.context.injection.feature_range
        return torch.where(x > (low + high) / 2, float(low), float(high))

    def aims_of(self, edit: GraphEdit, generator: torch.Generator) -> Tensor:
        """Positions of the targets of every injected node, [m, width]; random ones where it has fewer.

        Edges to other nodes than targets, and those of a node beyond the width, are left out.
        """
        position = torch.full((edit.n + edit.num_new,), -1)
        position[self.context.targets] = torch.arange(len(self.labels))
        lower, upper = edit.add.sort(0).values
        at, node = position[lower], upper - edit.n
        at, node = at[(at >= 0) & (node >= 0)], node[(at >= 0) & (node >= 0)]
        found, start = [], 0
        for part, draws in self._draws(torch.arange(edit.num_new), generator):
            own = (node >= start) & (node < start + len(part))
            draws[node[own] - start, at[own]] += 1
            found.append(draws.topk(self.width).indices)
            start += len(part)
        return torch.cat(found)

    def edit(self, aims: Tensor, x: Tensor) -> GraphEdit:
        """The injection of nodes with these targets, [m, width], and features, [m, d]."""
        n, (count, width) = self.context.graph.n, aims.shape
        nodes = torch.arange(n, n + count).repeat_interleave(width)
        return GraphEdit(n=n, add=torch.stack([self.context.targets[aims.flatten()], nodes]), new_x=x)

    def judge(self, aims: Tensor, x: Tensor) -> Judged:
        """Ask once, the model or its oracle."""
        with torch.no_grad():
            losses, right = self._judge(self._ask(self.edit(aims, x), x))
        return Judged((int(right.sum()), -float(losses.mean())), right)


def _drawn(context: AttackContext, generator: torch.Generator) -> GraphEdit:
    """Nodes with random targets and random ends of the range, for an attacker who may not even ask twice."""
    threat, (n, t) = context.injection, (context.graph.n, len(context.targets))
    width = min(threat.edges_per_node, t)
    aims = torch.cat([torch.randperm(t, generator=generator)[:width] for _ in range(threat.nodes)])
    ends = torch.randint(2, (threat.nodes, context.graph.num_features), generator=generator)
    x = torch.tensor(threat.feature_range, dtype=torch.float32)[ends]
    nodes = torch.arange(n, n + threat.nodes).repeat_interleave(width)
    return GraphEdit(n=n, add=torch.stack([context.targets[aims], nodes]), new_x=x)
