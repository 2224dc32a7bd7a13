"""Which nodes a targeted attack is aimed at: at random, by margin, or by degree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn

from grb.attack.losses import margin
from grb.dataset import Dataset
from grb.dataset.targets import describe_nodes
from grb.dataset.view import View
from grb.errors import DataError
from grb.model.base import predict
from grb.names import MARGIN_RULES, target_rule

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


def declared_targets(
    text: str,
    dataset: Dataset,
    model: nn.Module | None,
    *,
    labels: Literal["predicted", "true"] = "predicted",
    seed: int = 0,
) -> Tensor | None:
    """Test nodes chosen by a declared rule, ascending; None if the text declares none.

    ``random=K``: K nodes; ``degrees=K``: K of every band of degrees; ``margin-low=K``, ``margin-high=K``: those about which
    the model is most doubtful or surest; ``nettack=K``: a quarter of these each, and random others.

    Args:
        text: The rule.
        dataset: With the test nodes to choose from.
        model: Whose margins decide; needed by the last three.
        labels: ``predicted``: margins of what the model says; ``true``: of the true labels, for an evaluator.
        seed: Random seed of the choice.

    >>> from grb.dataset import load_dataset
    >>> len(declared_targets("random=7", load_dataset("synth-tiny"), None))
    7
    """
    declared = target_rule(text)
    if declared is None:
        return None
    (rule, count), ids = declared, dataset.test_ids(dataset.mode)
    generator = torch.Generator().manual_seed(seed)
    if rule == "random":
        return random_targets(ids, count, generator)
    if rule == "degrees":
        return band_targets(ids, dataset.graph.adj.degrees, count, generator)
    if model is None or dataset.labels.dim() != 1:
        raise DataError(
            f"targets are '{text[:40]}', but that goes by the margins of a model, and one label per node; give both"
        )
    logits = predict(model, dataset.graph)[ids]
    own = logits.argmax(1) if labels == "predicted" else dataset.labels[ids]
    if rule == "nettack":
        return nettack_targets(ids, logits, own, generator, edge=count // 4, middle=count - 2 * (count // 4))
    return margin_targets(ids, logits, own, count, highest=rule == "margin-high")


def with_declared_targets(dataset: Dataset, text: str, model: nn.Module | None, *, seed: int = 0) -> Dataset:
    """The dataset with declared test nodes of every difficulty as its only test nodes; difficulties without any are gone.

    Args:
        dataset: With one graph of nodes to classify.
        text: A rule of :func:`declared_targets`, ``class=NAME`` or a feature column, see
            :func:`~grb.dataset.targets.select_targets`.
        model: Whose margins decide, by its own labels. Without one, rules by margins choose the first nodes instead: as many
            as they will choose, which is all that limits depend on.
        seed: Random seed of the choice.
    """
    declared = target_rule(text)
    chosen: dict[str, Tensor] = {}
    for mode, ids in dataset.split.test.items():
        own = dataset.with_mode(mode)
        if declared is None:
            chosen[mode] = ids[describe_nodes(dataset, text)[ids]]
        elif declared[0] in MARGIN_RULES and model is None:
            chosen[mode] = ids[: declared[1]]
        else:
            found = declared_targets(text, own, model, seed=seed)
            assert found is not None
            chosen[mode] = found
    return dataset.with_tests({mode: ids for mode, ids in chosen.items() if len(ids)}, text)


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
