"""Metattack to first order: edges whose flip harms a model that is trained after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional

from grb.attack.base import Scene
from grb.attack.losses import Loss, cross_entropy
from grb.attack.modification.base import Ground, Limits, PairScores, finished
from grb.attack.modification.gradient import Gradient, Victim, together
from grb.attack.modification.picks import Greedy
from grb.attack.modification.scores import GradientScores
from grb.errors import DataError
from grb.graph import GraphEdit, normalise
from grb.model.layers import dense
from grb.model.torch import SGC

Goal = Literal["self", "train", "both"]


@dataclass(frozen=True, kw_only=True)
class Metattack(Limits):
    r"""Poisoning by approximate meta-gradients.

    A linear surrogate :math:`Z = \hat A^2 X W` is trained on the graph attacked so far. The loss after training depends on
    the edges directly and through every step of the training; to first order, with the weights of each step held fixed,
    its gradient is the sum over the steps of :math:`\partial L(W_t, A) / \partial A`. The best pairs are flipped, the
    surrogate is trained on, and so forth. Needs no model of yours; retrain on :func:`poisoned` to see what it does.

    Args:
        n_epoch: Training steps of the surrogate before each round.
        lr: Of Adam in that training.
        goal: Whose loss is raised: ``self`` that of the targets with the labels that the surrogate gave them on the clean
            graph, ``train`` that of the training nodes, or ``both``.
        refresh: Flips between two trainings.
        snapshots: Steps whose gradients are added up, evenly spread over the training.
        loss: What is raised, per node.

    References:
        Zügner and Günnemann, *Adversarial Attacks on Graph Neural Networks via Meta Learning*, ICLR 2019.
    """

    n_epoch: int = 100
    lr: float = 0.01
    goal: Goal = "self"
    refresh: int = 8
    snapshots: int = 10
    loss: Loss = cross_entropy
    version = 1
    needs_model = False
    objective: ClassVar[str] = "poisoning"

    def __post_init__(self) -> None:
        if self.goal not in get_args(Goal):
            raise DataError(f"goal is {self.goal!r}, but 'self', 'train' or 'both' is needed")
        for name in ("n_epoch", "refresh", "snapshots"):
            if getattr(self, name) < 1:
                raise DataError(f"{name} is {getattr(self, name)}, but at least 1 is needed")
        if not self.lr > 0:
            raise DataError(f"lr is {self.lr}, but must be positive")

    def __call__(self, scene: Scene, *, generator: torch.Generator) -> GraphEdit:
        ground = Ground.of(scene, everywhere=True)
        if ground.left <= 0 or ground.space.count == 0:
            return ground.edit
        pick = Greedy(refresh=self.refresh, above=0.0, apart=True)
        return finished(scene, pick(ground, _MetaScore(self, scene, generator), generator))


class _MetaScore:
    """Trains the surrogate on at every call, and scores pairs by the sum of its gradients on the way."""

    def __init__(self, attack: Metattack, scene: Scene, generator: torch.Generator) -> None:
        y = scene.graph.y
        train = scene.view.train
        if y is None or y.dim() != 1 or not len(train):
            raise DataError("metattack trains a surrogate, but the view shows no training nodes with labels")
        self.attack, self.scene, self.train, self.labels = attack, scene, train, y[train]
        classes = max(scene.view.num_classes, int(self.labels.max()) + 1)
        self.model = SGC(scene.graph.num_features, classes, k=2, generator=generator).requires_grad_(False).eval()
        self.x = dense(scene.graph.x)
        self.weight = self.model.linear.weight.detach().clone().requires_grad_()
        self.bias = torch.zeros(classes, requires_grad=True)
        self.optimizer = torch.optim.Adam([self.weight, self.bias], lr=attack.lr)
        self.watched: Tensor | None = None
        self.watched_labels = self.labels

    def __call__(self, ground: Ground) -> PairScores:
        op = normalise.gcn(ground.adj)
        smooth = op @ (op @ self.x)
        if self.watched is None:
            self._watch(smooth)
        every = max(1, self.attack.n_epoch // self.attack.snapshots)
        gradients: list[Gradient] = []
        for _ in range(0, self.attack.n_epoch, every):
            self._fit(smooth[self.train], every)
            gradients.append(self._gradient(ground))
        whole = together(gradients)
        self.scene.report(gradients[-1].loss, gradients[-1].kept)
        return GradientScores(whole, ground.clean)

    def _watch(self, smooth: Tensor) -> None:
        """Train on the clean graph once, and decide whose loss counts and with which labels."""
        self._fit(smooth[self.train], self.attack.n_epoch)
        targets = self.scene.targets
        with torch.no_grad():
            said = (smooth[targets] @ self.weight + self.bias).argmax(1)
        nodes = {"self": [targets], "train": [self.train], "both": [targets, self.train]}[self.attack.goal]
        labels = {"self": [said], "train": [self.labels], "both": [said, self.labels]}[self.attack.goal]
        self.watched, self.watched_labels = torch.cat(nodes), torch.cat(labels)

    def _fit(self, rows: Tensor, steps: int) -> None:
        for _ in range(steps):
            self.optimizer.zero_grad()
            with torch.enable_grad():
                loss = functional.cross_entropy(rows @ self.weight + self.bias, self.labels)
            loss.backward()
            self.optimizer.step()

    def _gradient(self, ground: Ground) -> Gradient:
        with torch.no_grad():
            self.model.linear.weight.copy_(self.weight)
            assert self.model.linear.bias is not None and self.watched is not None
            self.model.linear.bias.copy_(self.bias)
        victim = Victim(self.model, self.scene.graph, self.watched, self.attack.loss, self.watched_labels)
        return victim.gradient(ground.adj)
