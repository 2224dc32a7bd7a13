"""One graph under all thirteen perturbations of the taxonomy paper (its Figure 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from grb.errors import DataError
from grb.graph import Graph
from grb.graph.sparse import dense
from grb.taxonomy import FEATURES, PAPER_ORDER
from grb.visualise import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = np.ndarray[Any, Any]
# a graph with more nodes cannot be read in a panel
MAX_NODES = 400
COLUMNS = 5


@dataclass(frozen=True, eq=False)
class Panel:
    """A graph as one panel shows it.

    Args:
        title: Name of the perturbation; ``original`` for none.
        edges: Pairs of nodes, [e, 2].
        values: What colours the nodes, [n]: a feature, or the number of the fragment.
        fragments: Whether the values are numbers of fragments.
        changes: ``features`` or ``edges``, what the perturbation changes; empty for the original.
    """

    title: str
    edges: Array
    values: Array
    fragments: bool = False
    changes: str = ""


@dataclass(frozen=True, eq=False)
class Gallery:
    """The panels, and where every node stands in all of them, [n, 2]."""

    places: Array
    panels: tuple[Panel, ...]


def ball(graph: Graph, count: int, *, centre: int = 0) -> Graph:
    """The nodes nearest to a node, as many as asked for, and the edges among them."""
    found = dict.fromkeys([centre])
    border = [centre]
    while border and len(found) < count:
        near = torch.cat([graph.adj.neighbours(node) for node in border]).tolist()
        border = list(dict.fromkeys(node for node in near if node not in found))
        found |= dict.fromkeys(border)
    return graph.subgraph(torch.tensor(sorted(list(found)[:count])))


def perturbation_gallery(graph: Graph, *, generator: torch.Generator) -> Gallery:
    """The data of :func:`draw_gallery`.

    Args:
        graph: One graph with features; of a collection, take one with :meth:`Graph.subgraph`.
        generator: For the random perturbations.
    """
    import networkx as nx

    from grb.perturb import build_perturbation

    if not 2 <= graph.n <= MAX_NODES:
        raise DataError(f"the graph has {graph.n} nodes, but 2 to {MAX_NODES} can be shown in a panel")
    drawn = nx.Graph()
    drawn.add_nodes_from(range(graph.n))
    drawn.add_edges_from(graph.adj.edges().T.tolist())
    layout = nx.spring_layout(drawn, seed=0, iterations=200)
    places = np.array([layout[node] for node in range(graph.n)])
    feature = _telling(graph)
    panels = [Panel("original", _edges(graph), _values(graph, feature))]
    for name in PAPER_ORDER:
        made = build_perturbation(name)
        changed = made(graph, generator) if made.random else made(graph)
        kind = "features" if name in FEATURES else "edges"
        pieces = name.startswith("Frag-") or name == "FiedlerFrag"
        values = _pieces(changed) if pieces else _values(changed, feature)
        panels.append(Panel(name, _edges(changed), values, pieces, kind))
    return Gallery(places, tuple(panels))


def _edges(graph: Graph) -> Array:
    return np.asarray(graph.adj.edges().T.numpy())


def _telling(graph: Graph) -> int:
    """The feature that varies most."""
    rows = _dense(graph)
    return int(rows.std(0).argmax())


def _dense(graph: Graph) -> Array:
    if graph.x is None:
        raise DataError("the graph has no features to show")
    return np.asarray(dense(graph.x).double().numpy())


def _values(graph: Graph, feature: int) -> Array:
    """One number per node: the chosen feature; the number of the class of a one-hot row; the only feature."""
    rows = _dense(graph)
    if rows.shape[1] > 1 and bool(((rows == 0) | (rows == 1)).all() and (rows.sum(1) == 1).all()):
        return rows.argmax(1).astype(float)
    return rows[:, feature if feature < rows.shape[1] else 0]


def _pieces(graph: Graph) -> Array:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = _edges(graph)
    joined = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(graph.n, graph.n))
    return np.asarray(connected_components(joined, directed=False)[1]).astype(float)


def draw_gallery(data: Gallery, *, title: str | None = None) -> Figure:
    """One panel per perturbation; colours are a feature of the nodes, or with FragK and FiedlerFrag their fragment."""
    with style.styled():
        from matplotlib.figure import Figure

        lines = -(-len(data.panels) // COLUMNS)
        figure = Figure(figsize=(style.PAGE, 1.45 * lines + 0.3), layout="constrained")
        grid = figure.subplots(lines, COLUMNS, squeeze=False)
        for axes, panel in zip(grid.flat, data.panels):
            _draw_panel(axes, data.places, panel)
        for axes in list(grid.flat)[len(data.panels) :]:
            axes.set_axis_off()
        figure.suptitle(title or "One graph under the thirteen perturbations; colour: a feature, or the fragment")
        return figure


def _draw_panel(axes: Axes, places: Array, panel: Panel) -> None:
    from matplotlib.collections import LineCollection

    axes.set_axis_off()
    many = len(panel.edges) > 3 * len(places)
    axes.add_collection(
        LineCollection(list(places[panel.edges]), colors=style.GREY, linewidths=0.15 if many else 0.6, zorder=1)
    )
    values = panel.values
    look: dict[str, Any] = {"s": 14, "zorder": 2, "edgecolors": "white", "linewidths": 0.3}
    if panel.fragments:
        look["c"] = [style.COLOURS[int(value) % len(style.COLOURS)] for value in values]
    else:
        reach = float(np.abs(values).max()) or 1.0
        look |= {"c": values, "cmap": "cividis", "vmin": min(0.0, float(values.min())), "vmax": reach}
    axes.scatter(places[:, 0], places[:, 1], **look)
    axes.margins(0.08)
    axes.set_title(panel.title if not panel.changes else f"{panel.title} ({panel.changes})", fontsize=7)
