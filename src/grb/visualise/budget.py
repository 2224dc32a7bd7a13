"""Effect of the limits on models and on attacks (Figures 8 and 9 of the GRB paper), from a recipe with a sweep."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grb.errors import DataError
from grb.evaluator.board import CLEAN, Board, Estimate, estimate_of
from grb.visualise import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABEL = re.compile(r"(?P<attack>.+) (?P<limit>[a-z_]+)=(?P<value>[0-9.]+(?:e[+-]?[0-9]+)?)")

Series = dict[str, dict[float, Estimate]]


@dataclass(frozen=True)
class Sweep:
    """How accuracy falls with one limit.

    Args:
        dataset: Where it was measured.
        difficulty: Difficulty.
        limit: Which limit is varied, e.g. ``nodes``.
        models: ``[defense][value]`` to its accuracy, the mean over attacks.
        attacks: ``[attack][value]`` to the accuracy that it leaves, the mean over defenses.
        clean: Accuracy of every defense without an attack.
    """

    dataset: str
    difficulty: str
    limit: str
    models: Series
    attacks: Series
    clean: dict[str, float]


def split_label(label: str) -> tuple[str, str, float] | None:
    """Attack, limit and value of a swept attack's label; None for any other.

    >>> split_label("fgsm nodes=20"), split_label("fgsm")
    (('fgsm', 'nodes', 20.0), None)
    """
    match = LABEL.fullmatch(label)
    return None if match is None else (match["attack"], match["limit"], float(match["value"]))


def sweeps(board: Board, difficulty: str | None = None) -> list[Sweep]:
    """The data of :func:`draw_models` and :func:`draw_attacks`: one sweep per limit that the board varies."""
    difficulty = difficulty or board.difficulties[-1]
    points: dict[str, dict[float, list[str]]] = defaultdict(lambda: defaultdict(list))
    for label in board.attacks:
        parts = split_label(label)
        if parts is not None:
            points[parts[1]][parts[2]].append(label)
    if not points:
        raise DataError(f"the board of {board.dataset} varies no limit; a recipe with 'sweep' does")
    clean = {
        defense: cell.score.mean
        for defense in board.defenses
        if (cell := board.cell(CLEAN, defense, difficulty)) is not None
    }
    return [
        Sweep(
            board.dataset,
            difficulty,
            limit,
            _models(board, difficulty, values),
            _attacks(board, difficulty, values),
            clean,
        )
        for limit, values in points.items()
    ]


def _models(board: Board, difficulty: str, values: Mapping[float, list[str]]) -> Series:
    found: Series = {}
    for defense in board.defenses:
        own = {value: _mean_over(board, labels, defense, difficulty) for value, labels in sorted(values.items())}
        kept = {value: mean for value, mean in own.items() if mean is not None}
        if kept:
            found[defense] = kept
    return found


def _mean_over(board: Board, labels: list[str], defense: str, difficulty: str) -> Estimate | None:
    """Accuracy of a defense, run by run the mean over attacks; only runs that every attack has."""
    cells = [board.cell(label, defense, difficulty) for label in labels]
    runs = [cell.values for cell in cells if cell is not None and cell.values]
    if len(runs) < len(labels):
        return None
    count = min(len(values) for values in runs)
    means = np.mean([values[:count] for values in runs], axis=0)
    return estimate_of({(0, run): float(mean) for run, mean in enumerate(means)})


def _attacks(board: Board, difficulty: str, values: Mapping[float, list[str]]) -> Series:
    found: Series = defaultdict(dict)
    for value, labels in sorted(values.items()):
        for label in labels:
            parts = split_label(label)
            own = board.by_attack.get(difficulty, {}).get(label, {}).get("average")
            if parts is not None and own is not None:
                found[parts[0]][value] = own
    return dict(found)


def draw_models(data: list[Sweep], *, title: str | None = None) -> Figure:
    """One panel per limit, one line per model: accuracy, mean over attacks (Figure 8)."""
    return _draw(data, "models", "accuracy, mean over attacks (%)", title or "Effect of the limits on models")


def draw_attacks(data: list[Sweep], *, title: str | None = None) -> Figure:
    """One panel per limit, one line per attack: accuracy that it leaves, mean over defenses (Figure 9)."""
    return _draw(data, "attacks", "accuracy, mean over models (%)", title or "Effect of the limits on attacks")


def _draw(data: list[Sweep], side: str, label: str, title: str) -> Figure:
    with style.styled():
        from matplotlib.figure import Figure

        wide = len(data) > 1
        figure = Figure(figsize=(style.PAGE if wide else style.COLUMN, 2.7), layout="constrained")
        panels = figure.subplots(1, len(data), sharey=True, squeeze=False)[0]
        for axes, sweep in zip(panels, data):
            series: Series = getattr(sweep, side)
            for number, (name, values) in enumerate(series.items()):
                colour, marker = style.class_look(number)
                at, heights = list(values), [100 * value.mean for value in values.values()]
                bars = [100 * value.std for value in values.values()]
                axes.errorbar(
                    at, heights, yerr=bars, color=colour, marker=marker, markersize=3.5, elinewidth=0.8, label=name
                )
            axes.set_xlabel(sweep.limit.replace("_", " "))
        panels[0].set_ylabel(label)
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="is_submission lower center", ncols=min(6 if wide else 3, len(labels)))
        figure.suptitle(f"{title}, {data[0].dataset}, {data[0].difficulty}")
        return figure
