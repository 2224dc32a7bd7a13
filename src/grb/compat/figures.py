"""The one figure of the papers' era."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def plot_graph(
    adj: Any,
    pos: Any,
    labels: Any,
    nodelist: Any = None,
    figsize: tuple[float, float] = (12, 12),
    title: str | None = None,
    *,
    directory: str = "./images",
) -> Path:
    """Draw a whole graph and write it as ``<directory>/<title>.png``; :mod:`grb.visualise` draws neighbourhoods and attacks.

    Differs from THUDM/grb: no window is opened, and the file's path is returned.

    Args:
        adj: A scipy matrix, [n, n].
        pos: Place of every node by its id, as ``networkx.spring_layout`` gives.
        labels: A number for the colour of every node in ``nodelist``.
        nodelist: Nodes to draw; all if not given.
        figsize: Width and height in inches.
        title: Title, and the file's name; ``graph`` if not given.
        directory: Where to write, made if need be.
    """
    import networkx
    from matplotlib.figure import Figure

    figure = Figure(figsize=figsize)
    axes = figure.add_subplot()
    axes.set_axis_off()
    if title is not None:
        axes.set_title(title)
    graph = networkx.from_scipy_sparse_array(adj)
    nodes = list(graph.nodes) if nodelist is None else [int(node) for node in nodelist]
    colours = np.asarray(labels, dtype=float)
    networkx.draw_networkx_nodes(graph, pos, nodelist=nodes, node_size=50, node_color=colours, cmap="coolwarm", ax=axes)
    networkx.draw_networkx_edges(graph, pos, arrows=False, width=1, style="dotted", ax=axes)
    path = Path(directory) / f"{title or 'graph'}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return path
