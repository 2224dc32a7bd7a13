"""Adversarial training: every step sees a graph that was just attacked with the current weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from grb.attack.base import Attack, AttackContext, run_attack
from grb.attack.features import Objective, Range, SignAscent, check_steps
from grb.attack.injection import FGSM, PGD
from grb.attack.injection.base import inject
from grb.attack.injection.edges import EdgeRule, random_edges
from grb.attack.losses import tanh_margin
from grb.dataset.view import View
from grb.defense.base import Training
from grb.errors import DataError
from grb.graph import Graph, GraphEdit
from grb.model.base import predict
from grb.threat import Threat
from grb.trainer import Fit

Start = Literal["zero", "random", "full-range"]
WARM_UP = 50
TRAINING_LOSSES = ("cross-entropy", "tanh-margin")
SELECTIONS = ("clean", "attacked")


@dataclass(frozen=True, kw_only=True)
class FullRange:
    """Signed gradient steps that reach the whole range of features, from a start anywhere in it.

    FGSM with Table 5's ten steps of 0.01 from zero never leaves [-0.1, 0.1], where the attacks of an evaluation only
    begin. Here new features are drawn uniformly from the range, and a step is the width of the range divided by the
    number of steps.

    Args:
        steps: Number of steps.
        edges: Rule that wires the injected nodes.
    """

    steps: int = 10
    edges: EdgeRule = random_edges
    version = 1

    def __post_init__(self) -> None:
        check_steps(steps=self.steps)

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Wire the injected nodes and optimise their features over the whole range."""
        return inject(context, edges=self.edges, features=self._features, generator=generator)

    def _features(self, objective: Objective, so_far: Tensor, limits: Range, generator: torch.Generator) -> Tensor:
        low, high = limits
        start = low + (high - low) * torch.rand(so_far.shape, generator=generator)
        rule = SignAscent((high - low) / max(self.steps, 1), self.steps)
        return rule(objective, torch.where(so_far.isnan(), start, so_far), limits, generator)


def training_attack(start: Start, step: float, steps: int) -> Attack:
    """What to train against: FGSM from zero as in the paper, the same from random features, or over the whole range.

    Args:
        start: Where injected features begin.
        step: Size of one step; ``full-range`` has its own.
        steps: Number of steps.
    """
    if start == "zero":
        return FGSM(step_size=step, steps=steps)
    if start == "random":
        return PGD(step_size=step, steps=steps)
    if start == "full-range":
        return FullRange(steps=steps)
    raise DataError(f"start is {start!r}, but {', '.join(get_args(Start))} are known")


