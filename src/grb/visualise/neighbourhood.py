"""What an attack did around one target: its neighbourhood before and after, side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from grb.errors import DataError
from grb.graph import Graph, GraphEdit
from grb.visualise import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Edge = tuple[int, int]

MAX_NODES = 40
# a target whose neighbours have about so many neighbours together shows the most: isolated is dull, a hub is a hairball
GOOD_SIZE = 12


@dataclass(frozen=True)
class Neighbourhood:
    """A target and the nodes near it, in the clean and the attacked graph; ids are those of the attacked graph.

    Args:
        target: The node in the middle.
        hops: Distance from the target of every shown node, over edges of both graphs; the target comes first.
        injected: The shown nodes that the attack appended.
        kept: Edges of both graphs.
        added: Edges of the attacked graph alone.
        dropped: Edges of the clean graph alone.
        before: What the model predicts for the shown original nodes on the clean graph.
        after: What it predicts for them on the attacked graph.
        labels: True classes of the shown nodes that have one.
        left_out: Nodes within reach that are not shown.
    """

    target: int
    hops: dict[int, int]
    injected: frozenset[int]
    kept: tuple[Edge, ...]
    added: tuple[Edge, ...]
    dropped: tuple[Edge, ...]
    before: dict[int, int]
    after: dict[int, int]
    labels: dict[int, int]
    left_out: int

    @property
    def nodes(self) -> tuple[int, ...]:
        """All nodes shown, the target first."""
        return tuple(self.hops)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """All edges shown: kept, added and dropped ones."""
        return self.kept + self.added + self.dropped

    @property
    def near_before(self) -> set[int]:
        """Shown nodes that edges of the clean graph join with the target."""
        found, last = {self.target}, 0
        while len(found) > last:
            last = len(found)
            found |= {end for edge in self.kept + self.dropped if found & set(edge) for end in edge}
        return found

    @property
    def classes(self) -> list[int]:
        """Classes that either panel shows."""
        return sorted({*self.before.values(), *self.after.values()})


def telling_target(graph: Graph, edit: GraphEdit, targets: Tensor, before: Tensor, after: Tensor) -> int:
    """The target worth showing: its prediction changed, the edit touches it, and it is neither alone nor near a hub.

    Args:
        graph: The clean graph.
        edit: What the attack changed.
        targets: Ids of the attacked nodes, [t].
        before: Predicted classes on the clean graph, [n].
        after: Predicted classes on the attacked graph, [n + new].
    """
    if not len(targets):
        raise DataError("there are no targets to choose one from")
    touched = torch.isin(targets, torch.cat([edit.add, edit.drop], dim=1))
    changed = before[targets] != after[targets]
    right = torch.zeros_like(changed) if graph.y is None else before[targets] == graph.y[targets]
    degrees, pattern = graph.adj.degrees.long(), graph.adj.pattern
    around = torch.zeros_like(degrees).index_add_(0, pattern.row_ids.long(), degrees[pattern.indices.long()])
    strange = (around[targets] - GOOD_SIZE).abs()
    ranks = zip(*((~part).tolist() for part in (changed, touched, right)), strange.tolist(), targets.tolist())
    return int(min(ranks)[-1])


def neighbourhood(
    graph: Graph,
    edit: GraphEdit,
    target: int,
    before: Tensor,
    after: Tensor,
    *,
    hops: int = 2,
    max_nodes: int = MAX_NODES,
) -> Neighbourhood:
    """The nodes within some hops of a target and the edges among them, before and after an edit.

    Of more than ``max_nodes`` the nearest are kept; among equally near ones first those that are injected, then those
    that hang on the target's own neighbours and not only on injected nodes, then by id.

    Args:
        graph: The clean graph.
        edit: What the attack changed.
        target: Id of an original node.
        before: Predicted classes on the clean graph, [n].
        after: Predicted classes on the attacked graph, [n + new].
        hops: How far to go.
        max_nodes: How many nodes to show.
    """
    if not 0 <= target < edit.base:
        raise DataError(f"target {target} is not an original node; there are nodes 0 to {edit.base - 1}")
    if len(before) != graph.n or len(after) != edit.n_after:
        raise DataError(
            f"predictions for {len(before)} and {len(after)} nodes were given, "
            f"but the graphs have {graph.n} and {edit.n_after}"
        )
    reached = _reached(graph, edit, target, hops)
    shown = dict(sorted(reached.items(), key=lambda item: (item[1][0], item[0] < edit.base, item[1][1], item[0])))
    nodes = list(shown)[: max(1, max_nodes)]
    original = [node for node in nodes if node < edit.base]
    known = [] if graph.y is None else [node for node in original if int(graph.y[node]) >= 0]
    clean = _induced(graph.adj.edges(), original)
    dropped = _induced(edit.drop, original)
    return Neighbourhood(
        target=target,
        hops={node: shown[node][0] for node in nodes},
        injected=frozenset(node for node in nodes if node >= edit.base),
        kept=tuple(edge for edge in clean if edge not in set(dropped)),
        added=_induced(edit.add, nodes),
        dropped=dropped,
        before={node: int(before[node]) for node in original},
        after={node: int(after[node]) for node in original},
        labels={node: int(graph.y[node]) for node in known} if graph.y is not None else {},
        left_out=len(reached) - len(nodes),
    )


def _reached(graph: Graph, edit: GraphEdit, target: int, hops: int) -> dict[int, tuple[int, bool]]:
    """Distance of every node within reach, and whether only injected nodes lead to it."""
    found = {target: (0, False)}
    border = [target]
    for distance in range(1, hops + 1):
        ends = torch.tensor(border)
        clean = torch.cat([graph.adj.neighbours(node) for node in border if node < graph.n] or [ends[:0]])
        added = torch.cat([edit.add[1][torch.isin(edit.add[0], ends)], edit.add[0][torch.isin(edit.add[1], ends)]])
        plain = set(clean[clean < edit.base].tolist())
        border = sorted((plain | set(added.tolist())) - found.keys())
        found |= {node: (distance, node not in plain) for node in border}
    return found


def _induced(pairs: Tensor, nodes: list[int]) -> tuple[Edge, ...]:
    """Those pairs whose two ends are shown."""
    inside = torch.isin(pairs, torch.tensor(nodes, dtype=torch.int64)).all(0)
    return tuple((int(low), int(high)) for low, high in pairs[:, inside].T.tolist())


def layout(data: Neighbourhood) -> dict[int, tuple[float, float]]:
    """Where every shown node stands in the unit square: the same place in both panels, the same in every run."""
    import networkx as nx

    drawn = nx.Graph()
    drawn.add_nodes_from(data.nodes)
    drawn.add_edges_from(data.edges)
    places = nx.kamada_kawai_layout(drawn) if len(drawn) > 1 else {data.target: (0.0, 0.0)}
    across, up = (_spread([float(places[node][axis]) for node in data.nodes]) for axis in (0, 1))
    return dict(zip(data.nodes, zip(across, up)))


def _spread(values: list[float]) -> list[float]:
    """Over the unit interval; in its middle if they are all alike."""
    low, high = min(values), max(values)
    return [0.5 if high - low < 1e-9 else (value - low) / (high - low) for value in values]


def draw_neighbourhood(data: Neighbourhood, *, title: str | None = None) -> Figure:
    """Two panels: colour and shape of a node are its predicted class, a cross marks a wrong prediction.

    The target wears a ring, injected nodes are black stars, added edges dashed; dropped edges are dotted in the first
    panel. Nodes that only the attack brings near are pale there.
    """
    with style.styled():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(style.PAGE, 3.7), layout="constrained")
        panels = figure.subplots(1, 2)
        places = layout(data)
        for axes, attacked in zip(panels, (False, True)):
            axes.set_axis_off()
            axes.set(xlim=(-0.06, 1.06), ylim=(-0.06, 1.06))
            _draw_edges(axes, data, places, attacked)
            _draw_nodes(axes, data, places, attacked)
            axes.set_title(_verdict(data, attacked))
        handles = _legend(data)
        columns = len(handles) if len(handles) <= 8 else math.ceil(len(handles) / 2)
        figure.legend(handles=handles, loc="outside lower center", ncols=columns, handletextpad=0.4, columnspacing=1.2)
        shown = title or ""
        if data.left_out:
            shown += f" (not shown: {data.left_out} more within reach)"
        if shown:
            figure.suptitle(shown)
        return figure


def _verdict(data: Neighbourhood, attacked: bool) -> str:
    predicted = (data.after if attacked else data.before)[data.target]
    label = data.labels.get(data.target)
    verdict = "" if label is None else " (right)" if label == predicted else f" (wrong, it is {label})"
    return f"{'after' if attacked else 'before'}: node {data.target} is taken for class {predicted}{verdict}"


def _draw_edges(axes: Axes, data: Neighbourhood, places: dict[int, tuple[float, float]], attacked: bool) -> None:
    from matplotlib.collections import LineCollection

    groups: list[tuple[tuple[Edge, ...], dict[str, Any]]] = [
        (data.kept, {"colors": style.PALE, "linewidths": 0.9}),
        (data.added if attacked else (), ADDED),
        (() if attacked else data.dropped, DROPPED),
    ]
    for edges, look in groups:
        lines = [[places[low], places[high]] for low, high in edges]
        axes.add_collection(LineCollection(lines, zorder=1, **look))


ADDED: dict[str, Any] = {"colors": style.INK, "linewidths": 0.8, "linestyles": "--"}
DROPPED: dict[str, Any] = {"colors": style.ALARM, "linewidths": 1.0, "linestyles": ":"}


def _draw_nodes(axes: Axes, data: Neighbourhood, places: dict[int, tuple[float, float]], attacked: bool) -> None:
    predicted = data.after if attacked else data.before
    near = data.near_before
    for node, label in predicted.items():
        colour, marker = style.class_look(label)
        main = node == data.target
        edge: dict[str, Any] = {
            "markeredgecolor": style.INK if main else "white",
            "markeredgewidth": 1.4 if main else 0.5,
        }
        alpha = 1.0 if attacked or node in near else 0.35  # those that the attack brings near are pale before it
        size = 12 if main else 8
        axes.plot(*places[node], marker=marker, markersize=size, color=colour, alpha=alpha, zorder=3, **edge)
        if data.labels.get(node, label) != label:
            axes.plot(*places[node], zorder=4, alpha=alpha, **_cross(size / 2))
    if attacked:
        for node in sorted(data.injected):
            axes.plot(*places[node], zorder=3, **STAR)


STAR: dict[str, Any] = {
    "marker": "*",
    "markersize": 10,
    "color": style.INK,
    "markeredgecolor": "white",
    "markeredgewidth": 0.4,
    "linestyle": "none",
}


def _cross(size: float) -> dict[str, Any]:
    return {"marker": "x", "markersize": size, "color": style.INK, "markeredgewidth": 1.0, "linestyle": "none"}


def _legend(data: Neighbourhood) -> list[Any]:
    from matplotlib.lines import Line2D

    def dot(label: int) -> Line2D:
        colour, marker = style.class_look(label)
        return Line2D([], [], color=colour, marker=marker, markersize=6, linestyle="none", label=f"class {label}")

    handles = [dot(label) for label in data.classes]
    ring: dict[str, Any] = {"marker": "o", "markersize": 9, "markerfacecolor": "none", "markeredgecolor": style.INK}
    handles.append(Line2D([], [], linestyle="none", markeredgewidth=1.4, label="target", **ring))
    wrong = any(data.labels.get(node, own) != own for side in (data.before, data.after) for node, own in side.items())
    if wrong:
        handles.append(Line2D([], [], label="wrong", **_cross(4)))
    if data.injected:
        handles.append(Line2D([], [], label="injected node", **STAR))
    if data.added:
        handles.append(Line2D([], [], color=style.INK, linewidth=0.8, linestyle="--", label="added edge"))
    if data.dropped:
        handles.append(Line2D([], [], color=style.ALARM, linewidth=1.0, linestyle=":", label="dropped edge"))
    return handles
