"""How a search for settings went: every trial, the best so far, and the values behind the scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from grb.errors import DataError
from grb.visualise import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Searched(Protocol):
    """What a finished search offers; :class:`grb.automl.TuningResult` does."""

    @property
    def name(self) -> str:
        """Name of what was tuned."""

    @property
    def trials(self) -> Sequence[Any]:
        """All trials, with ``values`` and ``score``."""

    @property
    def so_far(self) -> Sequence[float]:
        """Best score after every trial."""


@dataclass(frozen=True)
class Search:
    """Data of :func:`draw_search`.

    Args:
        name: Name of what was tuned.
        scores: Score of every trial; NaN for one that was given up.
        best: Best score after every trial.
        values: Value of every setting in every trial, a number or a text.
    """

    name: str
    scores: tuple[float, ...]
    best: tuple[float, ...]
    values: dict[str, tuple[Any, ...]]


def search(found: Searched) -> Search:
    """Return the data of :func:`draw_search` from a finished search."""
    if not found.trials:
        raise DataError("a search without trials has no figure")
    names = sorted({name for each in found.trials for name in each.values})
    return Search(
        found.name,
        tuple(math.nan if each.score is None else each.score for each in found.trials),
        tuple(found.so_far),
        {name: tuple(each.values.get(name) for each in found.trials) for name in names},
    )


def draw_search(data: Search) -> Figure:
    """Draw scores by trial with the best so far, then scores by the value of every setting."""
    with style.styled():
        from matplotlib.figure import Figure

        count = 1 + len(data.values)
        columns = min(count, 3)
        rows = -(-count // columns)
        figure = Figure(figsize=(style.PAGE, 2.1 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).flatten()
        trials = range(1, len(data.scores) + 1)
        axes[0].scatter(trials, data.scores, s=9, color=style.COLOURS[0], label="trial")
        axes[0].step(trials, data.best, where="post", color=style.COLOURS[5], label="best so far")
        axes[0].set_xlabel("trial")
        axes[0].set_ylabel("score")
        axes[0].legend()
        for axis, (name, values) in zip(axes[1:], data.values.items(), strict=False):
            numeric = all(isinstance(value, int | float) for value in values if value is not None)
            shown = (
                [math.nan if value is None else value for value in values]
                if numeric
                else [str(each) for each in values]
            )
            axis.scatter(shown, data.scores, s=9, color=style.COLOURS[0])
            axis.set_xlabel(name)
            if numeric and min(map(float, shown)) > 0 and max(map(float, shown)) / min(map(float, shown)) > 50:
                axis.set_xscale("log")
        for axis in axes[count:]:
            axis.remove()
        figure.suptitle(f"Search for settings of {data.name}")
        return figure
