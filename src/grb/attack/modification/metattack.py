"""Metattack: edges whose flip harms a model that is trained after it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from grb.attack.base import AttackContext, accepts_paper_names
from grb.attack.losses import Loss, masked_cross_entropy
from grb.attack.modification.base import Limits, PairScores, SearchState, finished
from grb.attack.modification.gradient import Gradient, of_propagated
from grb.attack.modification.scores import GradientScores
from grb.attack.modification.selectors import Greedy
from grb.attack.setting_checks import at_least
from grb.errors import DataError
from grb.graph import Adjacency, GraphEdit, dense, normalise

Goal = Literal["self", "train", "both"]
Order = Literal["exact", "first"]

HOPS = 2


@dataclass(frozen=True, kw_only=True)
class SurrogateTraining(Limits):
    """A poisoning attack through the training of a linear surrogate; it needs no model of yours.

    Args:
        lr: Learning rate of that training; made smaller where the features are so large that the training would diverge.
        momentum: Momentum of that training.
        goal: Whose loss is raised: ``self`` that of the targets with the labels that the surrogate gave them on the clean
            graph, ``train`` that of the training nodes, or ``both``.
    """

    lr: float = 0.1
    momentum: float = 0.9
    goal: Goal = "self"
    needs_model = False
    objective: ClassVar[str] = "poisoning"


@accepts_paper_names
@dataclass(frozen=True, kw_only=True)
class Metattack(SurrogateTraining):
    r"""Poisoning by meta-gradients, without an n x n matrix.

    A linear surrogate :math:`Z = \hat A^2 X W` is trained from zero on the graph attacked so far, by gradient descent with
    momentum. The loss after the training depends on the edges directly and through every step of it. All of that passes
    through the rows :math:`S = \hat A^2 X`: the training is unrolled back to :math:`\partial L / \partial S`, [n, d], and
    from there the gradient of any pair is an inner product (:mod:`~grb.attack.modification.gradient`). The best pairs are
    flipped, the surrogate is trained anew, and so forth. Needs no model of yours; retrain on :func:`poisoned` to see what
    it does.

    Args:
        steps: Number of training steps of the surrogate in each round.
        order: ``exact``, or ``first``: the sum of :math:`\partial L(W_t, A) / \partial A` over steps, their weights held
            fixed (A-Meta). It is faster where there are many training nodes, and somewhat weaker.
        snapshots: Steps that ``first`` adds up, evenly spread over the training.
        refresh: Flips between two trainings.
        loss: What is raised, per node; the cross-entropy of the nodes that still get their label, because plain
            cross-entropy spends the budget on nodes that are lost already.

    References:
        Zügner and Günnemann, *Adversarial Attacks on Graph Neural Networks via Meta Learning*, ICLR 2019.
    """

    steps: int = 100
    order: Order = "exact"
    snapshots: int = 10
    refresh: int = 8
    loss: Loss = masked_cross_entropy
    version = 2

    def __post_init__(self) -> None:
        for name, kind in (("goal", Goal), ("order", Order)):
            if getattr(self, name) not in get_args(kind):
                allowed = " or ".join(map(repr, get_args(kind)))
                raise DataError(f"{name} is {getattr(self, name)!r}, but {allowed} is needed")
        at_least(1, steps=self.steps, refresh=self.refresh, snapshots=self.snapshots)
        if not self.lr > 0 or not 0 <= self.momentum < 1:
            raise DataError(
                f"lr is {self.lr} and momentum is {self.momentum}, but a positive number and 0 to below 1 are needed"
            )

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Flip pairs by the gradient through the surrogate's training."""
        state = SearchState.of(context, everywhere=True)
        if state.left <= 0 or state.space.count == 0:
            return state.edit
        pick = Greedy(refresh=self.refresh, above=0.0, disjoint=True)
        return finished(context, pick(state, _MetaScore(self, context), generator))


