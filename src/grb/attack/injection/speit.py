"""SPEIT: the winner of KDD Cup 2020, and what GRB made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from grb.attack.base import AttackContext, accepts_paper_names
from grb.attack.features import ClippedOptimiser, check_steps
from grb.attack.injection.base import Limits, inject
from grb.attack.injection.edges import EdgeRule, interconnected_edges, layered_edges, random_edges
from grb.attack.losses import Loss, cross_entropy
from grb.errors import DataError
from grb.graph import GraphEdit

Wiring = Literal["direct", "inter", "layers"]
WIRINGS: dict[str, EdgeRule] = {"direct": random_edges, "inter": interconnected_edges, "layers": layered_edges}


@accepts_paper_names
@dataclass(frozen=True, kw_only=True)
class SPEIT(Limits):
    r"""Random wiring, possibly through layers of injected nodes, and one strong feature optimisation.

    ``preset="grb"`` is the paper's baseline: direct edges, Adam on the cross-entropy with clipping. ``preset="kddcup"`` is
    the winning entry: two layers of injected nodes and Adadelta on
    :math:`\sum_v (p_{v,c^*} - p_{v,y}) - k\, \mathrm{mean}_v \log p_{v,y}` with :math:`c^*` the least probable class
    before the first step and :math:`k = 1000`.

    Args:
        lr: Learning rate; the preset's own if None (grb 0.01, kddcup 10).
        steps: Number of steps; the preset's own if None (grb 1000, kddcup 100).
        preset: ``grb`` or ``kddcup``.
        wiring: ``direct``, ``inter`` (leftover edges among injected nodes) or ``layers``; the preset's own if None.
        patience: Stop after this number of steps without a lower accuracy of the attacked model; None to never stop early.

    Differs from the published code: all limits hold in every wiring, and partners in the second layer are distinct.

    References:
        Zheng et al., *KDD Cup 2020 ML Track 2: Adversarial Attacks and Defense on Academic Graph, 1st position*, 2020.
    """

    lr: float | None = None
    steps: int | None = None
    preset: Literal["grb", "kddcup"] = "grb"
    wiring: Wiring | None = None
    patience: int | None = None
    version = 1

    def __post_init__(self) -> None:
        if self.preset not in ("grb", "kddcup"):
            raise DataError(f"preset is {self.preset!r}, but 'grb' or 'kddcup' is needed")
        if self.wiring is not None and self.wiring not in WIRINGS:
            raise DataError(f"wiring is {self.wiring!r}, but one of {', '.join(WIRINGS)} is needed")
        check_steps(lr=None if self.lr is None else float(self.lr), steps=self.steps, patience=self.patience)

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Wire the injected nodes and optimise their features."""
        cup = self.preset == "kddcup"
        lr = self.lr or (10.0 if cup else 0.01)
        steps = (100 if cup else 1000) if self.steps is None else self.steps

        def optimiser(variables: list[Tensor]) -> torch.optim.Optimizer:
            if cup:
                return torch.optim.Adadelta(variables, lr=lr, rho=0.9, eps=1e-6)
            return torch.optim.Adam(variables, lr=lr)

        return inject(
            context,
            edges=WIRINGS[self.wiring or ("layers" if cup else "direct")],
            features=ClippedOptimiser(optimiser, steps, self.patience),
            loss=cup_loss() if cup else cross_entropy,
            generator=generator,
        )


def cup_loss(weight: float = 1000.0) -> Loss:
    """The entry's loss; the class to push towards is fixed by the first logits it sees."""
    chosen: list[Tensor] = []

    def loss(logits: Tensor, y: Tensor) -> Tensor:
        if not chosen:
            chosen.append(logits.detach().argmin(1, keepdim=True))
        log_p = functional.log_softmax(logits, dim=1)
        p = log_p.exp()
        own, other = p.gather(1, y.unsqueeze(1)), p.gather(1, chosen[0])
        # a sum over targets beside a mean: per target, so that the mean of the result has the entry's proportions
        return (other - own).squeeze(1) * len(y) - weight * log_p.gather(1, y.unsqueeze(1)).squeeze(1)

    return loss
