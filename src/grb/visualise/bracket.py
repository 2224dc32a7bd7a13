"""Drawings of what is certified and what attacks leave, over the budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grb.errors import DataError
from grb.evaluator.bracket import Bracket, board_brackets, bracket
from grb.visualise import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Bracket", "board_brackets", "bracket", "draw_bracket"]


def draw_bracket(brackets: Mapping[str, Bracket], *, title: str | None = None) -> Figure:
    """A band for every model: certified below, attacked above, over the budget."""
    if not brackets:
        raise DataError("there are no brackets to draw")

    def draw(axes: Any, name: str, data: Bracket, look: Mapping[str, Any]) -> None:
        low, high = ([100 * value for value in side] for side in (data.certified, data.attacked))
        axes.fill_between(data.budgets, low, high, color=look["color"], alpha=0.15, linewidth=0)
        axes.plot(data.budgets, high, label=f"{name}: attacked", **look)
        axes.plot(data.budgets, low, ls="--", label=f"{name}: certified", **look)

    units = " or ".join(dict.fromkeys(data.unit for data in brackets.values()))
    return style.percentages(brackets, draw, xlabel=units, ylabel="accuracy (%)", title=title)
