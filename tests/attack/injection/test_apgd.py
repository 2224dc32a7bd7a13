"""Signed steps that are halved where they stop paying."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from grb.attack.features import Objective
from grb.attack.injection.apgd import AutoPGD, checkpoints


def climb(step_size: float, steps: int, goal: float = 0.3) -> tuple[Tensor, list[float]]:
    """Towards the top of a parabola; the accuracy says nothing, so the highest loss counts."""
    seen: list[float] = []
    objective = Objective(
        lambda x: torch.stack([-(x - goal).square().sum(), torch.tensor(-99.0)]).unsqueeze(0),
        torch.tensor([0]),
        lambda z, y: z[:, 0],
        lambda loss, accuracy: seen.append(loss),
    )
    rule = AutoPGD(step_size, steps)
    return rule(objective, torch.full((1, 1), torch.nan), (-1.0, 1.0), torch.Generator()), seen


def test_halved_steps_come_near_where_constant_ones_jump_over() -> None:
    found, seen = climb(0.8, 100)
    assert abs(float(found) - 0.3) < 0.001 and len(seen) == 100
    # steps of 0.8 alone go from 0 to 0.8 and back for ever
    assert seen[0] == pytest.approx(-0.09) and max(seen[-30:]) > -1e-4


def test_the_best_point_is_returned_and_never_leaves_the_range() -> None:
    assert float(climb(0.5, 40, goal=7.0)[0]) == 1.0
    more = [max(climb(0.8, steps)[1]) for steps in (5, 20, 80)]
    assert more == sorted(more)


def test_checkpoints_come_closer() -> None:
    marks = sorted(checkpoints(1000))
    gaps = [b - a for a, b in zip([0, *marks], marks, strict=False)]
    assert marks[0] == 220 and gaps == sorted(gaps, reverse=True) and min(gaps) == 60
