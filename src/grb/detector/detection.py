"""What a detector makes of an attacked graph: scores, ROC curves, and how many would have been noticed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grb.dataset import Dataset
from grb.detector.base import KINDS, Detector, Kind
from grb.detector.build import build_detector
from grb.errors import DataError
from grb.graph import GraphEdit
from grb.metric import auroc, roc_curve

# false alarms among the usual items at which a defender looks closer
FALSE_POSITIVES = 0.05


@dataclass(frozen=True, eq=False)
class Roc:
    """How well a detector separates what an attack has changed from what was there.

    Args:
        scores: Suspicion of every item, [m].
        changed: Which items the attack has made or changed, [m] booleans.
        threshold: Suspicion that 5 % of the usual items of the defender's own graph exceed.
    """

    scores: Tensor
    changed: Tensor
    threshold: float

    @property
    def auroc(self) -> float:
        """Area under the curve: 0.5 is unnoticeable, 1 is always noticed."""
        return auroc(self.scores, self.changed.long())

    @property
    def detected(self) -> float:
        """Fraction of changed items above the threshold."""
        return float((self.scores[self.changed] > self.threshold).double().mean())

    @property
    def false_alarms(self) -> float:
        """Fraction of the other items above the threshold; more than 5 % where the test graph is unlike the training graph."""
        return float((self.scores[~self.changed] > self.threshold).double().mean())

    def curve(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """False and true positive rates at every threshold, from (0, 0) to (1, 1)."""
        return roc_curve(self.scores, self.changed.long())

    def to_dict(self) -> dict[str, float | int]:
        """As JSON values, without the scores."""
        return {
            "auroc": self.auroc,
            "detected": self.detected,
            "false_alarms": self.false_alarms,
            "changed": int(self.changed.sum()),
            "others": int((~self.changed).sum()),
        }


@dataclass(frozen=True, eq=False)
class Detection:
    """One detector on one graph.

    Args:
        detector: Its name.
        nodes: Suspicion of every node of the attacked graph, [n].
        edges: Suspicion of every edge, as ``graph.adj.edges()`` lists them, [e].
        roc: Curves of nodes and of edges; a kind of which the attack changed nothing is missing.
    """

    detector: str
    nodes: Tensor
    edges: Tensor
    roc: dict[Kind, Roc]

    @property
    def auroc(self) -> dict[Kind, float]:
        """Area under the curve of nodes and of edges."""
        return {kind: found.auroc for kind, found in self.roc.items()}

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, without the scores."""
        return {"detector": self.detector, **{kind: found.to_dict() for kind, found in self.roc.items()}}


def detect(
    detector: str | Detector, dataset: Dataset, edit: GraphEdit | None = None, *, seed: int = 0, **params: Any
) -> Detection:
    """Score the nodes and edges of a graph by a detector that has seen the training graph alone.

    A defender has no clean copy of the test graph: the detector learns from ``dataset.defender_view()``, and then meets the
    whole attacked graph. Nodes that it has seen in training are above suspicion, so that the curve of nodes compares injected
    nodes (or, if there are none, nodes whose edges or features were changed) with the test nodes, and that of edges compares
    added edges with the clean edges of test nodes.

    Args:
        detector: A name (``grb ls detectors``), or a fitted detector.
        dataset: The dataset.
        edit: What an attack did; the clean graph if None, which has scores but no curves.
        seed: Random seed of whatever the detector learns.
        params: For a named detector: its own arguments.
    """
    if dataset.task != "node":
        raise DataError(f"a detector scores nodes, but '{dataset.name}' has graphs to classify")
    view = dataset.defender_view()
    if isinstance(detector, str):
        made = build_detector(detector, dataset.num_features, dataset.num_classes, **params).fit(view, seed=seed)
    elif params:
        raise DataError(f"parameters {sorted(params)} go with a detector's name; yours is built already")
    else:
        made = detector
    graph = dataset.graph if edit is None else dataset.graph.apply(edit)
    unknown = torch.ones(graph.n, dtype=torch.bool)
    unknown[view.nodes] = False
    with torch.no_grad():
        pattern = graph.adj.pattern
        upper = pattern.row_ids < pattern.indices
        scores: dict[Kind, Tensor] = {"nodes": made.node_scores(graph), "edges": made.edge_scores(graph)[upper]}
    ends = graph.adj.edges()
    candidates: dict[Kind, Tensor] = {"nodes": unknown, "edges": unknown[ends].any(0)}
    changed = changed_items(edit, graph.n, ends)
    found: dict[Kind, Roc] = {}
    for kind in KINDS:
        items = candidates[kind] | (changed[kind] if kind == "edges" else False)
        own = changed[kind][items]
        if bool(own.any()) and not bool(own.all()):
            found[kind] = Roc(scores[kind][items], own, float(made.threshold(kind, FALSE_POSITIVES)))
    return Detection(made.name, scores["nodes"], scores["edges"], found)


def changed_items(edit: GraphEdit | None, n: int, edges: Tensor) -> dict[Kind, Tensor]:
    """Which nodes, [n], and edges, [e], of an attacked graph an attack has made or changed.

    Injected nodes if there are any, else the ends of changed edges and the nodes with other features; edges that were added.
    """
    nodes, added = torch.zeros(n, dtype=torch.bool), torch.zeros(edges.shape[1], dtype=torch.bool)
    if edit is None:
        return {"nodes": nodes, "edges": added}
    if edit.num_new:
        nodes[edit.base :] = True
    else:
        ids = [edit.add.flatten(), edit.drop.flatten(), *([] if edit.set_ids is None else [edit.set_ids])]
        nodes[torch.cat(ids)] = True
    return {"nodes": nodes, "edges": torch.isin(edges[0] * n + edges[1], edit.add[0] * n + edit.add[1])}
