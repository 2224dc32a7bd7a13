"""RND: random edges, random features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

from grb.attack.base import AttackContext
from grb.attack.features import gaussian
from grb.attack.injection.base import Limits, wire_only
from grb.attack.injection.edges import random_edges
from grb.errors import DataError
from grb.graph import GraphEdit


@dataclass(frozen=True, kw_only=True)
class RND(Limits):
    """GRB's random baseline: every injected node takes distinct random targets and Gaussian features. Needs no model.

    Args:
        spread: ``range``: features from N(0, hi^2) clipped into the range, as in GRB; ``graph``: with the mean and
            deviation of every coordinate of the graph's own features.
    """

    spread: Literal["range", "graph"] = "range"
    version = 1
    needs_model = False

    def __post_init__(self) -> None:
        if self.spread not in ("range", "graph"):
            raise DataError(f"spread is {self.spread!r}, but 'range' or 'graph' is needed")

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        """Wire the injected nodes and draw their features."""
        limits = context.injection.feature_range
        pairs = wire_only(context, random_edges, generator)
        if not pairs.numel():
            return GraphEdit(n=context.graph.n)
        shape = (context.injection.nodes, context.graph.num_features)
        if self.spread == "range":
            x = gaussian(shape, max(abs(limits[0]), abs(limits[1])), limits, generator)
        else:
            own = context.graph.x
            assert isinstance(own, torch.Tensor)
            x = (own.mean(0) + own.std(0, correction=0) * torch.randn(*shape, generator=generator)).clamp(*limits)
        return GraphEdit(n=context.graph.n, add=pairs, new_x=x)


RAND = RND  # its name in THUDM/grb
