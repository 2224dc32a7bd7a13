"""Drawings of what is certified and what attacks leave, over the budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

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
    with style.styled():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(style.PAGE, 3.2), layout="constrained")
        axes = figure.subplots()
        for number, (name, data) in enumerate(brackets.items()):
            colour, marker = style.class_look(number)
            low, high = ([100 * value for value in side] for side in (data.certified, data.attacked))
            axes.fill_between(data.budgets, low, high, color=colour, alpha=0.15, linewidth=0)
            axes.plot(data.budgets, high, color=colour, marker=marker, markersize=2.5, label=f"{name}: attacked")
            axes.plot(
                data.budgets, low, color=colour, marker=marker, markersize=2.5, ls="--", label=f"{name}: certified"
            )
        axes.set_ylim(0, 100)
        axes.set_xlabel(" or ".join(dict.fromkeys(data.unit for data in brackets.values())))
        axes.set_ylabel("accuracy (%)")
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
        if title:
            axes.set_title(title)
        return figure
