from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from grb.model.profiling.rows import BatchNorm, activated, unit_rows


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_the_end_of_a_layer_is_batch_norm_relu_and_unit_rows(training: bool, residual: bool) -> None:
    z, h = normal(9, 4), normal(9, 4, seed=1) if residual else None
    ours, theirs = BatchNorm(4).double(), nn.BatchNorm1d(4).double()
    for norm in (ours, theirs):
        norm.train(training)
        with torch.no_grad():
            norm.weight.copy_(torch.tensor([1.0, -2.0, 0.5, 3.0]))
            norm.bias.copy_(torch.tensor([0.1, 0.2, -0.3, 0.0]))
            norm.running_var.fill_(0.7)
    expected = functional.normalize(torch.relu(theirs(z)), dim=1)
    torch.testing.assert_close(activated(z, ours, h), expected if h is None else h + expected)
    torch.testing.assert_close(ours.running_mean, theirs.running_mean)
    torch.testing.assert_close(ours.running_var, theirs.running_var)


@pytest.mark.parametrize("training", [False, True])
def test_gradients_of_the_end_of_a_layer(training: bool) -> None:
    norm = BatchNorm(3).double().train(training)
    norm.momentum = 0.0  # finite differences call it often
    z, h = normal(5, 3).requires_grad_(), normal(5, 3, seed=1).requires_grad_()

    def end(z: torch.Tensor, h: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            norm.weight.copy_(weight)
            norm.bias.copy_(bias)
        moments = norm.moments(z)
        from grb.model.profiling.rows import _Normed

        return _Normed.apply(z, weight, bias, *moments, h, training)

    weight, bias = torch.tensor([1.0, 0.7, 1.3]).double(), torch.tensor([0.2, 0.1, 0.4]).double()
    assert torch.autograd.gradcheck(end, (z, h, weight.requires_grad_(), bias.requires_grad_()))


def test_gradients_without_batch_norm_and_of_unit_rows() -> None:
    z, h = normal(6, 4).requires_grad_(), normal(6, 4, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda z, h: activated(z, None, h), (z, h))
    assert torch.autograd.gradcheck(unit_rows, (z,))


def test_a_zero_row_stays_zero_and_gets_no_gradient() -> None:
    z = torch.tensor([[-1.0, -2.0], [3.0, 4.0]], requires_grad=True)
    out = activated(z)
    assert out.tolist() == [[0, 0], pytest.approx([0.6, 0.8])]
    out.sum().backward()
    assert z.grad is not None and z.grad[0].tolist() == [0, 0] and torch.isfinite(z.grad).all()


def test_a_batch_of_one_row_uses_the_running_moments() -> None:
    norm = BatchNorm(2)
    assert activated(torch.tensor([[3.0, 4.0]]), norm).tolist() == [pytest.approx([0.6, 0.8])]
    assert norm.running_mean.tolist() == [0, 0]
