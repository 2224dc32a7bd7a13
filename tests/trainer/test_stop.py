"""The best epoch so far."""

from __future__ import annotations

import math

import torch
from torch import nn

from grb.trainer.stop import Best


def test_higher_score_or_equal_score_with_lower_loss_is_better() -> None:
    model = nn.Linear(1, 1)
    best = Best()
    steps = [(0.5, 1.0, True), (0.4, 0.1, False), (0.5, 1.0, False), (0.5, 0.9, True), (0.6, 5.0, True)]
    steps += [(math.nan, 0.0, False), (0.6, math.nan, False), (-math.inf, 0.0, False)]
    for epoch, (score, loss, better) in enumerate(steps):
        assert best.update(epoch, score, loss, model) is better
    assert best.epoch == 4 and best.score == 0.6


def test_weights_are_copied_and_come_back() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    best = Best()
    best.update(0, 0.1, 1.0, model)
    kept = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with torch.no_grad():
        for tensor in model.state_dict().values():
            tensor.add_(1)
    best.restore(model)
    assert all(torch.equal(tensor, kept[name]) for name, tensor in model.state_dict().items())


def test_nothing_to_restore_changes_nothing() -> None:
    model = nn.Linear(2, 2)
    before = model.weight.detach().clone()
    Best().restore(model)
    assert torch.equal(model.weight, before)