@dataclass(frozen=True, kw_only=True)
class AdversarialTraining(Training):
    """GRB's adversarial training, for any model and any attack.

    After ``warm_up`` clean epochs, each epoch injects nodes into the training graph by attacking the training nodes with the
    current weights in evaluation mode, switches back to training mode, and takes one step on the attacked graph; injected
    nodes have no label and add nothing to the loss. The weights of the best validation epoch after the warm-up are kept.

    Args:
        attack: What to train against, e.g. ``FGSM(step_size=0.01, steps=10)`` (Table 5).
        threat: Limits of that attack.
        warm_up: Clean epochs before; if not given 50, or half of all epochs where these are fewer than 100.
        every: Number of epochs between two attacks; in between the last attacked graph is used again.

    References:
        Zheng et al., *Graph Robustness Benchmark*, NeurIPS 2021 Datasets and Benchmarks, appendix A.4.3.
    """

    attack: Attack
    threat: Threat
    warm_up: int | None = None
    every: int = 1

    def __post_init__(self) -> None:
        if self.clean_epochs < 0 or self.every < 1:
            raise DataError(f"warm_up is {self.warm_up} and every is {self.every}, but at least 0 and 1 are needed")
        if self.clean_epochs >= self.settings.epochs > 0:
            raise DataError(
                f"warm_up is {self.warm_up}, but there are {self.settings.epochs} epochs: none would be adversarial"
            )

    @property
    def clean_epochs(self) -> int:
        """How long the warm-up is."""
        return min(WARM_UP, self.settings.epochs // 2) if self.warm_up is None else self.warm_up

    def options(self) -> dict[str, Any]:
        """The attack in front of every step, and the first epoch that may be the best one."""
        return {"augment": self._attacker(), "select_from": self.clean_epochs}

    def _attacker(self) -> Callable[[nn.Module, Graph, Tensor, int, torch.Generator], Graph]:
        return self._attacked_graph()

    def _attacked_graph(self) -> Callable[[nn.Module, Graph, Tensor, int, torch.Generator], Graph]:
        """A function that attacks the given nodes of a graph with the current weights, every few epochs."""
        last: list[Graph] = []

        def augment(model: nn.Module, graph: Graph, ids: Tensor, epoch: int, generator: torch.Generator) -> Graph:
            if epoch < self.clean_epochs:
                return graph
            if not last or (epoch - self.clean_epochs) % self.every == 0:
                seed = int(torch.randint(2**62, (1,), generator=generator, device=generator.device))
                view = View(graph, ids, ids[:0], ids, torch.arange(graph.n), 0, inductive=False)
                edit = run_attack(self.attack, AttackContext(view, self.threat, model, "white-box"), seed=seed).edit
                last[:] = [graph.apply(edit)]
            return last[0]

        return augment


@dataclass(frozen=True, kw_only=True)
class AttackedSelection(AdversarialTraining):
    r"""Adversarial training with another loss, or with the best epoch chosen under attack.

    Clean validation accuracy says little about which epoch is the most robust. With ``select="attacked"`` every epoch after
    the warm-up also attacks the validation nodes within the same limits, and the weights of the highest accuracy under that
    attack are kept. ``loss="tanh-margin"`` trains on :math:`\tanh(\max_{c \ne y} z_c - z_y)` after Gosch et al., where nodes
    that are lost or safe count little.

    Args:
        loss: ``cross-entropy`` or ``tanh-margin``, in every epoch.
        select: ``clean`` or ``attacked``: the validation accuracy that chooses the epoch.

    References:
        Gosch et al., *Adversarial Training for Graph Neural Networks: Pitfalls, Solutions, and New Directions*, NeurIPS 2023.
    """

    loss: str = "cross-entropy"
    select: str = "clean"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value, allowed in (("loss", self.loss, TRAINING_LOSSES), ("select", self.select, SELECTIONS)):
            if value not in allowed:
                raise DataError(f"{name} is {value!r}, but {' or '.join(allowed)} is needed")
        if self.loss != "cross-entropy" and self.settings.class_weights is not None:
            raise DataError(f"class_weights are for cross-entropy, but loss is '{self.loss}'; leave one of them out")

    def options(self) -> dict[str, Any]:
        """The attack in front of every step and, if asked for, in front of every validation."""
        found = super().options()
        if self.loss == "tanh-margin":
            found["loss"] = lambda logits, y: tanh_margin(logits, y).mean()
        if self.select == "attacked":
            found["augment_validation"] = self._attacked_graph()
        return found


@dataclass(frozen=True, kw_only=True)
class SelfTraining(AttackedSelection):
    """Adversarial training in which nodes without labels count too, with labels of a clean model.

    A model of the same settings is first trained without an attack; what it says of the nodes whose labels are hidden becomes
    their label, and they join the loss and the attacked nodes. Where these are the test nodes (transductive training), a model
    can learn their labels by heart and look robust by ignoring the graph: results there say little about unseen nodes.

    References:
        Gosch et al., *Adversarial Training for Graph Neural Networks: Pitfalls, Solutions, and New Directions*, NeurIPS 2023.
    """

    def fit_with_history(self, view: View, *, seed: int) -> tuple[nn.Module, Fit]:
        """The model and how its training went; the same seed gives the same weights."""
        return super().fit_with_history(self.labelled(view, seed=seed), seed=seed)

    def labelled(self, view: View, *, seed: int) -> View:
        """The view with labels of a clean model where there are none."""
        if view.graph.ptr is not None or view.labels.dim() != 1:
            raise DataError("self_training is for nodes with one label each, but the dataset has others; leave it out")
        hidden = (view.labels < 0).nonzero().flatten()
        if view.inductive or not len(hidden):
            raise DataError(
                "self_training needs nodes without labels in the training graph, but inductive training has none; "
                "train transductively, or leave self_training out"
            )
        plain = Training(settings=self.settings, device=self.device, weight_decay=self.weight_decay)
        clean = plain.fit(view, seed=seed)
        y = view.labels.clone()
        y[hidden] = predict(clean, view.graph).argmax(1)[hidden].to(y.dtype)
        return replace(view, graph=replace(view.graph, y=y), train=torch.cat([view.train, hidden]).sort().values)
