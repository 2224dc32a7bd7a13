"""TDGIA: attach to low-degree nodes, batch after batch, with a smooth loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch

from grb.attack.base import AttackContext, accepts_paper_names
from grb.attack.features import ClippedOptimiser, SmoothMap, check_steps
from grb.attack.injection.base import Limits, inject
from grb.attack.injection.edges import (
    EdgeRule,
    adaptive_defective_edges,
    defective_edges,
    random_edges,
    uniform_edges,
)
from grb.attack.losses import cross_entropy, smooth
from grb.errors import DataError
from grb.graph import GraphEdit

RULES: dict[str, EdgeRule] = {
    "tdgia": defective_edges,
    "random": random_edges,
    "uniform": uniform_edges,
    "atdgia": adaptive_defective_edges,
}
_USUAL: Mapping[str, Any] = {
    "lr": 0.01,
    "steps": 1000,
    "sequential_step": 0.2,
    "inject_mode": "tdgia",
    "opt": "sin",
    "threshold": 4.0,
}
PRESETS: dict[str, Mapping[str, Any]] = {
    "grb": _USUAL,
    "grb-config": {**_USUAL, "inject_mode": "random", "sequential_step": 1.0},
    "kddcup": {**_USUAL, "lr": 1.0, "steps": 2000},
    "atdgia": {**_USUAL, "inject_mode": "atdgia", "threshold": 5.0},
}


@accepts_paper_names
@dataclass(frozen=True, kw_only=True)
class TDGIA(Limits):
    r"""Topological defectiveness chooses the edges, a bounded smooth map and a loss that spares lost nodes the features.

    Batches of ``sequential_step`` of the nodes are wired to the targets with the highest
    :func:`~grb.attack.injection.edges.defectiveness` in the graph attacked so far; then all injected features are
    optimised by Adam behind :math:`x = \mathrm{mid} + \mathrm{half} \cdot \sin u`, lowering
    :math:`\mathrm{mean}_v \max(r + \log p_{v,y}, 0)^2`.

    What others published under this name is a ``preset``:

    - ``grb``: the attack of GRB's paper, Adam with a rate of 0.01 for 1000 steps, :math:`r = 4`;
    - ``grb-config``: what GRB's configurations run, random edges in a single round;
    - ``kddcup``: the authors' own code, Adam with a rate of 1 for 2000 steps;
    - ``atdgia``: that of Chen et al. (2022), which leaves out targets that are lost already and prefers doubtful ones
      (:func:`~grb.attack.injection.edges.adaptive_defective_edges`), :math:`r = 5`.

    Args:
        lr: Learning rate of Adam; the preset's own if None, as all arguments but ``patience``.
        steps: Number of steps in each round.
        sequential_step: Fraction of the nodes injected in one round.
        inject_mode: ``tdgia``, ``random``, ``uniform`` or ``atdgia`` edges.
        opt: ``sin`` (the smooth map and loss) or ``clip`` (clipped features and cross-entropy).
        threshold: :math:`r`.
        preset: ``grb``, ``grb-config``, ``kddcup`` or ``atdgia``.
        patience: Stop a round after this number of steps without a lower accuracy of the attacked model; None for never.

    Differs from THUDM/grb: earlier batches really go on being optimised, an asymmetric range is respected, any number of
    nodes and targets terminates, and the edges are topological by default (its configurations use random ones).

    References:
        Zou et al., *TDGIA: Effective Injection Attacks on Graph Neural Networks*, KDD 2021;
        Chen et al., *Understanding and Improving Graph Injection Attack by Promoting Unnoticeability*, ICLR 2022.
    """

    lr: float | None = None
    steps: int | None = None
    sequential_step: float | None = None
    inject_mode: Literal["tdgia", "random", "uniform", "atdgia"] | None = None
    opt: Literal["sin", "clip"] | None = None
    threshold: float | None = None
    preset: Literal["grb", "grb-config", "kddcup", "atdgia"] = "grb"
    patience: int | None = None
    version = 1

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise DataError(f"preset is {self.preset!r}, but one of {', '.join(PRESETS)} is needed")
        for name, value in PRESETS[self.preset].items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        assert self.lr is not None and self.sequential_step is not None and self.threshold is not None
        check_steps(lr=float(self.lr), steps=self.steps, patience=self.patience)
        if not 0 <= self.threshold < math.inf:
            raise DataError(f"threshold is {self.threshold}, but a finite number of at least 0 is needed")
        if not 0 < self.sequential_step <= 1:
            raise DataError(f"sequential_step is {self.sequential_step}, but must be above 0 and at most 1")
        if self.inject_mode not in RULES:
            raise DataError(f"inject_mode is {self.inject_mode!r}, but one of {', '.join(RULES)} is needed")
        if self.opt not in ("sin", "clip"):
            raise DataError(f"opt is {self.opt!r}, but 'sin' or 'clip' is needed")

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Inject batch after batch and optimise all injected features each time."""
        assert self.lr is not None and self.steps is not None and self.inject_mode is not None
        assert self.sequential_step is not None and self.threshold is not None
        rate, rule = self.lr, SmoothMap if self.opt == "sin" else ClippedOptimiser
        return inject(
            context,
            edges=RULES[self.inject_mode],
            features=rule(lambda variables: torch.optim.Adam(variables, lr=rate), self.steps, self.patience),
            loss=partial(smooth, threshold=self.threshold) if self.opt == "sin" else cross_entropy,
            fraction=self.sequential_step,
            generator=generator,
        )
