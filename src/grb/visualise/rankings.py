"""Rankings of vanilla and of defended models (Figures 5 and 6 of the GRB paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from grb.errors import DataError, GRBError
from grb.evaluator.board import CLEAN, Board, Estimate
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
        battery: Whether that is of the whole battery.
        clean: What each keeps of the clean graph; None where it was not measured.
    """

    dataset: str
    difficulty: str
    kind: Kind
    names: tuple[str, ...]
    values: tuple[Estimate, ...]
    places: tuple[tuple[int, int], ...]
    worst: tuple[Estimate | None, ...] = ()
    battery: bool = False
    clean: tuple[float | None, ...] = ()


def worst_words(battery: bool) -> str:
    """What a figure calls the worst that a defense met: the worst case only if the whole battery ran."""
    return "worst case" if battery else "worst edit met"


def has_battery(board: Board) -> bool:
    """Whether the whole battery ran on a board."""
    return any("worst_case" in values for own in board.by_defense.values() for values in own.values())


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
        has_battery(board),
        tuple(cell.score.mean if (cell := board.cell(CLEAN, name, difficulty)) else None for name in best),
    )


def draw_rankings(data: Sequence[Ranking], *, columns: int = 4, title: str | None = None) -> Figure:
    """One panel per ranking: what every model keeps clean, under transferred attacks and at worst, and its place."""
    if not data:
        raise DataError("there is no ranking to draw")
    with style.styled():
        from matplotlib.figure import Figure

        columns = min(columns, len(data))
        lines = -(-len(data) // columns)
        most = max(len(each.names) for each in data)
        size = (style.PAGE if columns > 1 else 0.7 * style.PAGE, lines * max(1.7, 0.9 + 0.17 * most))
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(lines, columns, sharex=True, squeeze=False)
        for axes, each in zip(panels.flat, data):
            _draw_ranking(axes, each)
        for axes in list(panels.flat)[len(data) :]:
            axes.set_axis_off()
        for axes in panels[-1]:
            axes.set_xlabel("accuracy (%)")
            axes.set_xticks(range(0, 101, 25 if columns == 1 else 50))
        handles, labels = panels[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
        if title:
            figure.suptitle(title)
        return figure


def _draw_ranking(axes: Axes, data: Ranking) -> None:
    for place, value in enumerate(data.values):
        lowest = data.worst[place] if data.worst else None
        clean = data.clean[place] if data.clean else None
        means = [mean for mean in (clean, value.mean, None if lowest is None else lowest.mean) if mean is not None]
        axes.plot([100 * min(means), 100 * max(means)], [place, place], color=style.PALE, linewidth=1.4, zorder=0)
        shown: list[tuple[float | None, Mapping[str, Any], str]] = [
            (clean, style.CLEAN_MARK, "clean"),
            (value.mean, style.TRANSFER_MARK, "transferred attacks, weighted"),
            (None if lowest is None else lowest.mean, style.WORST_MARK, worst_words(data.battery)),
        ]
        for mean, look, label in shown:
            if mean is not None:
                bars = style.error_bar(value, 100) if look is style.TRANSFER_MARK else None
                axes.errorbar(
                    [100 * mean],
                    [place],
                    xerr=bars,
                    **look,
                    markersize=3.8,
                    linestyle="none",
                    ecolor=style.GREY,
                    elinewidth=1,
                    label=label if place == 0 else None,
                )
    labels = [f"{name}  {_place(places, len(data.names))}".rstrip() for name, places in zip(data.names, data.places)]
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.set_xlim(-2, 102)
    axes.grid(axis="y", visible=False)
    axes.set_title(f"{data.dataset}, {data.difficulty}")


def _place(places: tuple[int, int], count: int) -> str:
    """The places that an interval allows among ``count`` models; nothing where that is any place."""
    low, high = places
    if count > 1 and (low, high) == (1, count):
        return ""
    return str(low) if low == high else f"{low}-{high}"
