"""Where the features of injected nodes begin: functions from a wiring to rows within or near the allowed range.

Whatever a start returns is moved into the range. Your own start is a function of the same form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from grb.graph import CSR, Pattern


@dataclass(frozen=True, eq=False)
class Wiring:
    """What a start sees: new nodes with their edges, and the targets.

    Args:
        x: Features of the clean graph, [n, d].
        targets: Ids of the attacked nodes, [t].
        labels: The labels to take away from them, [t].
        pairs: Edges between new nodes and targets, [2, e]: positions of new nodes, ids of targets.
        count: Number of new nodes.
        limits: Allowed range of features.
    """

    x: Tensor
    targets: Tensor
    labels: Tensor
    pairs: Tensor
    count: int
    limits: tuple[float, float]

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the features to start from."""
        return self.count, self.x.shape[1]

    @property
    def neighbours(self) -> CSR:
        """Which targets every new node is joined with, [count, n]."""
        order = torch.argsort(self.pairs[0], stable=True)
        counts = torch.bincount(self.pairs[0], minlength=self.count)
        return CSR(Pattern(functional.pad(counts.cumsum(0), (1, 0)), self.pairs[1][order], len(self.x)))

    def commonest_labels(self) -> Tensor:
        """The label that most targets of a new node have, the lowest of equal ones, [count]; 0 without targets."""
        own = torch.zeros(len(self.x), dtype=torch.int64)
        own[self.targets] = self.labels
        classes = int(self.labels.max()) + 1
        keys = self.pairs[0] * classes + own[self.pairs[1]]
        return torch.bincount(keys, minlength=self.count * classes).view(self.count, classes).argmax(1)


Start = Callable[[Wiring, torch.Generator], Tensor]


def noise(wiring: Wiring, generator: torch.Generator) -> Tensor:
    """Normal features with a tenth of the larger end of the range as deviation, as PGD has them."""
    return torch.randn(wiring.shape, generator=generator) * (0.1 * max(map(abs, wiring.limits)))


def corners(wiring: Wiring, generator: torch.Generator) -> Tensor:
    """Either end of the range in every coordinate, by a coin."""
    low, high = wiring.limits
    return torch.where(torch.rand(wiring.shape, generator=generator) < 0.5, low, high)


def everywhere(wiring: Wiring, generator: torch.Generator) -> Tensor:
    """Uniform over the whole range."""
    low, high = wiring.limits
    return low + (high - low) * torch.rand(wiring.shape, generator=generator)


def mean_of_targets(wiring: Wiring, generator: torch.Generator) -> Tensor:
    """The mean of the targets that a new node is joined with: similar to all of them, so that no filter cuts an edge.

    A little noise is added, because nodes with equal targets would stay equal for ever.
    """
    neighbours = wiring.neighbours
    counts = neighbours.pattern.counts.clamp_min(1).unsqueeze(1)
    spread = 0.01 * max(map(abs, wiring.limits))
    return neighbours @ wiring.x / counts + spread * torch.randn(wiring.shape, generator=generator)


def other_class(wiring: Wiring, generator: torch.Generator) -> Tensor:
    """A random target with another label than most of those that the new node is joined with; any if there is none.

    Such features are real, and they already speak for a wrong class.
    """
    order = torch.argsort(wiring.labels, stable=True)
    sizes = torch.bincount(wiring.labels)
    own = wiring.commonest_labels()
    before, size = (sizes.cumsum(0) - sizes)[own], sizes[own]
    size = torch.where(size < len(order), size, 0)
    # a position among all targets without those of the own label, which lie together
    draws = torch.rand(wiring.count, generator=generator)
    position = (draws * (len(order) - size)).long().clamp_max(len(order) - 1)
    position = torch.where(position < before, position, position + size)
    return wiring.x[wiring.targets[order[position.clamp_max(len(order) - 1)]]]


STARTS: dict[str, Start] = {
    "noise": noise,
    "corners": corners,
    "everywhere": everywhere,
    "mean": mean_of_targets,
    "other-class": other_class,
}
