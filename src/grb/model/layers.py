"""Layers that several models share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from grb.errors import DataError
from grb.graph import CSR, dense


class Linear(nn.Module):
    """``x W + b`` for dense or sparse ``x``, Xavier-normal weights with the gain of relu, zero bias.

    The weight is kept as [in, out], so that a sparse ``x`` multiplies it by the sparse kernel as it is.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_features, out_features))
        self.bias = nn.Parameter(torch.empty(out_features)) if bias else None
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights from ``generator``, or from torch's global one."""
        nn.init.xavier_normal_(self.weight, gain=math.sqrt(2.0), generator=generator)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor | CSR) -> Tensor:
        """``x W + b``, [n, out]."""
        if self.bias is None or isinstance(x, CSR):
            return self.shift(self.transform(x))
        return torch.addmm(self.bias, x, self.weight)

    def transform(self, x: Tensor | CSR) -> Tensor:
        """``x W``, without the bias."""
        return x @ self.weight

    def shift(self, x: Tensor) -> Tensor:
        """``x + b``."""
        return x if self.bias is None else x + self.bias

    def extra_repr(self) -> str:
        """Widths and bias, for ``repr``."""
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}, bias={self.bias is not None}"


def linears(widths: Sequence[int]) -> nn.ModuleList:
    """A linear map between every two neighbouring widths."""
    return nn.ModuleList(Linear(before, after) for before, after in pairwise(widths))


def layer_norms(widths: Sequence[int], enabled: bool) -> nn.ModuleList | None:
    """A layer norm for each width; None if the model has none."""
    return nn.ModuleList(nn.LayerNorm(width) for width in widths) if enabled else None


def perceptron(x: Tensor | CSR, maps: nn.ModuleList, norms: nn.ModuleList | None, dropout: Dropout) -> Tensor:
    """Linear maps with relu and dropout between them, and a layer norm in front of each if there are any, [n, out]."""
    h: Any = x
    for position, linear in enumerate(maps):
        if norms is not None:
            h = norms[position](dense(h))
        h = linear(h)
        if position < len(maps) - 1:
            h = relu_dropout(h, dropout)
    return h


class Dropout(nn.Module):
    """Dropout whose masks come from random bits: fresh and independent at every call, from an explicit generator.

    ``torch.nn.functional.dropout`` draws one Bernoulli number per entry, which was a third of a training step at
    cora size. Here one 64-bit number serves eight entries (four if the rate is no multiple of 1/256). A rate is
    rounded to a multiple of 1/65536 at most, and the survivors are scaled by exactly that rate.
    """

    def __init__(self, p: float = 0.0, generator: torch.Generator | None = None) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise DataError(f"dropout is {p}, but must be at least 0 and below 1")
        self.p = p
        self.generator = generator

    def forward(self, x: Tensor) -> Tensor:
        """``x`` with entries dropped in training, and as it is in evaluation."""
        if not self.training or self.p == 0:
            return x
        dropped: Tensor = _Dropped.apply(x, *self.draw(x), False)  # type: ignore[no-untyped-call]
        return dropped

    def draw(self, x: Tensor) -> tuple[Tensor, float, float]:
        """Random numbers for the entries of ``x``, the threshold from which an entry survives, and its factor."""
        return random_bits(x.shape, self.p, x.device, self.generator)

    def extra_repr(self) -> str:
        """The rate, for ``repr``."""
        return f"p={self.p}"


def relu_dropout(x: Tensor, dropout: Dropout) -> Tensor:
    """``dropout(relu(x))`` in one step, which keeps a byte per entry beside its result for the backward pass."""
    if not dropout.training or dropout.p == 0:
        return torch.relu(x)
    dropped: Tensor = _Dropped.apply(x, *dropout.draw(x), True)  # type: ignore[no-untyped-call]
    return dropped


def random_bits(
    shape: torch.Size, p: float, device: torch.device, generator: torch.Generator | None
) -> tuple[Tensor, float, float]:
    """Random numbers, the threshold from which an entry survives, and the factor that keeps the expectation."""
    if device.type != "cpu":
        return torch.rand(shape, device=device, generator=generator), p, 1 / (1 - p)
    count = shape.numel()
    whole = round(p * 256)
    width = 1 if whole == p * 256 else 2
    words = torch.empty(-(-count * width // 8), dtype=torch.int64).random_(-(2**63), None, generator=generator)
    if width == 1:
        return words.view(torch.uint8)[:count].view(shape), whole, 256 / (256 - whole)
    whole = min(round(p * 65536), 65535)  # a rate just below one still lets something through
    return words.view(torch.int16)[:count].view(shape), whole - 32768, 65536 / (65536 - whole)


class _Dropped(torch.autograd.Function):
    """Keeps the random bytes, not the mask: comparing them again is cheaper than a product with booleans."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, bits: Tensor, threshold: float, scale: float, rectify: bool) -> Tensor:
        y = torch.relu(x) if rectify else x.clone()
        y.mul_(_survivors(bits, threshold, y)).mul_(scale)
        ctx.save_for_backward(bits, y if rectify else None)
        ctx.threshold, ctx.scale = threshold, scale
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None]:
        bits, y = ctx.saved_tensors
        grad = (grad * _survivors(bits, ctx.threshold, grad)).mul_(ctx.scale)
        if y is not None:
            grad = (
                torch.where(y > 0, grad, 0.0) if grad.requires_grad else torch.ops.aten.threshold_backward(grad, y, 0)
            )
        return grad, None, None, None, None


def _survivors(bits: Tensor, threshold: float, like: Tensor) -> Tensor:
    """One where an entry survives and zero elsewhere, in the type of ``like``."""
    return torch.ge(bits, threshold, out=torch.empty(bits.shape, dtype=like.dtype, device=like.device))
