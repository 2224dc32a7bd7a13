"""How far an edit can be noticed: homophily, degrees and features before and after it, and what detectors make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from grb.catalogue import entries
from grb.dataset import Dataset
from grb.detector import detect
from grb.detector.homophily import node_homophily
from grb.errors import DataError
from grb.graph import Graph, GraphEdit
from grb.visualise import style
from grb.visualise.degrees import bin_edges

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = np.ndarray[Any, Any]
BINS = 24
GROUPS = ("before", "after", "injected")


@dataclass(frozen=True)
class Shift:
    """One property of nodes before and after an edit.

    Args:
        edges: Ends of the bins.
        shares: Share of nodes in every bin, of the original nodes before the edit, of those that it touches after it,
            and of the injected nodes; groups without nodes are missing.
        means: Their means.
        distance: Kolmogorov's distance between all nodes before and all nodes after the edit: 0 is unnoticeable.
    """

    edges: tuple[float, ...]
    shares: dict[str, tuple[float, ...]]
    means: dict[str, float]
    distance: float


@dataclass(frozen=True)
class Unnoticeability:
    """What an edit changes: node-centric homophily, degree, and the norm of features.

    Args:
        homophily: Shift of the node-centric homophily.
        degree: Shift of the degrees.
        feature: Shift of the norms of features.
        touched: Original nodes that the edit touches.
        injected: Nodes that it injects.
        detected: AUROC of detectors that have seen the training graph alone, by name: 0.5 is unnoticeable.
    """

    homophily: Shift
    degree: Shift
    feature: Shift
    touched: int
    injected: int
    detected: Mapping[str, float] = field(default_factory=dict)


def homophily(graph: Graph) -> Tensor:
    r"""Similarity of every node to its neighbours, [n]; NaN for nodes without any.

    .. math:: h_u = \cos\Big(x_u, \sum_{v \in N(u)} \frac{x_v}{\sqrt{d_u d_v}}\Big)

    References:
        Chen et al., *Understanding and Improving Graph Injection Attack by Promoting Unnoticeability*, ICLR 2022.
    """
    if not isinstance(graph.x, Tensor):
        raise DataError("homophily of features needs dense features")
    return node_homophily(graph)


def detections(dataset: Dataset, edit: GraphEdit, *, seed: int = 0) -> dict[str, float]:
    """AUROC of every detector against an edit, of nodes (see :func:`grb.detect`); empty for an edit that changes none.

    The comparison with the clean graph is what an attacker can check; a defender has no clean copy of the test graph.
    """
    found: dict[str, float] = {}
    for name in entries("detector"):
        try:
            areas = detect(name, dataset, edit, seed=seed).auroc
        except DataError:  # a detector of classes where nodes have several labels
            continue
        if "nodes" in areas:
            found[name] = areas["nodes"]
    return found


def unnoticeability(graph: Graph, edit: GraphEdit, *, detected: Mapping[str, float] | None = None) -> Unnoticeability:
    """The data of :func:`draw_unnoticeability` for one edit.

    Touched are the original nodes that gain or lose an edge or whose features are replaced.

    Args:
        graph: The clean graph.
        edit: The edit.
        detected: What :func:`detections` found, to be shown beside the comparison with the clean graph.
    """
    after = graph.apply(edit)
    if not isinstance(graph.x, Tensor) or not isinstance(after.x, Tensor):
        raise DataError("the shift of features needs dense features")
    ends = torch.cat([edit.add.flatten(), edit.drop.flatten(), *([] if edit.set_ids is None else [edit.set_ids])])
    touched = torch.zeros(after.n, dtype=torch.bool)
    touched[ends[ends < edit.base]] = True
    old = touched.numpy().copy()
    new = np.arange(after.n) >= edit.base
    largest = int(max(graph.adj.degrees.max(), after.adj.degrees.max())) if graph.n else 0
    degree_edges = bin_edges(largest).astype(float)
    return Unnoticeability(
        homophily=_shift(homophily(graph).numpy(), homophily(after).numpy(), old, new, None),
        degree=_shift(graph.adj.degrees.numpy(), after.adj.degrees.numpy(), old, new, degree_edges),
        feature=_shift(graph.x.float().norm(dim=1).numpy(), after.x.float().norm(dim=1).numpy(), old, new, None),
        touched=int(old.sum()),
        injected=int(new.sum()),
        detected=dict(detected or {}),
    )


def _shift(before: Array, after: Array, touched: Array, injected: Array, edges: Array | None) -> Shift:
    groups = {"before": before, "after": after[touched], "injected": after[injected]}
    groups = {name: values[~np.isnan(values.astype(float))].astype(float) for name, values in groups.items()}
    groups = {name: values for name, values in groups.items() if len(values)}
    if edges is None:
        together = np.concatenate(list(groups.values()))
        low, high = float(together.min()), float(together.max())
        edges = np.linspace(low, high if high > low else low + 1e-6, BINS + 1)
    shares = {
        name: tuple((np.histogram(np.clip(values, edges[0], edges[-1]), bins=edges)[0] / len(values)).tolist())
        for name, values in groups.items()
    }
    means = {name: float(values.mean()) for name, values in groups.items()}
    return Shift(tuple(edges.tolist()), shares, means, kolmogorov(before, after))


def kolmogorov(one: Any, other: Any) -> float:
    """Largest distance between two empirical distribution functions; NaN are left out.

    >>> kolmogorov([0, 1, 2, 3], [2, 3, 4, 5])
    0.5
    """
    first, second = (
        np.sort(values[~np.isnan(values)]) for values in (np.asarray(each, float) for each in (one, other))
    )
    if not len(first) or not len(second):
        return 0.0
    places = np.concatenate([first, second])
    shares = (np.searchsorted(each, places, side="right") / len(each) for each in (first, second))
    low, high = shares
    return float(np.abs(low - high).max())


def draw_unnoticeability(data: Mapping[str, Unnoticeability], *, title: str | None = None) -> Figure:
    """One line of panels per edit: distributions of homophily, degree and the norm of features, and what detectors notice."""
    if not data:
        raise DataError("there is no edit to draw")
    with style.styled():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(style.PAGE, 0.5 + 1.5 * len(data)), layout="constrained")
        detected = any(each.detected for each in data.values())
        panels = figure.subplots(len(data), 4 if detected else 3, squeeze=False)
        for number, (name, each) in enumerate(data.items()):
            line = panels[number]
            shifts = (("homophily", each.homophily), ("degree", each.degree), ("norm of features", each.feature))
            for axes, (label, shift) in zip(line, shifts):
                _draw_shift(axes, shift, counted=label == "degree")
                axes.set_title(f"distance {shift.distance:.3f}", fontsize=7, loc="right")
                if number == len(data) - 1:
                    axes.set_xlabel(label)
            line[0].set_ylabel(f"{name}\nshare of nodes (%)")
            if detected:
                _draw_detected(line[3], each.detected, last=number == len(data) - 1)
        handles, labels = max((axes.get_legend_handles_labels() for axes in panels.flat), key=lambda pair: len(pair[1]))
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
        figure.suptitle(title or "What an attack leaves to notice")
        return figure


def _draw_detected(axes: Axes, detected: Mapping[str, float], *, last: bool) -> None:
    """One bar per detector from 0.5, which says nothing, to its AUROC."""
    names = list(detected)
    axes.barh(names, [detected[name] - 0.5 for name in names], left=0.5, color=style.COLOURS[6], height=0.6)
    axes.axvline(0.5, color="0.4", linewidth=0.8)
    axes.set_xlim(0, 1)
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=6)
    if last:
        axes.set_xlabel("AUROC of detectors")


LABELS = {"before": "all nodes, before", "after": "touched nodes, after", "injected": "injected nodes"}
LINES = {"before": "-", "after": "--", "injected": "-."}


def _draw_shift(axes: Axes, shift: Shift, *, counted: bool) -> None:
    edges = np.array(shift.edges)
    shown = np.arange(len(edges)) if counted else edges
    for number, name in enumerate(GROUPS):
        if name in shift.shares:
            colour = style.COLOURS[(0, 5, 6)[number]]
            heights = 100 * np.array(shift.shares[name])
            axes.stairs(heights, shown, color=colour, linestyle=LINES[name], linewidth=1.2, label=LABELS[name])
    if counted:
        step = max(1, len(edges) // 7)
        axes.set_xticks(np.arange(len(edges) - 1)[::step] + 0.5, [f"{int(edge)}" for edge in edges[:-1:step]])
