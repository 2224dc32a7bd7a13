"""FGSM, iterated: signed gradient steps from zero features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from grb.attack.base import AttackContext
from grb.attack.injection.base import Limits, inject
from grb.attack.injection.edges import EdgeRule, random_edges
from grb.attack.injection.features import SignAscent, check_steps
from grb.graph import GraphEdit


@dataclass(frozen=True, kw_only=True)
class FGSM(Limits):
    """Random edges, features by iterated signed gradients of the cross-entropy, starting at zero.

    Args:
        epsilon: Step.
        n_epoch: Steps.
        patience: Stop after so many steps without a lower accuracy of the attacked model; None never.
        edges: Rule that wires the injected nodes.

    References:
        Goodfellow et al., *Explaining and Harnessing Adversarial Examples*, ICLR 2015.
        Zheng et al., *Graph Robustness Benchmark*, NeurIPS 2021 Datasets and Benchmarks.
    """

    epsilon: float = 0.01
    n_epoch: int = 1000
    patience: int | None = None
    edges: EdgeRule = random_edges
    version = 1
    start: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        check_steps(epsilon=float(self.epsilon), n_epoch=self.n_epoch, patience=self.patience)

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        rule = SignAscent(self.epsilon, self.n_epoch, noise=self.start, patience=self.patience)
        return inject(context, edges=self.edges, features=rule, generator=generator)
