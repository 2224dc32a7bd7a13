"""Auto-PGD: signed gradient steps with momentum, halved where they stop paying."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from grb.attack.features import BestIterate, Objective, Range, judge_last

MOMENTUM = 0.75
# a step size is kept while at least this share of its steps raised the loss
IMPROVING = 0.75


@dataclass(frozen=True)
class AutoPGD:
    r"""Signed gradient steps whose size is halved at checkpoints without progress, going on from the best point.

    .. math:: z = \mathrm{clip}(x_k + \eta\, \mathrm{sign}(\nabla L)), \qquad
              x_{k+1} = \mathrm{clip}(x_k + \alpha (z - x_k) + (1 - \alpha)(x_k - x_{k-1}))

    with :math:`\alpha = 0.75`. At a checkpoint :math:`\eta` is halved if fewer than 75 % of the steps since the last one
    raised the loss, or if neither :math:`\eta` nor the highest loss has changed since.

    Args:
        step_size: :math:`\eta` at first.
        steps: Number of steps.
        patience: Stop after this number of steps without a lower accuracy; None to never stop early.

    References:
        Croce and Hein, *Reliable Evaluation of Adversarial Robustness with an Ensemble of Diverse Parameter-free Attacks*,
        ICML 2020.
    """

    step_size: float
    steps: int
    patience: int | None = None

    def __call__(self, objective: Objective, so_far: Tensor, limits: Range, generator: torch.Generator) -> Tensor:
        """The best iterate, [m, d]; new rows start at zero."""
        x = before = torch.where(so_far.isnan(), 0.0, so_far).clamp(*limits)
        best, progress = BestIterate(self.patience), _Progress(self.step_size)
        marks = checkpoints(self.steps)
        for step in range(self.steps):
            slope = best.gradient(objective, x)
            if slope is None:
                return best.features
            x, gradient = x.detach(), slope[0].sign()
            progress.update(slope[1], x, gradient)
            if step in marks and progress.stalled():
                x, before, gradient = progress.x, progress.x, progress.gradient
            ahead = (x + progress.step_size * gradient).clamp(*limits)
            weight = MOMENTUM if step else 1.0
            x, before = (x + weight * (ahead - x) + (1 - weight) * (x - before)).clamp(*limits), x
        return judge_last(objective, best, x)


@dataclass
class _Progress:
    """The point with the highest loss, and how the steps since the last checkpoint went."""

    step_size: float
    x: Tensor = None  # type: ignore[assignment]
    gradient: Tensor = None  # type: ignore[assignment]
    highest: float = -math.inf
    last: float = -math.inf
    raised: int = 0
    steps: int = 0
    unchanged: tuple[float, float] = (0.0, 0.0)

    def update(self, loss: float, x: Tensor, gradient: Tensor) -> None:
        self.steps += 1
        self.raised += loss > self.last
        self.last = loss
        if loss > self.highest:
            self.highest, self.x, self.gradient = loss, x, gradient

    def stalled(self) -> bool:
        """Whether the step size was halved; the count begins anew."""
        now = (self.step_size, self.highest)
        slow = self.raised < IMPROVING * self.steps or now == self.unchanged
        self.unchanged, self.raised, self.steps = now, 0, 0
        if slow:
            self.step_size /= 2
            self.last = self.highest
        return slow


def checkpoints(steps: int) -> set[int]:
    """Steps at which progress is judged: their distances shrink from 22 % to 6 % of all steps.

    >>> sorted(checkpoints(100))
    [22, 41, 57, 70, 80, 87, 93, 99]
    """
    marks, before, at = set(), 0.0, 0.22
    while at <= 1:
        marks.add(math.ceil(at * steps - 1e-9))
        before, at = at, at + max(at - before - 0.03, 0.06)
    return marks
