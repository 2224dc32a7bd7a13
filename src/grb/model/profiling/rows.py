"""Row-wise steps of the blueprint, each with a backward of its own: they are most of what is left beside matrix products."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

# a row whose length is below it is left as it is, with no gradient
TINY = 1e-12


class BatchNorm(nn.Module):
    """Mean and variance of a batch, and running ones for evaluation; applied inside :func:`activated`.

    Equal to ``torch.nn.BatchNorm1d`` followed by what :func:`activated` does.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, features: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.register_buffer("running_mean", torch.zeros(features))
        self.register_buffer("running_var", torch.ones(features))

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights from ``generator``, or from torch's global one."""
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)
        self.running_mean.zero_()
        self.running_var.fill_(1)

    def moments(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Rows without their mean, [n, d], and one over the deviation, [d]; training moves the running moments.

        ``torch.var_mean`` over rows takes ten times as long as two sums.
        """
        with torch.no_grad():
            if not self.training or len(z) < 2:
                return z - self.running_mean, torch.rsqrt(self.running_var + self.eps)
            mean = z.mean(0)
            centred = z - mean
            var = centred.square().sum(0) / len(z)
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(var * (len(z) / (len(z) - 1)), self.momentum)
            return centred, torch.rsqrt(var + self.eps)


def activated(z: Tensor, norm: BatchNorm | None = None, residual: Tensor | None = None) -> Tensor:
    r"""End of a layer: batch norm, relu, rows of length one, and the layer's input added.

    .. math:: h + \frac{r}{\lVert r \rVert}, \qquad r = \mathrm{relu}(\mathrm{BN}(z))

    Args:
        z: What the layer's linear part gave, [n, d].
        norm: Batch norm, if the layer has one.
        residual: :math:`h`, [n, d], if the layer has a skip connection.
    """
    if norm is None:
        out: Tensor = _Unit.apply(z, residual, True)  # type: ignore[no-untyped-call]
        return out
    batch = norm.training and len(z) > 1
    out = _Normed.apply(z, norm.weight, norm.bias, *norm.moments(z), residual, batch)  # type: ignore[no-untyped-call]
    return out


def unit_rows(z: Tensor) -> Tensor:
    """Every row scaled to length one, [n, d]; a zero row stays zero."""
    out: Tensor = _Unit.apply(z, None, False)  # type: ignore[no-untyped-call]
    return out


class _Unit(torch.autograd.Function):
    """Relu (if asked), rows of length one, residual."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, residual: Tensor | None, relu: bool) -> Tensor:
        unit, inverse = _unit(torch.relu(z) if relu else z.clone())
        ctx.save_for_backward(unit, inverse)
        ctx.relu = relu
        return unit if residual is None else unit + residual

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        unit, inverse = ctx.saved_tensors
        return _unit_gradient(grad, unit, inverse, ctx.relu), grad if ctx.needs_input_grad[1] else None, None


class _Normed(torch.autograd.Function):
    """Batch norm, relu, rows of length one, residual."""

    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        weight: Tensor,
        bias: Tensor,
        centred: Tensor,
        rstd: Tensor,
        residual: Tensor | None,
        batch: bool,
    ) -> Tensor:
        unit, inverse = _unit(torch.addcmul(bias, centred, weight * rstd).relu_())
        ctx.save_for_backward(centred, weight, rstd, unit, inverse)
        ctx.batch = batch
        return unit if residual is None else unit + residual

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        centred, weight, rstd, unit, inverse = ctx.saved_tensors
        inner = _unit_gradient(grad, unit, inverse, True)
        skip = grad if ctx.needs_input_grad[5] else None
        sums = inner.sum(0)
        moments = (inner * centred).sum(0) * rstd
        if ctx.batch:
            inner = inner.addcmul_(centred, -moments * rstd / len(centred)).sub_(sums / len(centred))
        inner = inner.mul_(weight * rstd)
        return inner, moments, sums, None, None, skip, None


def _unit(r: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of length one, in place, and the inverse lengths [n, 1]; zero rows have inverse 0."""
    length = torch.linalg.vector_norm(r, dim=1, keepdim=True)
    inverse = torch.where(length > TINY, 1 / length.clamp(min=TINY), 0.0)
    return r.mul_(inverse), inverse


def _unit_gradient(grad: Tensor, unit: Tensor, inverse: Tensor, relu: bool) -> Tensor:
    along = torch.linalg.vecdot(grad, unit).unsqueeze(1)
    inner = torch.addcmul(grad, unit, -along).mul_(inverse)
    return torch.ops.aten.threshold_backward(inner, unit, 0.0) if relu else inner
