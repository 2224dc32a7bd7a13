"""What an ensemble of attacks gains with every second: labels kept under its strongest edit so far, over CPU time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from grb.errors import DataError
from grb.visualise import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class CostCurve:
    """The strongest edit so far after every trial of one race.

    Args:
        seconds: CPU seconds spent, ascending.
        kept: Lowest fraction of targets that kept their label by then.
    """

    seconds: tuple[float, ...]
    kept: tuple[float, ...]


def strength_over_cost(trials: Sequence[Mapping[str, Any]]) -> CostCurve:
    """The data of :func:`draw_strength_over_cost` from the trials of a record, as JSON holds them.

    >>> strength_over_cost([{"cpu_seconds": 1.0, "kept": 0.5}, {"cpu_seconds": 2.0, "kept": 0.75}])
    CostCurve(seconds=(1.0, 3.0), kept=(0.5, 0.5))
    """
    spent, lowest = 0.0, 1.0
    seconds, kept = [], []
    for trial in trials:
        spent += float(trial["cpu_seconds"])
        lowest = min(lowest, 1.0 if trial["kept"] is None else float(trial["kept"]))
        seconds.append(spent)
        kept.append(lowest)
    if not seconds:
        raise DataError("an attack without trials has no curve of strength over cost")
    return CostCurve(tuple(seconds), tuple(kept))


def draw_strength_over_cost(curves: Mapping[str, CostCurve], *, title: str | None = None) -> Figure:
    """One falling staircase for every victim over CPU seconds on a logarithmic axis, named at its end."""
    if not curves:
        raise DataError("there are no curves to draw")

    def draw(axes: Any, name: str, data: CostCurve, look: Mapping[str, Any]) -> None:
        # the clean graph costs nothing, which a logarithmic axis does not show
        shown = [(seconds, 100 * kept) for seconds, kept in zip(data.seconds, data.kept, strict=True) if seconds > 0]
        if shown:
            x, y = zip(*shown, strict=True)
            axes.step(x, y, where="post", label=name, **look)
        axes.set_xscale("log")

    return style.percentages(curves, draw, xlabel="CPU seconds", ylabel="labels kept (%)", title=title)
