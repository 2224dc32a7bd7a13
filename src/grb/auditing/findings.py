"""Who suffers and who is used: nodes that fall first, classes and degrees that lose most, nodes that edits touch most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grb.attack.losses import margin
from grb.dataset import Dataset
from grb.graph import GraphEdit

BANDS = 4


def degree_bands(degrees: Tensor, ids: Tensor, count: int = BANDS) -> list[tuple[str, Tensor]]:
    """Targets by their number of neighbours in bands of about equal size: a name and a mask, [t], for each.

    >>> [name for name, _ in degree_bands(torch.tensor([0, 1, 1, 2, 3, 9]), torch.arange(6), 2)]
    ['0-1', '2-9']
    """
    own = degrees[ids].long()
    shares = np.linspace(0, 1, count + 1)[1:]
    ends = np.unique(np.quantile(own.numpy(), shares, method="inverted_cdf")).astype(int).tolist()
    found, low = [], int(own.min()) if len(own) else 0
    for end in ends:
        mask = (own >= low) & (own <= end)
        if mask.any():
            found.append((f"{low}-{end}" if low != end else str(low), mask))
        low = end + 1
    return found


def by_class_and_degree(dataset: Dataset, clean: Tensor, attacked: Tensor) -> dict[str, Any]:
    """Fractions of targets that get their label before and after, by class and by degree: the cells of a heat map.

    Args:
        dataset: Its test nodes are the targets.
        clean: Logits of all nodes before, [n, c].
        attacked: And after, [n, c].
    """
    ids = dataset.index_test
    y = dataset.labels[ids]
    before, after = clean[ids].argmax(1) == y, attacked[ids].argmax(1) == y
    bands = degree_bands(dataset.graph.adj.degrees, ids)
    classes = y.unique().tolist()

    def cell(mask: Tensor) -> dict[str, Any]:
        count = int(mask.sum())
        if not count:
            return {"targets": 0, "clean": None, "attacked": None}
        return {
            "targets": count,
            "clean": float(before[mask].double().mean()),
            "attacked": float(after[mask].double().mean()),
        }

    every = torch.ones(len(ids), dtype=torch.bool)
    rows = [
        {
            "class": dataset.names.of_class(int(label)),
            "all": cell(y == label),
            "cells": [cell((y == label) & mask) for _, mask in bands],
        }
        for label in classes
    ]
    bottom = {"class": "all", "all": cell(every), "cells": [cell(mask) for _, mask in bands]}
    return {"bands": [name for name, _ in bands], "rows": [*rows, bottom]}


def vulnerable_nodes(
    dataset: Dataset, clean: Tensor, answers: Sequence[tuple[int, Tensor]], most: int = 50
) -> list[dict[str, Any]]:
    """Targets in the order in which they fall: the smallest budget under which each gets a wrong label.

    Those that fall at the same budget are ordered by how sure the model was of them.

    Args:
        dataset: Its test nodes are the targets.
        clean: Logits of all nodes on the clean graph, [n, c].
        answers: Budgets, ascending, and the logits under the strongest edit of each.
        most: How many are listed.
    """
    ids = dataset.index_test
    y = dataset.labels[ids]
    sure = -margin(clean[ids].double(), y)
    right = clean[ids].argmax(1) == y
    none = max((budget for budget, _ in answers), default=0) + 1
    first = torch.full((len(ids),), none, dtype=torch.int64)
    into = torch.full((len(ids),), -1, dtype=torch.int64)
    for budget, logits in answers:
        said = logits[ids].argmax(1)
        lost = right & (said != y) & (first == none)
        first[lost], into[lost] = budget, said[lost]
    fallen = (first < none).nonzero().flatten()
    order = sorted(fallen.tolist(), key=lambda at: (int(first[at]), float(sure[at])))[:most]
    degrees = dataset.graph.adj.degrees
    names = dataset.names.of_nodes(ids[order].tolist())
    return [
        {
            "node": name,
            "class": dataset.names.of_class(int(y[at])),
            "becomes": dataset.names.of_class(int(into[at])),
            "budget": int(first[at]),
            "degree": int(degrees[ids[at]]),
            "margin": round(float(sure[at]), 4),
        }
        for name, at in zip(names, order, strict=True)
    ]


def failed_attacks(points: Sequence[Mapping[str, Any]]) -> tuple[dict[str, str], bool]:
    """Attacks that failed at every budget with the reason of the last time, and whether none but random changes ran.

    Args:
        points: Of a curve, each with its ``trials``.
    """
    trials = [trial for point in points for trial in point["trials"]]
    ran = {trial["attack"] for trial in trials if "error" not in trial}
    failed = {trial["attack"]: str(trial["error"]) for trial in trials if trial["attack"] not in ran}
    return failed, bool(failed) and ran <= {"random", "smaller budget"}


def used_nodes(dataset: Dataset, edit: GraphEdit, most: int = 20) -> list[dict[str, Any]]:
    """Original nodes that an edit touches most often, with the number of its edges there."""
    ends = torch.cat([edit.add.flatten(), edit.drop.flatten()])
    ends = ends[ends < dataset.num_nodes]
    if not len(ends):
        return []
    counts = torch.bincount(ends, minlength=dataset.num_nodes)
    order = torch.argsort(counts, descending=True, stable=True)[:most]
    order = order[counts[order] > 0]
    is_target = torch.zeros(dataset.num_nodes, dtype=torch.bool)
    is_target[dataset.index_test] = True
    names = dataset.names.of_nodes(order.tolist())
    known = dataset.labels.dim() == 1
    return [
        {
            "node": name,
            "edges": int(counts[node]),
            "degree": int(dataset.graph.adj.degrees[node]),
            "target": bool(is_target[node]),
            "class": dataset.names.of_class(int(dataset.labels[node])) if known and dataset.labels[node] >= 0 else "",
        }
        for name, node in zip(names, order.tolist(), strict=True)
    ]
