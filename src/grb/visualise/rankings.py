"""Rankings of vanilla and of defended models (Figures 5 and 6 of the GRB paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from grb.errors import DataError, GRBError
from grb.evaluator.board import Board, Estimate
from grb.names import ModelName
from grb.visualise import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Kind = Literal["vanilla", "defended", "all"]


@dataclass(frozen=True)
class Ranking:
    """Models of one kind by their weighted accuracy on one difficulty, the best first.

    Args:
        dataset: Where it was measured.
        difficulty: Difficulty.
        kind: Which models.
        names: The models.
        values: Their weighted accuracy.
        places: The best and the worst place among *these* models that their intervals allow.
        worst: What each keeps in the worst case (:func:`worst_of`); None where it was not measured.
    """

    dataset: str
    difficulty: str
    kind: Kind
    names: tuple[str, ...]
    values: tuple[Estimate, ...]
    places: tuple[tuple[int, int], ...]
    worst: tuple[Estimate | None, ...] = ()


def worst_of(values: Mapping[str, Estimate]) -> Estimate | None:
    """What a defense keeps in the worst case: of the whole battery where it ran, else under the worst edit that it met."""
    return values.get("worst_case") or values.get("worst_graph")


def is_vanilla(name: str) -> bool:
    """Whether a model of the catalogue comes without any defense, by its name; of third-party code that is unknown.

    >>> is_vanilla("gcn"), is_vanilla("gcn+ln"), is_vanilla("r-gcn"), is_vanilla("gat-jaccard")
    (True, False, False, False)
    """
    try:
        model = ModelName.parse(name.split("(")[0])
        return not (model.is_defended or model.has_import_path)
    except GRBError:  # a submission under its own name
        return False


def ranking(board: Board, difficulty: str, kind: Kind = "all", *, top: int = 10) -> Ranking:
    """The data of one panel of :func:`draw_rankings`: at most ``top`` models."""
    from grb.evaluator.board import ranks

    own = board.by_defense.get(difficulty, {})
    chosen = {
        name: values["weighted"]
        for name, values in own.items()
        if "weighted" in values and (kind == "all" or is_vanilla(name) == (kind == "vanilla"))
    }
    if not chosen:
        raise DataError(f"the board of {board.dataset} has no {kind} models on '{difficulty}'")
    best = dict(sorted(chosen.items(), key=lambda item: (-item[1].mean, item[0]))[:top])
    places = ranks(best)
    return Ranking(
        board.dataset,
        difficulty,
        kind,
        tuple(best),
        tuple(best.values()),
        tuple(places[name] for name in best),
        tuple(worst_of(own[name]) for name in best),
    )


def draw_rankings(data: Sequence[Ranking], *, columns: int = 4, title: str | None = None) -> Figure:
    """One panel per ranking: every model's weighted accuracy with its interval, its worst case, its place behind its name."""
    if not data:
        raise DataError("there is no ranking to draw")
    with style.styled():
        from matplotlib.figure import Figure

        columns = min(columns, len(data))
        lines = -(-len(data) // columns)
        most = max(len(each.names) for each in data)
        figure = Figure(figsize=(style.PAGE, lines * (0.75 + 0.17 * most)), layout="constrained")
        panels = figure.subplots(lines, columns, sharex=True, squeeze=False)
        for axes, each in zip(panels.flat, data):
            _draw_ranking(axes, each)
        for axes in list(panels.flat)[len(data) :]:
            axes.set_axis_off()
        shown = any(each is not None for own in data for each in own.worst)
        figure.supxlabel(f"weighted accuracy{', and in the worst case (cross)' if shown else ''} (%)", fontsize=8)
        if title:
            figure.suptitle(title)
        return figure


def _draw_ranking(axes: Axes, data: Ranking) -> None:
    from matplotlib.ticker import MaxNLocator

    for place, (name, value) in enumerate(zip(data.names, data.values)):
        colour = style.COLOURS[0] if is_vanilla(name) else style.COLOURS[5]
        marker = "o" if is_vanilla(name) else "s"
        axes.errorbar(
            100 * value.mean,
            place,
            xerr=style.error_bar(value, 100),
            fmt=marker,
            markersize=3.5,
            color=colour,
            ecolor=style.GREY,
            elinewidth=1,
        )
        lowest = data.worst[place] if data.worst else None
        if lowest is not None:
            ends = [100 * lowest.mean, 100 * value.mean]
            axes.plot(ends, [place, place], color=style.PALE, linewidth=1.4, zorder=0)
            axes.plot(ends[0], place, marker="x", markersize=4, color=style.ALARM, linestyle="none")
    labels = [f"{name}  {_place(places)}" for name, places in zip(data.names, data.places)]
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4))
    axes.grid(axis="y", visible=False)
    axes.set_title(f"{data.dataset}, {data.difficulty}")


def _place(places: tuple[int, int]) -> str:
    low, high = places
    return str(low) if low == high else f"{low}-{high}"
