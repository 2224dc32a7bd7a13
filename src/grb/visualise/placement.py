"""Figures of placing a dataset: its profile with intervals among the published ones, and how reliable stated groups are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from grb.taxonomy import PAPER_ORDER, Placement, Reliability, published
from grb.visualise import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_placement(found: Placement) -> Figure:
    """The profile of a dataset with its intervals, over the published datasets and the mean of its group.

    Args:
        found: The placement.
    """
    names = sorted(
        (mark.perturbation for mark in found.marks),
        key=lambda name: (PAPER_ORDER.index(name) if name in PAPER_ORDER else len(PAPER_ORDER), name),
    )
    marks = {mark.perturbation: mark for mark in found.marks}
    table = published(found.reference).models[found.model].select(perturbations=names)
    rows = np.arange(len(names))
    group = found.group or f"{found.nearest.group}, the nearest one's"
    with style.styled():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(0.75 * style.PAGE, 1.3 + 0.26 * len(names)), layout="constrained")
        axes = figure.subplots()

        def marks_at(x: Any, y: Any, marker: str, size: float, **look: Any) -> None:
            axes.plot(x, y, linestyle="none", marker=marker, markersize=size, **look)

        for j in range(len(names)):
            values = 100 * table.ratio[:, j]
            others = f"{len(values)} published datasets" if j == 0 else None
            marks_at(values, np.full(len(values), rows[j]), "|", 9, color=style.PALE, label=others, zorder=1)
        own = [marks[name] for name in names]
        means = [100 * mark.group for mark in own]
        hollow = {"markerfacecolor": "white", "color": style.COLOURS[1]}
        marks_at(means, rows, "s", 4, label=f"mean of {group}", zorder=2, **hollow)
        for j, mark in enumerate(own):
            if mark.low is not None and mark.high is not None:
                axes.plot([100 * mark.low, 100 * mark.high], [rows[j]] * 2, color=style.COLOURS[0], zorder=3)
        ratios = [100 * mark.ratio for mark in own]
        label = found.dataset if own and own[0].low is None else f"{found.dataset}, 95 % interval"
        marks_at(ratios, rows, "o", 4.5, color=style.COLOURS[0], label=label, zorder=4)
        axes.axvline(100, color=style.GREY, linewidth=0.7, zorder=0)
        axes.set_yticks(rows, names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlabel("AUROC in % of the unperturbed dataset's")
        axes.set_title(title_of(found), loc="left")
        axes.grid(axis="y", visible=False)
        figure.legend(loc="outside lower center", ncols=3, handletextpad=0.3, columnspacing=1.2)
    return figure


def title_of(found: Placement) -> str:
    """The answer in a few words."""
    if found.group is None:
        return f"{found.dataset} fits nowhere (nearest: {found.nearest.dataset}, {found.nearest.distance:.2f} away)"
    return f"{found.dataset}: {found.group} with {100 * found.probability[found.group]:.0f} %"


def draw_reliability(curves: Sequence[Reliability], title: str = "") -> Figure:
    """Reliability curves: how many of the groups stated with some probability are right, by setting.

    Args:
        curves: One for every setting.
        title: Title of the figure.
    """
    with style.styled():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(style.COLUMN, 3.2), layout="constrained")
        axes = figure.subplots()
        axes.plot([0, 100], [0, 100], color=style.GREY, linewidth=0.8, zorder=1)
        for number, curve in enumerate(curves):
            colour, marker = style.class_look(number)
            axes.plot(
                [100 * each.stated for each in curve.bins],
                [100 * each.right / each.cases for each in curve.bins],
                marker=marker,
                markersize=4,
                color=colour,
                label=f"{curve.setting} ({curve.count})",
                zorder=2,
            )
            for each in curve.bins:
                axes.annotate(
                    f"{each.right}/{each.cases}",
                    (100 * each.stated, 100 * each.right / each.cases),
                    xytext=(-5, -4 - 13 * number if each.high == 1 else -2),
                    textcoords="offset points",
                    ha="right",
                    va="top",
                    fontsize=6,
                    color=colour,
                )
        axes.set_xlim(30, 102)
        axes.set_ylim(0, 104)
        axes.set_xlabel("stated probability in %")
        axes.set_ylabel("right in %")
        axes.set_title(title, loc="left")
        axes.legend(loc="lower right")
    return figure
