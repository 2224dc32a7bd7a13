"""Figures of a taxonomy: the heat map with its dendrogram, and how stable the groups are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grb.errors import DataError
from grb.taxonomy import Analysis, Tree
from grb.visualise import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

# loss is red, gain is blue, white is no change: distinguishable with every common colour-vision deficiency
DIVERGING = "RdBu"
# AUROC runs from about .5 to 1, so that its ratio seldom leaves one half to two
LIMIT = 1.0
SLANTED: Any = {"rotation": 45, "ha": "left", "rotation_mode": "anchor"}
MOST_WRITTEN = 30
"""With more columns, the numbers in the cells could not be read."""


@dataclass(frozen=True, eq=False)
class Heatmap:
    """What :func:`draw_heatmap` shows, from top to bottom.

    Args:
        datasets: Rows; in leaf order if there is a tree.
        perturbations: Columns.
        log2_ratio: Colours, [d, p]; NaN is grey.
        original: Unperturbed AUROC, [d]; None if not known.
        groups: Group of every row; empty without groups.
        branches: Every merge as its two legs and its height: (y, x) of left foot, left top, right top, right foot;
            y counts rows from 0, x is the height. Empty without a tree.
        branch_groups: The group that a merge lies inside, or None above the cut.
    """

    datasets: tuple[str, ...]
    perturbations: tuple[str, ...]
    log2_ratio: Array
    original: Array | None
    groups: tuple[str, ...]
    branches: tuple[tuple[tuple[float, float], ...], ...]
    branch_groups: tuple[str | None, ...]


def heatmap(analysis: Analysis) -> Heatmap:
    """The data of Figures 4 and 6 of the paper; perturbations with missing cells are shown though the tree ignores them."""
    given = analysis.given
    names = analysis.tree.leaves if analysis.tree is not None else analysis.profiles.datasets
    shown = given.select(datasets=names)
    branches, owners = _branches(analysis.tree, analysis.groups) if analysis.tree is not None else ([], [])
    return Heatmap(
        datasets=tuple(names),
        perturbations=given.perturbations,
        log2_ratio=shown.values,
        original=shown.original,
        groups=tuple(analysis.groups[name] for name in names) if analysis.groups else (),
        branches=tuple(branches),
        branch_groups=tuple(owners),
    )


def _branches(tree: Tree, groups: Any) -> tuple[list[tuple[tuple[float, float], ...]], list[str | None]]:
    count = len(tree.datasets)
    place = {leaf: float(row) for row, leaf in enumerate(tree.order)}
    # (row, height) of the top of every node; leaves first
    tops = [(place[leaf], 0.0) for leaf in range(count)]
    owner: list[set[str]] = [{groups[name]} if groups else set() for name in tree.datasets]
    lines: list[tuple[tuple[float, float], ...]] = []
    for left, right, height, _ in tree.linkage:
        (a, low), (b, lower) = tops[int(left)], tops[int(right)]
        lines.append(((a, low), (a, float(height)), (b, float(height)), (b, lower)))
        tops.append(((a + b) / 2, float(height)))
        owner.append(owner[int(left)] | owner[int(right)])
    return lines, [next(iter(own)) if len(own) == 1 else None for own in owner[count:]]


def group_colours(groups: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """Colour and marker of every group, in the order of their names."""
    return {name: style.class_look(place) for place, name in enumerate(sorted(set(groups), key=_natural))}


def _natural(name: str) -> tuple[int, str]:
    return len(name), name


def draw_heatmap(data: Heatmap, *, title: str | None = None) -> Figure:
    """Dendrogram, names coloured by group, unperturbed AUROC, and the ratio of every cell in per cent."""
    with style.styled():
        import matplotlib
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        rows, columns = data.log2_ratio.shape
        width = min(12.0, max(style.PAGE, 2.4 + 0.36 * columns))
        figure = Figure(
            figsize=(width, 1.55 + 0.175 * rows), layout=ConstrainedLayoutEngine(w_pad=0.01, h_pad=0.02, wspace=0.0)
        )
        tree, side, cells = figure.subplots(1, 3, width_ratios=[0.16, 0.055, 0.785])
        _draw_tree(tree, data, rows)
        _draw_original(side, data, rows)
        colours = matplotlib.colormaps[DIVERGING].with_extremes(bad=style.PALE)
        image = cells.imshow(data.log2_ratio, cmap=colours, vmin=-LIMIT, vmax=LIMIT, aspect="auto")
        cells.set_xticks(range(columns), data.perturbations, **SLANTED)
        cells.set_yticks([])
        cells.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0, pad=2)
        _bare(cells)
        if columns <= MOST_WRITTEN:
            _write_cells(cells, data.log2_ratio)
        _separate([side, cells], data.groups)
        _colourbar(figure, image, cells)
        if title:
            figure.suptitle(title)
        return figure


def _draw_tree(axes: Axes, data: Heatmap, rows: int) -> None:
    from matplotlib.collections import LineCollection

    _bare(axes)
    axes.set_yticks([])
    axes.set_ylim(rows - 0.5, -0.5)
    if not data.branches:
        axes.set_axis_off()
        return
    looks = group_colours(data.groups)
    colours = [style.GREY if group is None else looks[group][0] for group in data.branch_groups]
    lines = [[(x, y) for y, x in branch] for branch in data.branches]
    axes.add_collection(LineCollection(lines, colors=colours, linewidths=1.1))
    highest = max(point[1] for branch in data.branches for point in branch) or 1.0
    axes.set_xlim(1.03 * highest, 0)
    axes.xaxis.set_major_locator(_few_ticks())
    axes.tick_params(axis="x", labelsize=6, pad=1)
    axes.set_xlabel("Ward's height", fontsize=6.5, labelpad=1)


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=3)


def _draw_original(axes: Axes, data: Heatmap, rows: int) -> None:
    import matplotlib

    _bare(axes)
    known = np.full((rows, 1), np.nan) if data.original is None else data.original[:, None]
    # white where nothing is known; grey means missing elsewhere
    colours = matplotlib.colormaps["Greys"].with_extremes(bad="white")
    axes.imshow(known, cmap=colours, vmin=0.4, vmax=1.6, aspect="auto")
    # the name of a group stands in front of its first dataset, as colour alone would not do
    first = [bool(data.groups) and (row == 0 or data.groups[row - 1] != data.groups[row]) for row in range(rows)]
    names = [f"[{data.groups[row]}] {name}" if first[row] else name for row, name in enumerate(data.datasets)]
    axes.set_yticks(range(rows), names)
    axes.tick_params(axis="y", length=0, pad=2)
    axes.set_xticks([0], ["AUROC"] if data.original is not None else [""], **SLANTED)
    axes.tick_params(axis="x", top=True, labeltop=True, bottom=False, labelbottom=False, length=0, pad=2)
    for row, value in enumerate(known[:, 0]):
        if np.isfinite(value):
            axes.text(0, row, f"{value:.2f}".lstrip("0"), ha="center", va="center", fontsize=6)
    looks = group_colours(data.groups)
    for label, group, bold in zip(axes.get_yticklabels(), data.groups, first):
        label.set_color(looks[group][0])
        label.set_fontweight("bold" if bold else "normal")


def _write_cells(axes: Axes, values: Array) -> None:
    # in_layout=False: the layout need not measure what lies inside a cell
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            # white letters where the colour is dark
            ink = "white" if abs(value) > 0.6 * LIMIT else style.INK
            percent = f"{100 * 2**value:.0f}"
            axes.text(column, row, percent, ha="center", va="center", fontsize=6, color=ink, in_layout=False)
        else:
            axes.text(column, row, "–", ha="center", va="center", fontsize=6, color=style.INK)


def _separate(panels: list[Axes], groups: tuple[str, ...]) -> None:
    for row in range(1, len(groups)):
        if groups[row] != groups[row - 1]:
            for axes in panels:
                axes.axhline(row - 0.5, color=style.INK, linewidth=0.8)


def _colourbar(figure: Figure, image: Any, axes: Axes | list[Axes]) -> None:
    bar = figure.colorbar(image, ax=axes, location="bottom", fraction=0.03, pad=0.01, aspect=50)
    ticks = [-1.0, -0.5, 0.0, 0.5, 1.0]
    bar.set_ticks(ticks, labels=[f"{100 * 2**tick:.0f} %" for tick in ticks])
    bar.ax.tick_params(length=2, labelsize=6, pad=1)
    bar.set_label("AUROC as a fraction of the unperturbed dataset's", fontsize=6.5, labelpad=1)
    bar.outline.set_visible(False)


def _bare(axes: Axes) -> None:
    axes.grid(False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def draw_stability(analysis: Analysis, *, title: str | None = None) -> Figure:
    """Agreement with the groups if something else had been chosen, one bar per variant and number of groups."""
    found = analysis.stability
    if found is None:
        raise DataError("these profiles have no groups, hence no stability to draw")
    with style.styled():
        from matplotlib.figure import Figure

        sizes = sorted(found.agreement)
        variants = list(found.agreement[sizes[0]])
        rows = np.arange(len(variants), dtype=float)
        figure = Figure(figsize=(style.PAGE / 2 + 0.6, 0.9 + 0.17 * len(variants)), layout="constrained")
        axes = figure.subplots()
        height = 0.8 / len(sizes)
        for place, size in enumerate(sizes):
            scores = [found.agreement[size][name] for name in variants]
            offset = (place - (len(sizes) - 1) / 2) * height
            colour = style.COLOURS[place % len(style.COLOURS)]
            axes.barh(rows + offset, scores, height=height * 0.9, color=colour, label=f"{size} groups")
        if found.bootstrap is not None:
            low, middle, high = np.quantile(found.bootstrap.agreement, [0.05, 0.5, 0.95])
            axes.axvspan(low, high, color=style.PALE, alpha=0.5, label="resampled runs, 5 to 95 %", zorder=0)
            axes.axvline(middle, color=style.GREY, linewidth=1)
        axes.set_yticks(rows, variants)
        axes.set_ylim(len(variants) - 0.4, -0.6)
        axes.axvline(0, color=style.INK, linewidth=0.8)
        axes.set_xlim(min(-0.12, min(min(own.values()) for own in found.agreement.values()) - 0.05), 1.05)
        axes.grid(axis="y", visible=False)
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(f"adjusted Rand index with {_whose(analysis)}")
        figure.legend(loc="outside lower center", ncols=3)
        if title:
            figure.suptitle(title)
        return figure


def _whose(analysis: Analysis) -> str:
    return "the groups shown" if analysis.known is None else "the known groups"
