"""Effect of the limits on models and on attacks (Figures 8 and 9 of the GRB paper), from a recipe with a sweep."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from grb.errors import DataError
from grb.evaluator.board import CLEAN, POOL, Board, Estimate, estimate_of
from grb.visualise import style
from grb.visualise.rankings import has_battery, worst_of, worst_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
        worst: ``[defense][value]`` to its worst case, where it was measured.
        battery: Whether that is of the whole battery.
    """

    dataset: str
    difficulty: str
    limit: str
    models: Series
    attacks: Series
    clean: dict[str, float]
    worst: dict[str, dict[float, float]] = field(default_factory=dict)
    battery: bool = False

    @property
    def lowest(self) -> dict[float, float]:
        """By value the mean worst case of all models that have one; only values at which all of them do."""
        values = dict.fromkeys(value for own in self.worst.values() for value in own)
        return {
            value: float(np.mean([own[value] for own in self.worst.values()]))
            for value in values
            if all(value in own for own in self.worst.values())
        }


def sweeps(boards: Sequence[Board], difficulty: str | None = None) -> list[Sweep]:
    """The data of :func:`draw_models` and :func:`draw_attacks`: one sweep per varied limit.

    Args:
        boards: The boards of one study, one for every value of a limit.
        difficulty: Which targets; the last of the boards if not given.
    """
    values: dict[str, dict[float, Board]] = defaultdict(dict)
    for board in boards:
        if board.limit is not None:
            values[board.limit[0]][board.limit[1]] = board
    if not values:
        names = ", ".join(dict.fromkeys(board.dataset for board in boards)) or "nothing"
        raise DataError(f"the board of {names} varies no limit; a recipe with 'sweep' does")
    return [_sweep(limit, dict(sorted(own.items())), difficulty) for limit, own in values.items()]


def _sweep(limit: str, boards: Mapping[float, Board], wanted: str | None) -> Sweep:
    first = next(iter(boards.values()))
    difficulty = wanted or first.difficulties[-1]
    models: Series = defaultdict(dict)
    attacks: Series = defaultdict(dict)
    worst: dict[str, dict[float, float]] = defaultdict(dict)
    for value, board in boards.items():
        for defense in board.defenses:
            lowest = worst_of(board.by_defense.get(difficulty, {}).get(defense, {}))
            if lowest is not None:
                worst[defense][value] = lowest.mean
            mean = _mean_over(board, defense, difficulty)
            if mean is not None:
                models[defense][value] = mean
        for attack in board.attacks:
            own = board.by_attack.get(difficulty, {}).get(attack, {}).get("average")
            if attack not in (CLEAN, POOL) and own is not None:
                attacks[attack][value] = own
    clean = {
        defense: cell.score.mean
        for defense in first.defenses
        if (cell := first.cell(CLEAN, defense, difficulty)) is not None
    }
    return Sweep(
        first.dataset,
        difficulty,
        limit,
        dict(models),
        dict(attacks),
        clean,
        dict(worst),
        any(map(has_battery, boards.values())),
    )


def _mean_over(board: Board, defense: str, difficulty: str) -> Estimate | None:
    """Score of a defense, run by run the mean over attacks; only runs that every attack has. The battery is no such attack."""
    names = [attack for attack in board.attacks if attack not in (CLEAN, POOL)]
    cells = [board.cell(attack, defense, difficulty) for attack in names]
    runs = [cell.values for cell in cells if cell is not None and cell.values]
    if not names or len(runs) < len(names):
        return None
    count = min(len(values) for values in runs)
    means = np.mean([values[:count] for values in runs], axis=0)
    return estimate_of({(0, run): float(mean) for run, mean in enumerate(means)})


def draw_models(data: list[Sweep], *, title: str | None = None) -> Figure:
    """One panel per limit, one line per model: accuracy, mean over attacks, and dotted the worst case (Figure 8)."""
    dotted = f"\ndotted: {worst_words(any(each.battery for each in data))}" if any(each.worst for each in data) else ""
    return _draw(data, "models", f"accuracy (%), mean over attacks{dotted}", title or "Effect of the limits on models")


def draw_attacks(data: list[Sweep], *, title: str | None = None) -> Figure:
    """One panel per limit, one line per attack: accuracy left, mean over defenses, and dotted the worst case (Figure 9)."""
    return _draw(data, "attacks", "accuracy (%), mean over models", title or "Effect of the limits on attacks")


def _draw(data: list[Sweep], side: str, label: str, title: str) -> Figure:
    with style.styled():
        from matplotlib.figure import Figure

        wide = len(data) > 1
        figure = Figure(figsize=(style.PAGE if wide else style.COLUMN, 2.7), layout="constrained")
        panels = figure.subplots(1, len(data), sharey=True, squeeze=False)[0]
        # the boards of two limits may rank the same names differently: a name looks the same in all panels
        names = list(dict.fromkeys(name for sweep in data for name in getattr(sweep, side)))
        for axes, sweep in zip(panels, data):
            series: Series = getattr(sweep, side)
            for name, values in series.items():
                colour, marker = style.class_look(names.index(name))
                at, heights = list(values), [100 * value.mean for value in values.values()]
                bars = [100 * value.std for value in values.values()]
                axes.errorbar(
                    at, heights, yerr=bars, color=colour, marker=marker, markersize=3.5, elinewidth=0.8, label=name
                )
                below = sweep.worst.get(name, {}) if side == "models" else {}
                if below:
                    axes.plot(list(below), [100 * mean for mean in below.values()], ":", color=colour, linewidth=1.0)
            if side == "attacks" and sweep.lowest:
                lowest = [100 * mean for mean in sweep.lowest.values()]
                look = {**style.WORST_MARK, "linestyle": ":", "linewidth": 1.0, "markersize": 3.5}
                axes.plot(list(sweep.lowest), lowest, label=worst_words(sweep.battery), **look)
            axes.set_xlabel(sweep.limit.replace("_", " "))
        panels[0].set_ylabel(label)
        marks = {label: mark for axes in panels for mark, label in zip(*axes.get_legend_handles_labels())}
        labels = [*(name for name in names if name in marks), *(label for label in marks if label not in names)]
        handles = [marks[label] for label in labels]
        figure.legend(handles, labels, loc="outside lower center", ncols=min(6 if wide else 3, len(labels)))
        figure.suptitle(f"{title}, {data[0].dataset}, {data[0].difficulty}")
        return figure
