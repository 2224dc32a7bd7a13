"""TDGIA: attach to low-degree nodes, batch after batch, with a smooth loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from grb.attack.base import AttackContext, accepts_paper_names
from grb.attack.features import ClippedOptimiser, SmoothMap, check_steps
from grb.attack.injection.base import Limits, inject
from grb.attack.injection.edges import EdgeRule, defective_edges, random_edges, uniform_edges
from grb.attack.losses import cross_entropy, smooth
from grb.errors import DataError
from grb.graph import GraphEdit

RULES: dict[str, EdgeRule] = {"tdgia": defective_edges, "random": random_edges, "uniform": uniform_edges}


@accepts_paper_names
@dataclass(frozen=True, kw_only=True)
class TDGIA(Limits):
    r"""Topological defectiveness chooses the edges, a bounded smooth map and a loss that spares lost nodes the features.

    Batches of ``sequential_step`` of the nodes are wired to the targets with the highest
    :func:`~grb.attack.injection.edges.defectiveness` in the graph attacked so far; then all injected features are
    optimised by Adam behind :math:`x = \mathrm{mid} + \mathrm{half} \cdot \sin u`, lowering
    :math:`\mathrm{mean}_v \max(4 + \log p_{v,y}, 0)^2`.

    Args:
        lr: Learning rate of Adam.
        steps: Number of steps in each round.
        sequential_step: Fraction of the nodes injected in one round.
        inject_mode: ``tdgia``, ``random`` or ``uniform`` edges.
        opt: ``sin`` (the smooth map and loss) or ``clip`` (clipped features and cross-entropy).
        patience: Stop a round after this number of steps without a lower accuracy of the attacked model; None for never.

    Differs from THUDM/grb: earlier batches really go on being optimised, an asymmetric range is respected, any number of
    nodes and targets terminates, and the edges are topological by default (its configurations use random ones).

    References:
        Zou et al., *TDGIA: Effective Injection Attacks on Graph Neural Networks*, KDD 2021.
    """

    lr: float = 0.01
    steps: int = 1000
    sequential_step: float = 0.2
    inject_mode: Literal["tdgia", "random", "uniform"] = "tdgia"
    opt: Literal["sin", "clip"] = "sin"
    patience: int | None = None
    version = 1

    def __post_init__(self) -> None:
        check_steps(lr=float(self.lr), steps=self.steps, patience=self.patience)
        if not 0 < self.sequential_step <= 1:
            raise DataError(f"sequential_step is {self.sequential_step}, but must be above 0 and at most 1")
        if self.inject_mode not in RULES:
            raise DataError(f"inject_mode is {self.inject_mode!r}, but one of {', '.join(RULES)} is needed")
        if self.opt not in ("sin", "clip"):
            raise DataError(f"opt is {self.opt!r}, but 'sin' or 'clip' is needed")

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Inject batch after batch and optimise all injected features each time."""
        rule = SmoothMap if self.opt == "sin" else ClippedOptimiser
        return inject(
            context,
            edges=RULES[self.inject_mode],
            features=rule(lambda variables: torch.optim.Adam(variables, lr=self.lr), self.steps, self.patience),
            loss=smooth if self.opt == "sin" else cross_entropy,
            fraction=self.sequential_step,
            generator=generator,
        )
