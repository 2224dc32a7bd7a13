"""A model that always gives one class is named, however well it scores."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from scipy.sparse import eye_array
from torch import nn

import grb
from grb.dataset import Dataset
from grb.evaluator.baseline import check_constant, check_majority, majority
from grb.evaluator.scoring import prediction_of


class Always(nn.Module):
    """Gives class 0, or the true class of some rows."""

    def __init__(self, y: torch.Tensor, right: float) -> None:
        super().__init__()
        self.said = torch.where(torch.arange(len(y)) < right * len(y), y, 0)

    def prepare(self, adj):
        return adj

    def forward(self, x, op):
        rows = torch.zeros(len(x), 2)
        rows[torch.arange(len(self.said)), self.said] = 1.0
        return rows


def fraud(n: int = 500) -> Dataset:
    y = (np.arange(n) % 50 == 0).astype(int)
    split = {"train": np.arange(0, 100), "test": np.arange(100, n)}
    return Dataset.from_arrays(eye_array(n, k=1), np.ones((n, 1)), y, split=split, name="fraud")


def test_always_no_at_one_in_fifty_is_named() -> None:
    dataset = fraud()
    with pytest.warns(UserWarning, match="majority-class: 98.00 % of the full targets .* recall:1"):
        scores = grb.evaluate(Always(dataset.labels, 0.0), dataset)
    assert scores["full"] == 0.98
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grb.evaluate(Always(dataset.labels, 1.0), dataset)


def test_the_flag_is_about_telling_classes_apart() -> None:
    dataset = fraud()
    ids, y = dataset.index_test, dataset.labels

    def flags(said: torch.Tensor) -> list[str]:
        logits = nn.functional.one_hot(said, 2).float()
        return [flag.name for flag in check_majority(prediction_of(logits, dataset), dataset, ids)]

    assert flags(torch.zeros_like(y)) == ["majority-class"]
    assert flags(y) == []
    assert flags(1 - y) == []  # wrong everywhere is bad, but it is not the baseline
    assert majority(torch.tensor([2, 2, 1])) == (2, pytest.approx(2 / 3))
    assert majority(torch.tensor([-1])) == (0, 0.0)


def test_a_constant_model_whose_targets_have_one_class_is_named() -> None:
    """Right about all of them, before and after every attack."""
    dataset = fraud()
    honest = dataset.with_targets("class=0")
    zeros = torch.zeros_like(dataset.labels)

    def flags(said: torch.Tensor) -> list[str]:
        logits = nn.functional.one_hot(said, 2).float()
        return [flag.name for flag in check_majority(prediction_of(logits, honest), honest, honest.index_test)]

    assert flags(zeros) == ["constant"]
    assert flags(dataset.labels) == []
    report = grb.audit(
        Always(dataset.labels, 0.0),
        dataset,
        metrics="accuracy",
        targets="class=0",
        scenarios=["modification"],
        effort="quick",
        corrupt=False,
        surrogates=(),
        budgets={"modification": [1]},
    )
    assert report.values["clean"]["values"]["accuracy"] == 1.0
    assert {flag["name"] for flag in report.values["flags"]} >= {"majority-class"}
    even = Dataset.from_arrays(eye_array(40, k=1), np.ones((40, 1)), np.arange(40) % 2, name="even")
    same = prediction_of(nn.functional.one_hot(torch.ones(40, dtype=torch.int64), 2).float(), even)
    assert [flag.name for flag in check_constant(same, even)] == ["constant"]
