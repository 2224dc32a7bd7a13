"""How an attack went: its loss and the share of targets that keep their clean label, step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from grb.errors import DataError
from grb.visualise import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HALO = {"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.8}


class Stepped(Protocol):
    """One step of an attack, as :class:`grb.attack.base.Step`."""

    @property
    def loss(self) -> float:
        """Value of the attack's loss."""
        ...

    @property
    def accuracy(self) -> float:
        """Fraction of targets that keep their clean label."""
        ...


@dataclass(frozen=True)
class Curve:
    """Loss and kept labels of the steps of an attack.

    Args:
        loss: What the attack raises; NaN where it was not finite.
        kept: Fraction of targets that the attacked model still gives the label it gave them on the clean graph.
        total: Number of steps, of which these are evenly spaced ones; as many as there are values if 0.
    """

    loss: tuple[float, ...]
    kept: tuple[float, ...]
    total: int = 0

    @property
    def steps(self) -> tuple[int, ...]:
        """Number of every step shown, the first is 1."""
        count = len(self.loss)
        stride = (max(self.total, count) - 1) / max(count - 1, 1)
        return tuple(round(index * stride) + 1 for index in range(count))

    @property
    def lowest(self) -> int:
        """The first step with the fewest kept labels."""
        return self.steps[self.kept.index(min(self.kept))]


def curve(steps: Sequence[Stepped]) -> Curve:
    """The data of :func:`draw_curve` from the steps of an attack's result.

    >>> from grb.attack import Step
    >>> curve([Step(0.5, 1.0), Step(0.75, 0.25), Step(0.5, 0.25)]).lowest
    2
    """
    if not steps:
        raise DataError("an attack without steps has no curve")
    loss = tuple(step.loss if math.isfinite(step.loss) else math.nan for step in steps)
    return Curve(loss, tuple(step.accuracy for step in steps))


def draw_curve(data: Curve, *, title: str | None = None) -> Figure:
    """Two panels over the steps: the loss above, the share of clean labels kept below, its lowest point marked."""
    with style.styled():
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator

        figure = Figure(figsize=(style.COLUMN, 3.0), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        # a single step is a point, which a line would not show
        dots = "o" if len(data.loss) == 1 else None
        above.plot(data.steps, data.loss, color=style.COLOURS[0], marker=dots, markersize=3)
        above.set_ylabel("loss")
        kept = [100 * share for share in data.kept]
        below.plot(data.steps, kept, color=style.COLOURS[5], marker=dots, markersize=3)
        below.set_ylabel("clean labels kept (%)")
        below.set_xlabel("step")
        below.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, min_n_ticks=1))
        _mark_lowest(below, data)
        if title:
            figure.suptitle(title)
        figure.align_ylabels()
        return figure


def _mark_lowest(axes: Axes, data: Curve) -> None:
    value = 100 * min(data.kept)
    axes.plot(data.lowest, value, marker="o", markersize=4, color=style.INK, linestyle="none", clip_on=False)
    # in the corner that a falling curve leaves free
    said = f"lowest {value:.1f} at step {data.lowest}"
    axes.text(1, 1, said, transform=axes.transAxes, ha="right", va="top", fontsize=7, bbox=HALO)
