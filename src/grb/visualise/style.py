"""The look of all figures: readable at the width of a paper's column, and without distinguishing colours."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from grb.atomic import write_atomic
from grb.errors import DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")
COLUMN, PAGE = 3.4, 7.0
"""Inches: one column of a two-column paper, and both."""

# Okabe and Ito's palette without black and yellow, which is too pale for thin lines on white, and Tol's wine
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#882255")
# one more than colours, so that 56 classes differ in at least one of the two
MARKERS = ("o", "s", "^", "D", "v", "p", "h", "P")
INK, GREY, PALE = "#1a1a1a", "#8c8c8c", "#c8c8c8"
ALARM = "#D55E00"
# marks of what a defense keeps, the same as on the leaderboard's page: shape and colour
CLEAN_MARK: Mapping[str, Any] = {"marker": "o", "color": INK, "markerfacecolor": "white"}
TRANSFER_MARK: Mapping[str, Any] = {"marker": "D", "color": "#0b5cad"}
WORST_MARK: Mapping[str, Any] = {"marker": "o", "color": "#b3261e"}

RC: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same figure everywhere
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "figure.titlesize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.7,
    "axes.labelcolor": INK,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.3,
    "legend.frameon": False,
    "savefig.dpi": 300,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "grb",  # the same ids, hence the same bytes, in every run
    "pdf.fonttype": 42,
}
# without the date and the version of the writer: the same figure is the same file
METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def class_look(label: int) -> tuple[str, str]:
    """Colour and marker of a class.

    >>> class_look(0) != class_look(7)
    True
    """
    return COLOURS[label % len(COLOURS)], MARKERS[label % len(MARKERS)]


def error_bar(value: Any, scale: float = 1.0) -> Any:
    """Lengths below and above a mean for matplotlib, [2, 1]: its 95 % interval, clipped to shares; None if it has none."""
    if value.low is None or value.high is None:
        return None
    low, high = max(value.low, 0.0), min(value.high, 1.0)
    return [[scale * max(value.mean - low, 0.0)], [scale * max(high - value.mean, 0.0)]]


@contextmanager
def styled() -> Iterator[None]:
    """The settings above, inside only; those of the user come back."""
    import matplotlib

    with matplotlib.rc_context(RC):
        yield


def percentages(
    data: Mapping[str, T],
    draw: Callable[[Any, str, T, Mapping[str, Any]], None],
    *,
    xlabel: str,
    ylabel: str,
    title: str | None = None,
) -> Figure:
    """Percentages of several models in one panel, with their names beside it.

    Args:
        data: What to draw, by name.
        draw: Draws one of them, with its colour and marker as the last argument.
        xlabel: Below the panel.
        ylabel: Left of the panel.
        title: Above the panel.
    """
    with styled():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(PAGE, 3.2), layout="constrained")
        axes = figure.subplots()
        for number, (name, each) in enumerate(data.items()):
            colour, marker = class_look(number)
            draw(axes, name, each, {"color": colour, "marker": marker, "markersize": 2.5})
        axes.set_ylim(0, 100)
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel)
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), ncols=1 + (len(data) > 10))
        if title:
            axes.set_title(title)
        return figure


def save(figure: Figure, path: str | os.PathLike[str], *, dpi: float | None = None) -> Path:
    """Write a figure as PNG, SVG or PDF, as the name ends; whole or not at all.

    The same figure gives the same bytes with the same version of matplotlib.

    Args:
        dpi: Dots per inch of a PNG, 300 if not given.
    """
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    if kind not in METADATA:
        raise DataError(f"{path} ends with '{path.suffix}', but .png, .svg or .pdf is needed")

    def write(stream: IO[bytes]) -> None:
        with styled():
            figure.savefig(stream, format=kind, metadata=METADATA[kind], dpi=dpi or RC["savefig.dpi"])

    return write_atomic(path, write)
