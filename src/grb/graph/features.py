r"""Feature normalisations with their inverses: ``standardise`` by column, the others over all entries as in the GRB paper.

>>> scale = FeatureScale.fit("arctan", torch.tensor([[0.0, 2.0], [4.0, 2.0]]))
>>> bool(torch.allclose(scale.invert(scale.apply(torch.tensor([[3.0]]))), torch.tensor([[3.0]])))
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from grb.errors import DataError, UnknownName

Kind = Literal["none", "arctan", "tanh", "standardise", "linear"]
_SPELLINGS: dict[str, Kind] = {
    "none": "none",
    "arctan": "arctan",
    "tanh": "tanh",
    "standardise": "standardise",
    "standardize": "standardise",
    "linear": "linear",
    "linearize": "linear",
}


@dataclass(frozen=True)
class FeatureScale:
    r"""A bijective map of features, entry by entry.

    With :math:`z = (x - \mu) / \sigma` over all entries of all nodes: ``arctan`` is
    :math:`\frac{2}{\pi}\arctan z` (the GRB papers' choice, into :math:`(-1, 1)`), ``tanh`` is :math:`\tanh z`, ``linear``
    maps :math:`[\min, \max]` onto :math:`[-1, 1]`, ``none`` changes nothing. ``standardise`` is :math:`z` with the mean and
    deviation of every column, so that columns of different units count alike. Constant features have :math:`\sigma := 1`.

    Differs from THUDM/grb: its ``standardize`` has one mean and one deviation for all columns.

    The inverse lets an attacker turn normalised features back into raw ones; where float32 has rounded a value to
    exactly :math:`\pm 1` the nearest invertible value is used.
    """

    kind: Kind
    centre: float | Tensor = 0.0
    spread: float | Tensor = 1.0

    @classmethod
    def fit(cls, kind: str | None, x: Tensor) -> FeatureScale:
        """The scale of the features ``x``; ``kind`` None means ``none``, the original's spellings are understood."""
        name = "none" if kind is None else str(kind).lower()
        if name not in _SPELLINGS:
            raise UnknownName("feature normalisation", name, _SPELLINGS, advice=f"Allowed: {', '.join(_SPELLINGS)}.")
        chosen = _SPELLINGS[name]
        if chosen == "none" or x.numel() == 0:
            return cls(chosen)
        if not torch.isfinite(x).all():
            raise DataError("features hold NaN or infinite values, but a normalisation needs finite ones")
        if chosen == "linear":
            low, high = float(x.min()), float(x.max())
            return cls(chosen, (low + high) / 2, _spread((high - low) / 2))
        wide = x.double()
        if chosen == "standardise":
            spread = wide.std(dim=0, correction=0)
            # a deviation that is rounding alone would blow the rounding up
            flat = spread <= (1e-7 * wide.abs().amax(dim=0)).clamp(min=torch.finfo(torch.float32).tiny)
            return cls(chosen, wide.mean(dim=0).to(x.dtype), torch.where(flat, 1.0, spread).to(x.dtype))
        return cls(chosen, float(wide.mean()), _spread(float(wide.std(correction=0))))

    def apply(self, x: Tensor) -> Tensor:
        """Scaled features."""
        if self.kind == "none":
            return x
        z = (x - self.centre) / self.spread
        if self.kind == "arctan":
            return torch.atan(z) * (2 / math.pi)
        return torch.tanh(z) if self.kind == "tanh" else z

    def invert(self, z: Tensor) -> Tensor:
        """Features before the scaling."""
        if self.kind == "none":
            return z
        if self.kind in ("arctan", "tanh"):
            edge = 1 - torch.finfo(z.dtype).eps
            z = z.clamp(-edge, edge)
            z = torch.tan(z * (math.pi / 2)) if self.kind == "arctan" else torch.atanh(z)
        return z * self.spread + self.centre


def _spread(value: float) -> float:
    """A divisor that float32 can divide by; one where features are constant, or as good as that."""
    return value if value > torch.finfo(torch.float32).tiny else 1.0
