"""What it is worth to flip a pair: nothing in particular, its labels, its centrality, its gradient.

The spectral scores have files of their own: :mod:`~grb.attack.modification.spectrum`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from grb.attack.base import AttackContext
from grb.attack.losses import Loss, cross_entropy, margin
from grb.attack.modification.base import PairScores, SearchState
from grb.attack.modification.gradient import Gradient, Victim
from grb.errors import DataError
from grb.graph import CSR, Graph, normalise
from grb.model.base import predict

# rounds in which labels are passed on to neighbours where no model can tell them
SPREADING = 20


class Pairwise:
    """Scores that are computed pair by pair; a block is all its pairs."""

    def adds(self, pairs: Tensor) -> Tensor:
        """Scores of absent pairs, [p] from [2, p]."""
        raise NotImplementedError

    def drops(self, pairs: Tensor) -> Tensor:
        """Scores of edges, [p] from [2, p]."""
        raise NotImplementedError

    def add_block(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Scores of the pairs of some nodes with others, [r, c]."""
        pairs = torch.stack([rows.repeat_interleave(len(columns)), columns.repeat(len(rows))])
        return self.adds(pairs).view(len(rows), len(columns))


class Constant(Pairwise):
    """The same score for all pairs: what is flipped is left to the seeded shuffle."""

    def __call__(self, state: SearchState) -> PairScores:
        """The same score for every pair."""
        return self

    def adds(self, pairs: Tensor) -> Tensor:
        """Zero for every absent pair, [p]."""
        return torch.zeros(pairs.shape[1])

    drops = adds


@dataclass(frozen=True, eq=False)
class Labels(Pairwise):
    """Edges inside a class and absent pairs between classes, with equal scores; nothing else.

    Args:
        labels: One per node, [n].
    """

    labels: Tensor

    def __call__(self, state: SearchState) -> PairScores:
        """Scores by the labels of both ends."""
        return self

    def adds(self, pairs: Tensor) -> Tensor:
        """Zero for pairs between classes, -inf inside a class, [p]."""
        return torch.where(self._alike(pairs), -torch.inf, 0.0)

    def drops(self, pairs: Tensor) -> Tensor:
        """Zero for edges inside a class, -inf between classes, [p]."""
        return torch.where(self._alike(pairs), 0.0, -torch.inf)

    def _alike(self, pairs: Tensor) -> Tensor:
        ends = self.labels[pairs]
        return ends[0] == ends[1]


def known_labels(context: AttackContext) -> Tensor:
    """A label for every node, [n]: the visible one, else what the model says on the clean graph.

    Without a model the visible labels are passed on along the edges, :math:`F \\leftarrow \\hat A F` with visible rows
    put back in every round; a node that no label reaches gets the most frequent one.
    """
    seen = context.graph.y
    plain = seen is not None and seen.dim() == 1
    if context.model is not None:
        said = predict(context.model, context.graph).argmax(1)
        if context.true_labels is not None:
            said[context.targets] = context.true_labels
        return torch.where(seen >= 0, seen, said) if plain and seen is not None else said
    if not plain or seen is None or not (seen >= 0).any():
        raise DataError("this attack needs labels, but the view shows none; give it a model, which predicts them")
    return _spread(context.graph, seen)


def _spread(graph: Graph, seen: Tensor) -> Tensor:
    known = seen >= 0
    given = torch.zeros(graph.n, int(seen.max()) + 1)
    given[known] = torch.nn.functional.one_hot(seen[known], given.shape[1]).float()
    op: CSR = normalise.gcn(graph.adj)
    mass = given
    for _ in range(SPREADING):
        mass = torch.where(known.unsqueeze(1), given, op @ mass)
    reached = mass.sum(1) > 0
    return torch.where(reached, mass.argmax(1), given.sum(0).argmax())


