"""Whether a model is made of grb's and torch's own classes alone."""

from __future__ import annotations

import sys
from typing import Any

from torch import nn


def is_ours(model: nn.Module) -> bool:
    """Whether every module of a model is grb's or torch's, so that it is trusted to keep the API contract.

    A class says itself which module it is of, so that module must have it.
    """
    return all(_is_ours(type(part)) for part in model.modules())


def _is_ours(kind: type) -> bool:
    if not f"{kind.__module__}.".startswith(("grb.", "torch.nn.")):
        return False
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is kind
