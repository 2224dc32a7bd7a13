"""Which features injected nodes get: optimisers from an objective to features inside the allowed range."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from grb.attack.losses import Loss
from grb.errors import DataError

Range = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Objective:
    """What an optimiser may ask: the loss to raise and the share of targets that keep their clean label.

    Args:
        forward: Function from features, [m, d], to the logits of the targets, [t, classes].
        labels: Labels to take away, [t].
        loss: What to raise, per target.
        report: Called with the value and the fraction of kept labels of every step.
        term: Function of the features whose value is added to the mean loss, such as
            :class:`~grb.attack.injection.homophily.Homophily`; None for none.
    """

    forward: Callable[[Tensor], Tensor]
    labels: Tensor
    loss: Loss
    report: Callable[[float, float], None]
    term: Callable[[Tensor], Tensor] | None = None

    def __call__(self, features: Tensor) -> tuple[Tensor, float]:
        """The mean loss of the targets, and the fraction that keep their clean label."""
        logits = self.forward(features)
        loss = self.loss(logits, self.labels).mean()
        if self.term is not None:
            loss = loss + self.term(features)
        accuracy = float((logits.detach().argmax(1) == self.labels).float().mean())
        return loss, accuracy


class FeatureRule(Protocol):
    """A function from an objective and the features so far (new rows are NaN) to all features, [m, d]."""

    def __call__(self, objective: Objective, so_far: Tensor, limits: Range, generator: torch.Generator) -> Tensor:
        """Optimised features of all injected nodes, [m, d]."""


Schedule = Callable[[float], float]


def constant(progress: float) -> float:
    """The same step from the first to the last."""
    return 1.0


def cosine(progress: float) -> float:
    r"""Steps that fall to zero along a half cosine, :math:`\frac12 (1 + \cos \pi p)` at the fraction p of all steps.

    >>> [round(cosine(progress), 2) for progress in (0.0, 0.5, 1.0)]
    [1.0, 0.5, 0.0]
    """
    return 0.5 * (1 + math.cos(math.pi * progress))


def gaussian(shape: tuple[int, int], scale: float, limits: Range, generator: torch.Generator) -> Tensor:
    """Independent normal features with deviation ``scale``, clipped into the range."""
    return (torch.randn(*shape, generator=generator) * scale).clamp(*limits)


@dataclass
class BestIterate:
    """Keeps the features with the lowest accuracy, and among those the highest loss; stops when patience runs out."""

    patience: int | None
    features: Tensor = field(default_factory=lambda: torch.empty(0))
    accuracy: float = float("inf")
    loss: float = float("-inf")
    waited: int = 0

    def update(self, features: Tensor, loss: float, accuracy: float) -> bool:
        """Keep the features if they are better; True if it is time to stop."""
        self.waited = 0 if accuracy < self.accuracy else self.waited + 1
        if accuracy < self.accuracy or (accuracy == self.accuracy and loss > self.loss):
            self.features, self.loss, self.accuracy = features.detach().clone(), loss, accuracy
        return self.patience is not None and self.waited >= self.patience

    def gradient(self, objective: Objective, x: Tensor) -> tuple[Tensor, float] | None:
        """Judge features and give the gradient of the loss there, and the loss; None if it is time to stop."""
        x.requires_grad_()
        loss, accuracy = objective(x)
        value = float(loss.detach())
        objective.report(value, accuracy)
        if self.update(x, value, accuracy):
            return None
        (gradient,) = torch.autograd.grad(loss, x)
        return gradient, value


@dataclass(frozen=True)
class SignAscent:
    r"""Signed gradient steps, :math:`x \leftarrow \mathrm{clip}(x + \epsilon\, \mathrm{sign}(\nabla_x L))`.

    New rows start at ``noise`` times the larger end of the range times a standard normal; with 0 they start at zero,
    moved into the range. The best iterate is returned, not the last.

    Args:
        step_size: Size of one step.
        steps: Number of steps.
        noise: Deviation of the start, relative to the larger end of the range.
        patience: Stop after this number of steps without a lower accuracy; None to never stop early.
    """

    step_size: float
    steps: int
    noise: float = 0.0
    patience: int | None = None

    def __call__(self, objective: Objective, so_far: Tensor, limits: Range, generator: torch.Generator) -> Tensor:
        """The best iterate, [m, d]."""
        start = torch.zeros_like(so_far)
        if self.noise:
            start = torch.randn(so_far.shape, generator=generator) * (self.noise * max(map(abs, limits)))
        x = torch.where(so_far.isnan(), start, so_far).clamp(*limits)
        best = BestIterate(self.patience)
        for _ in range(self.steps):
            slope = best.gradient(objective, x)
            if slope is None:
                return best.features
            x = (x.detach() + self.step_size * slope[0].sign()).clamp_(*limits)
        return judge_last(objective, best, x)


@dataclass(frozen=True)
class _TorchOptimiser:
    """A torch optimiser of features.

    Args:
        make: Function from a list of tensors to an optimiser, e.g. ``lambda xs: torch.optim.Adam(xs, lr=0.01)``.
        steps: Number of steps.
        patience: Stop after this number of steps without a lower accuracy; None to never stop early.
        schedule: Function from the fraction of steps done to a factor of the learning rate.
    """

    make: Callable[[list[Tensor]], torch.optim.Optimizer]
    steps: int
    patience: int | None = None
    schedule: Schedule = constant


class ClippedOptimiser(_TorchOptimiser):
    """Any torch optimiser on the features themselves, clipped into the range after every step; new rows start at zero."""

    def __call__(self, objective: Objective, so_far: Tensor, limits: Range, generator: torch.Generator) -> Tensor:
        """The best iterate, [m, d]."""
        x = torch.where(so_far.isnan(), 0.0, so_far).clamp(*limits).requires_grad_()
        return _descend(objective, x, lambda value: value, self, clip=limits)


class SmoothMap(_TorchOptimiser):
    r"""Any torch optimiser behind a smooth map onto the range: :math:`x = \frac{hi + lo}{2} + \frac{hi - lo}{2} \sin u`.

    New rows start at :math:`u \sim N(0, 1)`; rows of earlier rounds go on from where they were. Unlike the usual
    :math:`hi \cdot \sin u` the map respects a range that is not symmetric.
    """

    def __call__(self, objective: Objective, so_far: Tensor, limits: Range, generator: torch.Generator) -> Tensor:
        """The best iterate, [m, d]."""
        low, high = limits
        middle, half = (high + low) / 2, (high - low) / 2
        # the sine is flat at its ends: an earlier row there would never move again
        inner = ((so_far - middle) / (half or 1.0)).clamp(-0.999, 0.999)
        start = torch.randn(so_far.shape, generator=generator)
        u = torch.where(so_far.isnan(), start, torch.asin(inner)).requires_grad_()

        def mapped(value: Tensor) -> Tensor:
            # clip, because rounding can leave the range by one ulp where the sine is 1
            return (middle + half * torch.sin(value)).clamp(low, high)

        return _descend(objective, u, mapped, self, clip=None)


def _descend(
    objective: Objective,
    variable: Tensor,
    mapped: Callable[[Tensor], Tensor],
    rule: _TorchOptimiser,
    clip: Range | None,
) -> Tensor:
    optimiser = rule.make([variable])
    rates = [group["lr"] for group in optimiser.param_groups]
    best = BestIterate(rule.patience)
    for step in range(rule.steps):
        for group, rate in zip(optimiser.param_groups, rates, strict=True):
            group["lr"] = rate * rule.schedule(step / rule.steps)
        optimiser.zero_grad(set_to_none=True)
        x = mapped(variable)
        loss, accuracy = objective(x)
        objective.report(float(loss.detach()), accuracy)
        if best.update(x, float(loss.detach()), accuracy):
            return best.features
        (-loss).backward()
        optimiser.step()
        if clip is not None:
            with torch.no_grad():
                variable.clamp_(*clip)
    return judge_last(objective, best, mapped(variable))


def judge_last(objective: Objective, best: BestIterate, x: Tensor) -> Tensor:
    """Judge the features after the last step too."""
    with torch.no_grad():
        loss, accuracy = objective(x.detach())
    best.update(x, float(loss), accuracy)
    return best.features


def check_steps(**numbers: Any) -> None:
    """Steps must not be negative, rates positive."""
    for name, value in numbers.items():
        if value is None:
            continue
        whole = isinstance(value, int)
        if not (value >= 0 if whole else 0 < value < float("inf")):
            raise DataError(f"{name} is {value}, but must be {'at least 0' if whole else 'positive and finite'}")
