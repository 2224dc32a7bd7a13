"""Adversarial training: every step sees a graph that was just attacked with the current weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from grb.attack.base import Attack, Scene, run_attack
from grb.dataset.view import View
from grb.defense.base import Training
from grb.errors import DataError
from grb.graph import Graph
from grb.threat import Threat


@dataclass(frozen=True, kw_only=True)
class AdversarialTraining(Training):
    """GRB's adversarial training, for any model and any attack.

    After ``warm_up`` clean epochs, each epoch injects nodes into the training graph by attacking the training nodes with the
    current weights in evaluation mode, switches back to training mode, and takes one step on the attacked graph; injected
    nodes have no label and add nothing to the loss. The weights of the best validation epoch after the warm-up are kept.

    Args:
        attack: What to train against, e.g. ``FGSM(epsilon=0.01, n_epoch=10)`` (Table 5).
        threat: Limits of that attack.
        warm_up: Clean epochs before.
        every: Attack anew every so many epochs; in between the last attacked graph is used again.

    References:
        Zheng et al., *Graph Robustness Benchmark*, NeurIPS 2021 Datasets and Benchmarks, appendix A.4.3.
    """

    attack: Attack
    threat: Threat
    warm_up: int = 50
    every: int = 1

    def __post_init__(self) -> None:
        if self.warm_up < 0 or self.every < 1:
            raise DataError(f"warm_up is {self.warm_up} and every is {self.every}, but at least 0 and 1 are needed")

    def options(self) -> dict[str, Any]:
        return {"augment": self._attacker(), "select_from": self.warm_up}

    def _attacker(self) -> Callable[[nn.Module, Graph, Tensor, int, torch.Generator], Graph]:
        last: list[Graph] = []

        def augment(model: nn.Module, graph: Graph, ids: Tensor, epoch: int, generator: torch.Generator) -> Graph:
            if epoch < self.warm_up:
                return graph
            if not last or (epoch - self.warm_up) % self.every == 0:
                seed = int(torch.randint(2**62, (1,), generator=generator, device=generator.device))
                view = View(graph, ids, ids[:0], ids, torch.arange(graph.n), 0, inductive=False)
                edit = run_attack(self.attack, Scene(view, self.threat, model, "white-box"), seed=seed).edit
                last[:] = [graph.apply(edit)]
            return last[0]

        return augment
