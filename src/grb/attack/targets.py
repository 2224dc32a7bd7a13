"""Which nodes a targeted attack is aimed at: at random, by margin, or by degree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from grb.attack.losses import margin
from grb.dataset.view import View
from grb.errors import DataError

# degrees from the first number to the second, as in much of the literature on targeted attacks
DEGREE_BANDS: tuple[tuple[int, int | None], ...] = ((0, 1), (2, 2), (3, 3), (4, 5), (6, 10), (11, None))


def random_targets(ids: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """Some of the nodes, uniformly; ascending, [min(count, k)].

    Args:
        ids: Nodes to choose from, [k].
        count: How many.
        generator: The only source of randomness.
    """
    _check_count(count)
    return ids[torch.randperm(len(ids), generator=generator)[:count]].sort().values


def margin_targets(ids: Tensor, logits: Tensor, labels: Tensor, count: int, *, highest: bool) -> Tensor:
    """Those of the correctly classified nodes with the lowest or the highest margins; ascending.

    Args:
        ids: Nodes to choose from, [k].
        logits: Logits of those nodes, [k, c].
        labels: Labels of those nodes, [k]: what a model says for an attacker, the truth for an evaluator.
        count: How many; fewer if fewer are classified correctly.
        highest: The surest ones instead of the most doubtful.
    """
    _check_count(count)
    margins = -margin(logits, labels)
    right = (logits.argmax(1) == labels).nonzero().flatten()
    order = margins[right].argsort(descending=highest, stable=True)
    return ids[right[order[:count]]].sort().values


def band_targets(
    ids: Tensor,
    degrees: Tensor,
    count: int,
    generator: torch.Generator,
    bands: Sequence[tuple[int, int | None]] = DEGREE_BANDS,
) -> Tensor:
    """Equally many random nodes of every band of degrees; ascending.

    Args:
        ids: Nodes to choose from, [k].
        degrees: Degrees of all nodes, [n].
        count: How many of each band; fewer where it has fewer.
        generator: The only source of randomness.
        bands: Lowest and highest degree of every band; None for no highest.
    """
    _check_count(count)
    chosen = [random_targets(ids[part], count, generator) for part in in_bands(degrees[ids], bands)]
    return torch.cat([ids[:0], *chosen]).unique()


def nettack_targets(
    ids: Tensor, logits: Tensor, labels: Tensor, generator: torch.Generator, *, edge: int = 10, middle: int = 20
) -> Tensor:
    """Nettack's choice among correctly classified nodes: the surest, the most doubtful, and random others; ascending.

    Args:
        ids: Nodes to choose from, [k].
        logits: Logits of those nodes, [k, c].
        labels: Labels of those nodes, [k].
        generator: The only source of randomness.
        edge: How many of the surest and of the most doubtful.
        middle: How many of the others.

    References:
        Zügner, Akbarnejad and Günnemann, *Adversarial Attacks on Neural Networks for Graph Data*, KDD 2018, section 6.
    """
    right = logits.argmax(1) == labels
    high, low = (margin_targets(ids, logits, labels, edge, highest=highest) for highest in (True, False))
    rest = ids[right & ~torch.isin(ids, torch.cat([high, low]))]
    return torch.cat([high, low, random_targets(rest, middle, generator)]).unique()


def in_bands(degrees: Tensor, bands: Sequence[tuple[int, int | None]]) -> list[Tensor]:
    """Positions of the nodes of every band, given their degrees, [k]."""
    for low, high in bands:
        if high is not None and high < low:
            raise DataError(f"a band of degrees runs from {low} to {high}, but the second may not be lower")
    return [
        ((degrees >= low) & (degrees <= (torch.inf if high is None else high))).nonzero().flatten()
        for low, high in bands
    ]


def with_targets(view: View, targets: Tensor) -> View:
    """An attacker's view that is aimed at some of its targets; others are refused."""
    strange = targets[~torch.isin(targets, view.targets)]
    if len(strange):
        raise DataError(f"node {int(strange[0])} is no target of this view; choose among view.targets")
    return replace(view, targets=targets)


def _check_count(count: int) -> None:
    if count < 0:
        raise DataError(f"{count} targets were asked for, but the number must not be negative")
