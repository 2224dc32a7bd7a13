"""How many forward and backward passes an attack makes: what it costs on any machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from torch import Tensor


@dataclass
class Passes:
    """Passes through a model; an incremental one, which recomputes the rows that can change, counts as one.

    Args:
        forward: Number of forward passes.
        backward: Number of backward passes.
    """

    forward: int = 0
    backward: int = 0


_counted: ContextVar[Passes | None] = ContextVar("passes", default=None)


@contextmanager
def count_passes() -> Iterator[Passes]:
    """Count the passes made inside; a count inside another belongs to both.

    >>> import torch
    >>> with count_passes() as passes:
    ...     weights = torch.ones(2, requires_grad=True)
    ...     counted(2 * weights).sum().backward()
    >>> passes
    Passes(forward=1, backward=1)
    """
    outer, own = _counted.get(), Passes()
    token = _counted.set(own)
    try:
        yield own
    finally:
        _counted.reset(token)
        if outer is not None:
            outer.forward += own.forward
            outer.backward += own.backward


def counted(logits: Tensor, passes: int = 1) -> Tensor:
    """Count the forward pass that gave these logits, and the backward pass through them if there will be one.

    Args:
        logits: What the model gave, [rows, classes].
        passes: Number of graphs in a batch that was one pass through the model.
    """
    current = _counted.get()
    if current is not None:
        current.forward += passes
        if logits.requires_grad:

            def count(gradient: Tensor) -> None:
                current.backward += passes

            logits.register_hook(count)
    return logits