class _MetaScore:
    """Scores of pairs by the loss of a surrogate that is trained on the graph attacked so far."""

    def __init__(self, attack: Metattack, context: AttackContext) -> None:
        y, train = context.graph.y, context.view.train
        if y is None or y.dim() != 1 or not len(train):
            raise DataError("metattack trains a surrogate, but the view shows no training nodes with labels")
        self.attack, self.context, self.train = attack, context, train
        self.x = dense(context.graph.x)
        classes = max(context.view.num_classes, int(y[train].max()) + 1)
        self.labels = y[train]
        self.wanted = functional.one_hot(self.labels, classes).to(self.x.dtype)
        self.watched: tuple[Tensor, Tensor] | None = None

    def gradient(self, adj: Adjacency) -> Gradient:
        """Derivatives of the loss after training, by edges and their weights."""
        return of_propagated(adj, self.x, HOPS, self._judge)

    def judged(self, adj: Adjacency) -> tuple[float, float]:
        """The loss after training on these edges, and the fraction of kept labels."""
        op = normalise.gcn(adj)
        with torch.no_grad():
            loss, kept = self._judge(op @ (op @ self.x))
        return float(loss), kept

    def __call__(self, state: SearchState) -> PairScores:
        gradient = self.gradient(state.adj)
        self.context.report(gradient.loss, gradient.kept)
        return GradientScores(gradient, state.clean)

    def _judge(self, smooth: Tensor) -> tuple[Tensor, float]:
        """Train on rows of the propagated features and look at the loss afterwards, or on the way to first order."""
        rows = _with_ones(smooth)
        weights = self._trained(rows[self.train])
        nodes, labels = self._watch(rows, weights[-1])
        logits = [rows[nodes] @ weight for weight in weights]
        loss = torch.stack([self.attack.loss(each, labels).mean() for each in logits]).sum()
        return loss, float((logits[-1].detach().argmax(1) == labels).float().mean())

    def _watch(self, rows: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Whose loss counts and with which labels, decided once, on the clean graph."""
        if self.watched is None:
            targets = self.context.targets
            said = (rows[targets] @ weight).detach().argmax(1)
            nodes = {"self": [targets], "train": [self.train], "both": [targets, self.train]}[self.attack.goal]
            labels = {"self": [said], "train": [self.labels], "both": [said, self.labels]}[self.attack.goal]
            self.watched = torch.cat(nodes), torch.cat(labels)
        return self.watched

    def _trained(self, rows: Tensor) -> list[Tensor]:
        """The weights after training, with their history; to first order those along the way, without it."""
        attack = self.attack
        weight = torch.zeros(rows.shape[1], self.wanted.shape[1], dtype=rows.dtype)
        speed = torch.zeros_like(weight)
        # the loss has no curvature above half the mean squared length of the rows
        rate = min(attack.lr, 2 / max(float(rows.detach().square().sum(1).mean()), 1e-12))
        if attack.order == "exact":
            # of every stretch only its beginning is kept, and the rest computed again on the way back
            stretch = math.isqrt(attack.steps - 1) + 1
            for first in range(0, attack.steps, stretch):
                steps = min(stretch, attack.steps - first)
                weight, speed = checkpoint(self._steps, rows, weight, speed, rate, steps, use_reentrant=False)
            return [weight]
        kept = []
        every = max(1, attack.steps // attack.snapshots)
        for first in range(0, attack.steps, every):
            steps = min(every, attack.steps - first)
            weight, speed = self._steps(rows.detach(), weight, speed, rate, steps)
            kept.append(weight)
        return kept

    def _steps(self, rows: Tensor, weight: Tensor, speed: Tensor, rate: float, count: int) -> tuple[Tensor, Tensor]:
        for _ in range(count):
            error = torch.softmax(rows @ weight, dim=1) - self.wanted
            speed = self.attack.momentum * speed + rows.T @ error / len(rows)
            weight = weight - rate * speed
        return weight, speed


def surrogate_score(attack: Metattack, context: AttackContext) -> _MetaScore:
    """The surrogate of an attack on a context: its training, and derivatives through it."""
    return _MetaScore(attack, context)


def _with_ones(rows: Tensor) -> Tensor:
    """A column of ones, so that a bias is a weight like any other."""
    return torch.cat([rows, rows.new_ones(len(rows), 1)], dim=1)
