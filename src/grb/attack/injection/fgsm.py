"""FGSM, iterated: signed gradient steps from zero features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from grb.attack.base import AttackContext, accepts_paper_names
from grb.attack.features import SignAscent, check_steps
from grb.attack.injection.base import Limits, inject
from grb.attack.injection.edges import EdgeRule, random_edges
from grb.graph import GraphEdit


@accepts_paper_names
@dataclass(frozen=True, kw_only=True)
class FGSM(Limits):
    """Random edges, features by iterated signed gradients of the cross-entropy, starting at zero.

    Args:
        step_size: Size of one step.
        steps: Number of steps.
        patience: Stop after this number of steps without a lower accuracy of the attacked model; None to never stop early.
        edges: Rule that wires the injected nodes.

    References:
        Goodfellow et al., *Explaining and Harnessing Adversarial Examples*, ICLR 2015.
        Zheng et al., *Graph Robustness Benchmark*, NeurIPS 2021 Datasets and Benchmarks.
    """

    step_size: float = 0.01
    steps: int = 1000
    patience: int | None = None
    edges: EdgeRule = random_edges
    version = 1
    start: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        check_steps(step_size=float(self.step_size), steps=self.steps, patience=self.patience)

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Wire the injected nodes and optimise their features."""
        rule = SignAscent(self.step_size, self.steps, noise=self.start, patience=self.patience)
        return inject(context, edges=self.edges, features=rule, generator=generator)
