"""HAO's term."""

from __future__ import annotations

import math

import pytest
import torch

from attack.contexts import graph_of
from grb.attack.injection.homophily import Homophily, homophily
from grb.graph import GraphEdit


def test_the_reference_is_the_scaled_sum_of_the_neighbours() -> None:
    """A path 0 - 1 - 2 and an injected node 3 at nodes 0 and 1: degrees 2, 3, 1, 2."""
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])
    edit = GraphEdit(n=3, add=torch.tensor([[0, 1], [3, 3]]), new_x=torch.tensor([[1.0, 1.0]]))
    term = homophily(2.0, graph_of([(0, 1), (1, 2)], 3, x).apply(edit), 1)
    expected = torch.tensor([[1 / math.sqrt(2 * 2), 1 / math.sqrt(2 * 3)]])
    torch.testing.assert_close(term.reference, expected)
    # cosine of (1, 1) and (a, b) = (a + b) / (sqrt(2) |(a, b)|)
    a, b = expected[0].tolist()
    assert float(term(torch.tensor([[1.0, 1.0]]))) == pytest.approx(2 * (a + b) / math.sqrt(2 * (a * a + b * b)))
    assert float(term(3 * expected)) == pytest.approx(2.0)


def test_its_gradient_is_that_of_finite_differences() -> None:
    generator = torch.Generator().manual_seed(0)
    x, reference = (torch.randn(4, 5, generator=generator, dtype=torch.float64) for _ in range(2))
    assert torch.autograd.gradcheck(Homophily(0.7, reference), (x.requires_grad_(),))


def test_rows_of_zeros_and_nodes_without_neighbours_stay_finite() -> None:
    term = Homophily(1.0, torch.tensor([[0.0, 0.0], [1.0, 0.0]]))
    x = torch.zeros(2, 2, requires_grad=True)
    value = term(x)
    value.backward()
    assert value.isfinite() and x.grad is not None and x.grad.isfinite().all()
