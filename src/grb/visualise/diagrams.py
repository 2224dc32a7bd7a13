"""Drawings of ideas, without any data: the evasion scenario, how a score is made, and what layer normalisation does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from grb.visualise import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Point = tuple[float, float]
# a small graph that all drawings share: places of nodes, the class of each, edges
NODES: tuple[Point, ...] = ((0.1, 0.62), (0.3, 0.9), (0.35, 0.45), (0.6, 0.8), (0.62, 0.4), (0.88, 0.62))
CLASSES = (0, 0, 0, 1, 1, 1)
EDGES = ((0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 4), (3, 5), (4, 5))
INJECTED: tuple[Point, ...] = ((0.42, 0.12), (0.78, 0.14))
ADDED = ((6, 2), (6, 4), (7, 4), (7, 5), (6, 7))
ARROW: Any = {"arrowstyle": "-|>", "color": style.INK, "linewidth": 1.0, "mutation_scale": 9}


def draw_scenario() -> Figure:
    """Training on the clean graph, then an attack on the test graph, then the same model: evasion by injection."""
    with style.styled():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(style.PAGE, 2.5), layout="constrained")
        panels = figure.subplots(1, 3)
        titles = ("1  defender: train", "2  attacker: add nodes", "3  evaluator: count and ask")
        notes = (
            "training and validation nodes,\ntheir edges and labels;\nno test node is seen",
            "the whole graph and features;\nno test label, and no model\nunless it is a white box",
            "is the edit within its limits?\nHow many targets get their\ntrue label now?",
        )
        for number, (axes, title, note) in enumerate(zip(panels, titles, notes)):
            hidden = (5,) if number == 0 else ()
            _draw_graph(axes, hidden=hidden, attacked=number > 0, wrong=(4,) if number == 2 else (), target=number > 0)
            axes.set_title(title, loc="left", fontweight="bold")
            axes.text(0.0, -0.34, note, va="top", fontsize=7)
            axes.set_ylim(-0.85, 1.05)
        figure.suptitle("Inductive evasion: the model is trained before the attack and does not change any more")
        return figure


def _draw_graph(
    axes: Axes, *, hidden: Sequence[int] = (), attacked: bool = False, wrong: Sequence[int] = (), target: bool = False
) -> None:
    from matplotlib.collections import LineCollection

    axes.set_axis_off()
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.1, 1.05))
    shown = [edge for edge in EDGES if not set(edge) & set(hidden)]
    axes.add_collection(LineCollection([[NODES[a], NODES[b]] for a, b in shown], colors=style.GREY, linewidths=1.0))
    if attacked:
        places = (*NODES, *INJECTED)
        lines = [[places[a], places[b]] for a, b in ADDED]
        axes.add_collection(LineCollection(lines, colors=style.ALARM, linewidths=1.0, linestyles="--"))
        for place in INJECTED:
            axes.plot(*place, marker="*", markersize=11, color=style.ALARM)
    for node, place in enumerate(NODES):
        if node in hidden:
            continue
        colour, marker = style.class_look(CLASSES[node])
        axes.plot(*place, marker=marker, markersize=9, color=colour, markeredgecolor="white")
        if node in wrong:
            axes.plot(*place, marker="x", markersize=8, color=style.INK, markeredgewidth=1.6)
    if target:
        axes.plot(*NODES[4], marker="o", markersize=16, markerfacecolor="none", markeredgecolor=style.INK)


def draw_framework() -> Figure:
    """From a dataset to a leaderboard: who sees what, who makes what, and who checks it."""
    boxes = {
        "dataset": (0.02, 0.42, "dataset\ngraph, features,\nlabels, splits"),
        "defense": (0.27, 0.74, "defense\ntrains a model"),
        "attack": (0.27, 0.10, "attack\nmakes an edit"),
        "evaluator": (0.52, 0.42, "evaluator\ncounts the edit,\nasks the model"),
        "store": (0.77, 0.42, "store\none record per\nscore, with keys"),
        "board": (0.77, 0.02, "leaderboard\nranks, intervals,\nworst case"),
    }
    arrows = (
        ("dataset", "defense", "without test nodes"),
        ("dataset", "attack", "without test labels"),
        ("defense", "evaluator", "model"),
        ("attack", "evaluator", "edit"),
        ("evaluator", "store", "score"),
        ("store", "board", ""),
    )
    with style.styled():
        from matplotlib.figure import Figure
        from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

        figure = Figure(figsize=(style.PAGE, 2.7), layout="constrained")
        axes = figure.subplots()
        axes.set_axis_off()
        axes.set(xlim=(0, 1), ylim=(-0.02, 1.02))
        wide, high = 0.2, 0.24
        for number, (x, y, words) in enumerate(boxes.values()):
            colour = style.COLOURS[number % len(style.COLOURS)]
            axes.add_patch(
                FancyBboxPatch(
                    (x, y), wide, high, boxstyle="round,pad=0.004", facecolor="white", edgecolor=colour, linewidth=1.4
                )
            )
            head, _, rest = words.partition("\n")
            axes.text(x + wide / 2, y + high - 0.05, head, ha="center", va="center", fontweight="bold")
            axes.text(x + wide / 2, y + 0.085, rest, ha="center", va="center", fontsize=7)
        for start, end, label in arrows:
            one, other = _sides(boxes[start][:2], boxes[end][:2], wide, high)
            axes.add_patch(FancyArrowPatch(one, other, **ARROW))
            level, rising = one[1] == other[1], one[1] < other[1]
            x, y = (one[0] + other[0]) / 2, (one[1] + other[1]) / 2
            up = 0.03 if level or rising else -0.03
            look: Any = {"ha": "center" if level else "right", "va": "bottom" if up > 0 else "top", "fontsize": 6.5}
            axes.text(x if level else x - 0.012, y + up, label, **look)
        figure.suptitle("How a score is made: nobody polices himself")
        return figure


def _sides(one: Point, other: Point, wide: float, high: float) -> tuple[Point, Point]:
    """Where an arrow leaves a box and where it meets the next one."""
    if abs(one[0] - other[0]) < wide / 2:  # below each other
        return (one[0] + wide / 2, one[1] - 0.01), (other[0] + wide / 2, other[1] + high + 0.01)
    return (one[0] + wide + 0.008, one[1] + high / 2), (other[0] - 0.008, other[1] + high / 2)


def draw_layer_norm() -> Figure:
    r"""What layer normalisation does to a node whose features an attacker blew up.

    Every row is centred and scaled, :math:`\hat h = (h - \mu) / \sigma` over its own entries, so that a row with entries many
    times larger speaks no louder than the others. The numbers are worked out here.
    """
    rows = np.array([[0.2, 0.5, -0.3, 0.1], [0.4, 0.1, -0.2, -0.1], [9.0, -8.0, 7.0, -9.0]])
    scaled = (rows - rows.mean(1, keepdims=True)) / rows.std(1, keepdims=True)
    with style.styled():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(style.PAGE, 2.3), layout="constrained")
        panels = figure.subplots(1, 3, width_ratios=(1, 1, 0.9))
        names = ("node", "node", "injected")
        for axes, table, title in zip(panels, (rows, scaled), ("hidden rows", "after layer norm")):
            reach = float(np.abs(table).max())
            axes.imshow(table, cmap="RdBu", vmin=-reach, vmax=reach, aspect="auto")
            axes.grid(False)
            axes.set_xticks([])
            axes.set_yticks(range(len(names)), names)
            for (row, column), value in np.ndenumerate(table):
                ink = "white" if abs(value) > 0.6 * reach else style.INK
                axes.text(column, row, f"{value:.1f}", ha="center", va="center", fontsize=7, color=ink)
            axes.set_title(title, loc="left", fontweight="bold")
        lengths = [np.linalg.norm(table, axis=1) for table in (rows, scaled)]
        for number, (own, label) in enumerate(zip(lengths, ("before", "after"))):
            share = 100 * own / own.sum()
            places = np.arange(len(share)) + 0.2 * (2 * number - 1)
            panels[2].barh(places, share, height=0.36, color=style.COLOURS[5 if number == 0 else 0], label=label)
        panels[2].set_yticks(range(len(names)), names)
        panels[2].invert_yaxis()
        panels[2].set_xlim(0, 100)
        panels[2].set_xlabel("share of what is heard (%)")
        panels[2].grid(axis="y", visible=False)
        panels[2].legend(loc="upper right")
        figure.suptitle("Layer normalisation: a loud neighbour speaks no louder than the others")
        return figure
