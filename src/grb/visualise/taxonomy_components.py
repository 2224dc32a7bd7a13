"""Figures of a taxonomy: principal components with their loadings, and correlations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grb.taxonomy import FEATURES, Components, Correlation
from grb.visualise import style
from grb.visualise.taxonomy import DIVERGING, group_colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
Box = tuple[float, float, float, float]

LETTERS = 6.0
# width and height of a letter in shares of the font size, and where a label may stand around its point, in points
WIDE, TALL = 0.58, 1.1
NEAR = 5.0
LEADER: Any = {"arrowstyle": "-", "color": style.GREY, "linewidth": 0.4, "shrinkA": 0, "shrinkB": 2}
MOST_NAMED = 8
"""With more groups, a legend would only repeat the names at the points."""
PLACES = [
    (side * reach, lift * reach)
    for reach in (NEAR, 9.0, 14.0, 20.0)
    for side in (1, -1)
    for lift in (0.0, 0.7, -0.7, 1.4, -1.4)
]


def draw_components(data: Components, groups: Sequence[str] = (), *, title: str | None = None) -> Figure:
    """The rows in the plane of the first two components, and below the loadings of both (Figures 3 and D.1).

    Args:
        data: Components of profiles, or of classical properties.
        groups: Group of every row, for colour and marker.
        title: Above the figure.
    """
    with style.styled():
        from matplotlib.figure import Figure

        count = min(2, data.scores.shape[1])
        figure = Figure(figsize=(style.PAGE, 5.6), layout="constrained")
        layout = figure.add_gridspec(2, count, height_ratios=[3.6, 1.15])
        above = figure.add_subplot(layout[0, :])
        _draw_scores(above, data, tuple(groups))
        for place in range(count):
            _draw_loadings(figure.add_subplot(layout[1, place]), data, place)
        if title:
            figure.suptitle(title)
        return figure


def _draw_scores(axes: Axes, data: Components, groups: tuple[str, ...]) -> None:
    x = data.scores[:, 0]
    y = data.scores[:, 1] if data.scores.shape[1] > 1 else np.zeros(len(x))
    looks = group_colours(groups)
    owners = groups or ("",) * len(x)
    for group in [*looks] or [""]:
        own = [place for place, owner in enumerate(owners) if owner == group]
        colour, marker = looks.get(group, style.class_look(0))
        label = group or None
        axes.plot(x[own], y[own], linestyle="none", marker=marker, markersize=5, color=colour, label=label, zorder=3)
    for set_limits, values in ((axes.set_xlim, x), (axes.set_ylim, y)):
        reach = 0.12 * (np.ptp(values) or 1.0)
        set_limits(values.min() - reach, values.max() + reach)
    axes.set_xlabel(_axis(data, 0))
    axes.set_ylabel(_axis(data, 1) if data.scores.shape[1] > 1 else "no second component")
    # the size of the axes in points, near enough to keep labels apart
    size = (72 * 6.2, 72 * 3.4)
    for name, point, (dx, dy) in zip(data.rows, zip(x, y), label_offsets(axes, data.rows, x, y, size)):
        axes.annotate(
            name,
            point,
            xytext=(dx, dy),
            textcoords="offset points",
            ha="left" if dx > 0 else "right",
            va="center",
            fontsize=LETTERS,
            zorder=4,
            in_layout=False,
            arrowprops=LEADER if max(abs(dx), abs(dy)) > NEAR else None,
        )
    if 1 < len(looks) <= MOST_NAMED:
        axes.legend(loc="best", handletextpad=0.2, borderpad=0.2)


def _axis(data: Components, place: int) -> str:
    return f"PC{place + 1} ({100 * data.explained[place]:.1f} % of the variance)"


def label_offsets(
    axes: Axes, names: Sequence[str], x: Array, y: Array, size: tuple[float, float]
) -> list[tuple[float, float]]:
    """Where to write every name, in points from its point, such that few names meet others or points.

    Crowded points choose first; each takes the place with the least overlap, near places before far ones.
    """
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    at = np.column_stack([(x - left) / (right - left) * size[0], (y - low) / (high - low) * size[1]])
    apart = np.linalg.norm(at[:, None] - at[None], axis=2)
    crowd = np.sort(apart, axis=1)[:, 1 : min(4, len(at))].sum(1)
    boxes: list[Box] = [(px - 3, py - 3, px + 3, py + 3) for px, py in at]
    found: dict[int, tuple[float, float]] = {}
    for place in np.argsort(crowd, kind="stable"):
        wide, tall = WIDE * LETTERS * len(names[place]), TALL * LETTERS
        options = [_label_box(at[place], offset, wide, tall) for offset in PLACES]
        costs = [
            sum(_overlap(box, other) for other in boxes) + _outside(box, size) + 0.02 * rank
            for rank, box in enumerate(options)
        ]
        best = int(np.argmin(costs))
        found[int(place)] = PLACES[best]
        boxes.append(options[best])
    return [found[place] for place in range(len(names))]


def _label_box(at: Array, offset: tuple[float, float], wide: float, tall: float) -> Box:
    start = at[0] + offset[0] - (0 if offset[0] > 0 else wide)
    middle = at[1] + offset[1]
    return float(start), float(middle - tall / 2), float(start + wide), float(middle + tall / 2)


def _overlap(one: Box, two: Box) -> float:
    wide = min(one[2], two[2]) - max(one[0], two[0])
    tall = min(one[3], two[3]) - max(one[1], two[1])
    return max(wide, 0.0) * max(tall, 0.0)


def _outside(box: Box, size: tuple[float, float]) -> float:
    """A name that leaves the axes costs as much as one that lies on another."""
    over = max(0.0, -box[0]) + max(0.0, box[2] - size[0]) + max(0.0, -box[1]) + max(0.0, box[3] - size[1])
    return 10 * over


def _draw_loadings(axes: Axes, data: Components, place: int) -> None:
    weights = data.loadings[place]
    colours = [style.COLOURS[1] if name in FEATURES else style.COLOURS[0] for name in data.columns]
    hatches = ["///" if name in FEATURES else "" for name in data.columns]
    axes.bar(range(len(weights)), weights, color=colours, hatch=hatches, edgecolor="white", linewidth=0)
    axes.axhline(0, color=style.INK, linewidth=0.8)
    axes.set_xticks(range(len(weights)), data.columns, rotation=60, ha="right", rotation_mode="anchor", fontsize=6)
    axes.tick_params(axis="x", length=0, pad=2)
    axes.grid(axis="x", visible=False)
    axes.set_axisbelow(True)
    if place == 0 and any(hatches):
        axes.text(
            1, 1, "hatched: perturbs node features", transform=axes.transAxes, ha="right", va="bottom", fontsize=6
        )
    axes.set_xlim(-0.7, max(len(weights), 4) - 0.3)
    axes.set_ylim(-1, 1)
    axes.set_ylabel(f"loading on PC{place + 1}", fontsize=7)


def draw_correlation(data: Correlation, *, over: str = "cells", title: str | None = None) -> Figure:
    """Pearson's r of every pair as a coloured and written matrix (Figures 5 and B.2), ``over`` some datasets or cells."""
    with style.styled():
        import matplotlib
        from matplotlib.figure import Figure

        count = len(data.names)
        side = max(2.2, 1.2 + 0.34 * count)
        figure = Figure(figsize=(side, side), layout="constrained")
        axes = figure.subplots()
        colours = matplotlib.colormaps[DIVERGING].with_extremes(bad=style.PALE)
        image = axes.imshow(data.r, cmap=colours, vmin=-1, vmax=1)
        axes.grid(False)
        axes.set_xticks(range(count), data.names, rotation=45, ha="left", rotation_mode="anchor")
        axes.set_yticks(range(count), data.names)
        axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0, pad=2)
        for spine in axes.spines.values():
            spine.set_visible(False)
        for (row, column), value in np.ndenumerate(data.r):
            label = "–" if np.isnan(value) else f"{value:.2f}".replace("0.", ".")
            ink = "white" if abs(value) > 0.6 else style.INK
            axes.text(column, row, label, ha="center", va="center", fontsize=6, color=ink, in_layout=False)
        bar = figure.colorbar(image, ax=axes, location="bottom", fraction=0.035, pad=0.02, aspect=40)
        bar.ax.tick_params(length=2, labelsize=6, pad=1)
        bar.set_label(f"Pearson's r over {data.cells} {over}", fontsize=6.5, labelpad=1)
        bar.outline.set_visible(False)
        if title:
            figure.suptitle(title)
        return figure
