"""A guard around foreign code: what it was lent is as before afterwards, or an error says that it is not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from grb.errors import GRBError


class AttackError(GRBError):
    """An attack that broke the API contract: it changed the graph or the model that it was given."""


@contextmanager
def untouched(lent: Sequence[Tensor], model: nn.Module | None) -> Iterator[None]:
    """Evaluation mode and no weight gradients inside; everything as before afterwards, or an error.

    Args:
        lent: Tensors that must not change.
        model: A model that must not change either, with its buffers, weights and gradients.
    """
    modules: dict[nn.Module, bool] = {}
    flags: list[tuple[nn.Parameter, bool]] = []
    if model is not None:
        modules = {module: module.training for module in model.modules()}
        flags = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
        model.eval()
        model.requires_grad_(False)
    before = _state(lent, model)
    try:
        yield
        if _state(lent, model) != before:
            raise AttackError("the attack changed the graph or the model that it was given; it must work on copies")
    finally:
        for module, mode in modules.items():
            module.training = mode
        for parameter, flag in flags:
            parameter.requires_grad_(flag)


def _state(lent: Sequence[Tensor], model: nn.Module | None) -> list[tuple[int, bool]]:
    held: list[Tensor | None] = [*lent]
    if model is not None:
        held += [*model.buffers(), *model.parameters()]
        held += [parameter.grad for parameter in model.parameters()]
    return [(_checksum(tensor), tensor.requires_grad) for tensor in held if tensor is not None]


def _checksum(tensor: Tensor, width: int = 1021) -> int:
    """Differs when a byte does, at the speed of memory: torch's own version counter misses ``.data`` and ``numpy()``."""
    if not tensor.numel():  # torch cannot reinterpret an empty one
        return hash(tensor.shape)
    raw = tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
    # sums of every 1021st word: a prime, so that moved rows change them too
    words = raw[: len(raw) // (8 * width) * (8 * width)].view(np.uint64).reshape(-1, width)
    return hash((tensor.shape, words.sum(0).tobytes(), raw[words.nbytes :].tobytes()))
