"""Weights of classes against scikit-learn, and the metric that chooses an epoch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight

import grb
from grb.errors import DataError
from grb.trainer.imbalance import class_weights


@given(st.lists(st.integers(0, 4), min_size=1, max_size=50))
def test_balanced_weights_are_those_of_scikit_learn(labels: list[int]) -> None:
    found = class_weights("balanced", torch.tensor(labels), 5)
    present = np.unique(labels)
    expected = compute_class_weight("balanced", classes=present, y=np.array(labels))
    np.testing.assert_allclose(found[present].numpy(), expected, rtol=1e-6)
    assert found.sum() == pytest.approx(expected.sum(), rel=1e-5)


def test_given_weights() -> None:
    y = torch.tensor([0, 1, 2])
    assert class_weights({1: 5.0}, y, 3).tolist() == [1.0, 5.0, 1.0]
    assert class_weights([1, 2, 3], y, 3).tolist() == [1.0, 2.0, 3.0]
    for bad, words in [
        ("even", "'balanced' or one number per class"),
        ([1.0, 2.0], "2 numbers, but there are 3 classes"),
        ([0.0, 0.0, 0.0], "not all of them 0"),
        ([1.0, float("nan"), 1.0], "finite"),
        ({7: 1.0}, "classes 0 to 2"),
    ]:
        with pytest.raises(DataError, match=words):
            class_weights(bad, y, 3)


def test_weights_move_a_model_towards_the_rare_class() -> None:
    dataset = grb.load_dataset("synth-tiny")
    plain = grb.train("mlp", dataset, epochs=30)
    weights = [0.01] * dataset.num_classes
    weights[1] = 1.0
    moved = grb.train("mlp", dataset, epochs=30, class_weights=weights, metric="recall:1")
    recall = [grb.evaluate(model, dataset, metrics="recall:1")["recall:1"]["full"] for model in (plain, moved)]
    assert recall[1] >= recall[0] and recall[1] > 0.9


def test_the_metric_chooses_the_epoch() -> None:
    dataset = grb.load_dataset("synth-tiny")
    _, fit = grb.train_with_history("gcn", dataset, epochs=15, metric="macro-f1")
    assert fit.best_score == max(epoch.val_score for epoch in fit.history)
    with pytest.raises(grb.errors.UnknownName, match="no metric 'macro-f'"):
        grb.train("gcn", dataset, epochs=2, metric="macro-f")
