"""What attackers raise, against numbers worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from grb.attack.injection.speit import cup_loss
from grb.attack.losses import Loss, cross_entropy, margin, smooth, tanh_margin

# p = (1/2, 1/4, 1/4)
LOGITS = torch.tensor([[math.log(2.0), 0.0, 0.0]])


def value(loss: Loss, y: int, logits: Tensor = LOGITS) -> float:
    return float(loss(logits, torch.tensor([y]))[0])


def test_hand_values() -> None:
    assert value(cross_entropy, 0) == pytest.approx(math.log(2))
    assert value(cross_entropy, 1) == pytest.approx(math.log(4))
    assert value(margin, 0) == pytest.approx(-math.log(2))
    assert value(margin, 1) == pytest.approx(math.log(2))
    assert value(tanh_margin, 1) == pytest.approx(0.6)  # tanh(ln 2) = (2 - 1/2) / (2 + 1/2)
    assert value(smooth, 0) == pytest.approx(-((4 - math.log(2)) ** 2))
    assert value(smooth, 1) == pytest.approx(-((4 - math.log(4)) ** 2))


def test_one_number_per_target() -> None:
    for loss in (cross_entropy, margin, tanh_margin, smooth, cup_loss()):
        assert loss(LOGITS.repeat(3, 1), torch.tensor([0, 1, 2])).shape == (3,)


def test_the_smooth_loss_leaves_lost_nodes_alone() -> None:
    """p < e^-4: neither loss nor gradient. A little above it there is both."""
    lost = torch.tensor([[-4.1, 0.0], [-9.0, 0.0]], requires_grad=True)
    y = torch.tensor([0, 0])
    assert (lost.softmax(1)[:, 0] < math.exp(-4)).all()
    loss = smooth(lost, y)
    assert loss.tolist() == [0, 0]
    loss.sum().backward()
    assert lost.grad is not None and not lost.grad.any()
    assert float(smooth(torch.tensor([[-3.9, 0.0]]), y[:1])) < 0


def test_a_single_class_has_no_other_to_lose_to() -> None:
    logits = torch.tensor([[2.0]])
    assert [value(loss, 0, logits) for loss in (cross_entropy, margin, smooth)] == [0, -2, -16]


@given(st.lists(st.floats(-5, 5, width=32), min_size=2, max_size=5), st.integers(0, 4))
def test_every_loss_rises_when_the_label_loses(row: list[float], y: int) -> None:
    y %= len(row)
    logits = torch.tensor([row])
    lower = logits.clone()
    lower[0, y] -= 0.5
    for loss in (cross_entropy, margin, tanh_margin, smooth):
        assert value(loss, y, lower) >= value(loss, y, logits)


def test_the_cup_loss_has_the_proportions_of_the_entry() -> None:
    """Two targets: sum of p_c* - p_y, minus 1000 times the mean of log p_y; c* is that of the first logits."""
    first = torch.tensor([[0.0, 1.0, -1.0], [0.0, -2.0, 0.0]])
    y = torch.tensor([0, 0])
    loss = cup_loss()
    loss(first, y)
    now = torch.tensor([[0.0, 0.0, math.log(2)], [math.log(3), 0.0, 0.0]])
    sums = (0.5 - 0.25) + (0.2 - 0.6)  # c* is class 2 for the first target, class 1 for the second
    means = (math.log(0.25) + math.log(0.6)) / 2
    assert float(loss(now, y).mean()) == pytest.approx(sums - 1000 * means, rel=1e-5)
