"""Accuracy over the number of queries that an attacker has, from a recipe that sweeps it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grb.errors import DataError
from grb.evaluator.board import CLEAN, Board, Estimate
from grb.visualise import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class QueryCurve:
    """What one defense keeps under one attack that asks it, by the number of queries.

    Args:
        attack: The attack.
        defense: The defense.
        difficulty: Difficulty.
        points: Accuracy by number of queries, ascending; 0 is the clean graph.
    """

    attack: str
    defense: str
    difficulty: str
    points: dict[int, Estimate]


def query_curves(boards: Sequence[Board], difficulty: str | None = None) -> list[QueryCurve]:
    """The data of :func:`draw_query_curves`, by attack and defense in the order of the boards.

    Args:
        boards: The boards of one study, one for every number of queries.
        difficulty: Which targets; the last of the boards if not given.
    """
    swept = sorted(
        (board for board in boards if board.limit is not None and board.limit[0] == "queries"),
        key=lambda board: board.limit[1] if board.limit is not None else 0.0,
    )
    found: dict[tuple[str, str], dict[int, Estimate]] = {}
    for board in swept:
        assert board.limit is not None
        wanted = difficulty or board.difficulties[-1]
        for cell in board.cells:
            if cell.knowledge != "query" or cell.difficulty != wanted:
                continue
            points = found.setdefault((cell.attack, cell.defense), {})
            clean = board.cell(CLEAN, cell.defense, wanted)
            if clean is not None:
                points.setdefault(0, clean.score)
            points[int(board.limit[1])] = cell.score
    if not found:
        names = ", ".join(dict.fromkeys(board.dataset for board in boards)) or "nothing"
        raise DataError(
            f"the board of {names} has no attacks by queries at several numbers of them; a recipe with "
            "'sweep: {queries: [...]}' does"
        )
    used = difficulty or swept[-1].difficulties[-1]
    return [QueryCurve(attack, defense, used, points) for (attack, defense), points in found.items()]


def draw_query_curves(curves: Sequence[QueryCurve], *, title: str | None = None) -> Figure:
    """One panel per attack, one line per defense: accuracy with its interval over the number of queries."""
    if not curves:
        raise DataError("there are no curves to draw")
    attacks, defenses = (
        list(dict.fromkeys(getattr(curve, name) for curve in curves)) for name in ("attack", "defense")
    )
    with style.styled():
        from matplotlib.figure import Figure

        wide = len(attacks) > 1
        figure = Figure(figsize=(style.PAGE if wide else style.COLUMN, 2.7), layout="constrained")
        panels = figure.subplots(1, len(attacks), sharey=True, squeeze=False)[0]
        for curve in curves:
            axes = panels[attacks.index(curve.attack)]
            colour, marker = style.class_look(defenses.index(curve.defense))
            heights = [100 * value.mean for value in curve.points.values()]
            axes.plot(list(curve.points), heights, color=colour, marker=marker, markersize=3.5, label=curve.defense)
            for at, value in curve.points.items():
                axes.errorbar(at, 100 * value.mean, yerr=style.error_bar(value, 100), color=colour, elinewidth=0.8)
        most = max(max(curve.points) for curve in curves)
        for axes, attack in zip(panels, attacks, strict=True):
            # the clean graph is at 0, which a logarithm has no place for
            axes.set_xscale("symlog", linthresh=max(1, min(n for curve in curves for n in curve.points if n) or 1))
            axes.set_xlim(0, 1.1 * most)
            axes.set_xlabel("queries")
            axes.set_title(attack)
        panels[0].set_ylabel("accuracy (%)")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(6 if wide else 3, len(labels)))
        figure.suptitle(title or f"Accuracy over queries, {curves[0].difficulty}")
        return figure
