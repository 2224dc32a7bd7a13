"""What an attacker without test labels holds for likely."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attack.contexts import random_graph, view_of
from grb.attack.auto.belief import COLDEST, beliefs, fitted_temperature
from grb.dataset.view import View
from grb.graph import Graph

GRAPH = random_graph(40, density=0.1)


def view_with(val: range, y: torch.Tensor | None) -> View:
    view = view_of(Graph(GRAPH.adj, GRAPH.x, y), range(10))
    return replace(view, val=torch.tensor(list(val), dtype=torch.int64))


def logits_of(seed: int, scale: float = 1.0) -> torch.Tensor:
    return scale * torch.randn(40, 3, generator=torch.Generator().manual_seed(seed))


def test_beliefs_are_the_clean_probabilities_where_no_validation_node_has_a_label() -> None:
    logits = logits_of(0)
    expected = torch.softmax(logits[:10].double(), dim=1)
    hidden = torch.full((40,), -1)
    for view in (view_with(range(0), torch.zeros(40, dtype=torch.int64)), view_with(range(10, 40), hidden)):
        assert torch.equal(beliefs(logits, view), expected)
    assert torch.equal(beliefs(logits, view_with(range(0), None)), expected)


def test_labels_of_targets_change_nothing() -> None:
    """An attacker's view hides them; if it did not, they would still not be read."""
    y = torch.randint(3, (40,), generator=torch.Generator().manual_seed(1))
    other = torch.cat([(y[:10] + 1) % 3, y[10:]])
    seen = [beliefs(logits_of(0), view_with(range(10, 30), each)) for each in (y, other)]
    assert torch.equal(*seen)


@given(seed=st.integers(0, 2**31), scale=st.floats(0.5, 200.0))
@settings(max_examples=50)
def test_the_scale_of_the_logits_does_not_matter_once_it_was_fitted(seed: int, scale: float) -> None:
    y = torch.randint(3, (40,), generator=torch.Generator().manual_seed(seed))
    view = view_with(range(10, 40), y)
    wide, narrow = beliefs(logits_of(seed, scale).double(), view), beliefs(logits_of(seed).double(), view)
    if fitted_temperature(logits_of(seed)[10:], y[10:]) > COLDEST * 2:
        assert torch.allclose(wide, narrow, atol=0.02)
    assert torch.allclose(wide.sum(1), torch.ones(10, dtype=torch.float64))


def test_a_network_that_is_too_sure_of_itself_is_believed_as_often_as_it_is_right() -> None:
    """Nine of ten validation nodes are right, whatever the logits say."""
    logits = torch.zeros(40, 2)
    logits[:, 0] = 500.0
    y = (torch.arange(40) % 10 == 9).long()
    seen = beliefs(logits, view_with(range(10, 40), y))
    assert seen[:, 0].tolist() == pytest.approx([0.9] * 10, abs=1e-3)
    # in single precision, without a temperature, the second class would have no chance at all
    assert float(torch.softmax(logits[0], 0)[1]) == 0.0


def test_outputs_that_are_no_numbers_give_beliefs_that_are() -> None:
    logits = logits_of(0)
    logits[3, 1], logits[20, 0] = float("nan"), float("inf")
    y = torch.randint(3, (40,), generator=torch.Generator().manual_seed(1))
    assert beliefs(logits, view_with(range(10, 40), y)).isfinite().all()