@dataclass(frozen=True, eq=False)
class Central:
    """Sum of a centrality over both ends; additions are ranked as in the complement graph, the other way round.

    Args:
        values: Centrality of every node, [n]; negative ones for the least central edges first.
    """

    values: Tensor

    def __call__(self, state: SearchState) -> PairScores:
        """Scores by the centralities of both ends."""
        return self

    def drops(self, pairs: Tensor) -> Tensor:
        """Sum of the centralities of both ends, [p]."""
        return self.values[pairs].sum(0)

    def adds(self, pairs: Tensor) -> Tensor:
        """Minus the sum of the centralities of both ends, [p]."""
        return -self.drops(pairs)

    def add_block(self, rows: Tensor, columns: Tensor) -> Tensor:
        """The same for the pairs of some nodes with others, [r, c]."""
        return -(self.values[rows].unsqueeze(1) + self.values[columns])


class ByGradient:
    r"""First-order change of the loss by a flip, :math:`(1 - 2 a_{uv})\, \partial L / \partial a_{uv}`.

    Args:
        context: With a model.
        loss: What is raised, per target; the tanh-margin in units of the median clean margin if not given.
        judged: Raise the loss of :class:`Judged` instead.
    """

    def __init__(self, context: AttackContext, loss: Loss | None = None, *, judged: bool = False) -> None:
        self.judged = Judged(context) if judged else None
        self.context, self.loss = context, self.judged or loss

    @cached_property
    def victim(self) -> Victim:
        """The attacked model on the clean graph; made once."""
        return victim_of(self.context, self.loss)

    def __call__(self, state: SearchState) -> PairScores:
        """Scores by the gradient of the loss at the graph attacked so far."""
        if self.judged is not None:
            self.judged.look(state)
        gradient = self.victim.gradient(state.adj)
        self.context.report(gradient.loss, gradient.kept)
        return GradientScores(gradient, state.clean)


class Judged:
    r"""Cross-entropy of the targets that the attacked model still gets right, those near its boundary first.

    .. math:: \ell_v = -w_v \log p_y, \quad w_v = [m_v > 0]\, e^{-m_v / \operatorname{median}_{m_u > 0} m_u}

    The margins :math:`m` are those of the model itself on the graph attacked so far (``context.judge``), the probabilities
    :math:`p` those of whatever gives the gradients: a relaxation loses targets that the model keeps.

    Args:
        context: With a model; its own margins count if it has no judge.
    """

    def __init__(self, context: AttackContext) -> None:
        model = context.surrogate() if context.judge is None else context.judge
        self.judge = Victim(model, context.graph, context.targets, labels=context.true_labels)
        self.weights: Tensor | None = None

    def look(self, state: SearchState) -> None:
        """Weigh the targets by the model's outputs on the graph attacked so far."""
        margins = -margin(self.judge.logits(state.adj)[self.judge.targets], self.judge.labels)
        right = margins > 0
        typical = margins[right].median() if right.any() else margins.new_ones(())
        self.weights = torch.where(right, torch.exp(-margins / typical.clamp_min(1e-12)), 0.0)

    def __call__(self, logits: Tensor, y: Tensor) -> Tensor:
        """Weighted cross-entropy of every target, [t]."""
        loss = cross_entropy(logits, y)
        return loss if self.weights is None else loss * self.weights


def victim_of(context: AttackContext, loss: Loss | None = None, *, gradients: bool = True) -> Victim:
    """The context's model as something that gives gradients of edges; notes where they cost more, if they are wanted."""
    victim = Victim(context.surrogate(), context.graph, context.targets, loss, context.true_labels)
    if gradients and not victim.closed_form:
        context.note("gradients of edges by autograd, block by block: this model has no closed form")
    return victim


@dataclass(frozen=True, eq=False)
class GradientScores:
    """Scores of pairs from the gradient of the loss by their weights."""

    gradient: Gradient
    clean: Graph

    def adds(self, pairs: Tensor) -> Tensor:
        """Gradients of absent pairs, [p]."""
        return self.gradient.of(pairs)

    def drops(self, pairs: Tensor) -> Tensor:
        """Minus the gradients of edges, times their weights, [p]."""
        return -weights(self.clean, pairs) * self.gradient.of(pairs)

    def add_block(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Gradients of the pairs of some nodes with others, [r, c]."""
        return self.gradient.block(rows, columns)


def weights(graph: Graph, pairs: Tensor) -> Tensor | float:
    """Weight of every edge, [p]; one number where all are one."""
    adj = graph.adj
    if adj.values is None:
        return 1.0
    return adj.values[torch.searchsorted(adj.keys, pairs[0] * adj.n + pairs[1])]
