"""What layer norm and adversarial training gain (Figures 10 and 11 of the GRB paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grb.errors import DataError
from grb.evaluator.board import Board, Estimate
from grb.visualise import style
from grb.visualise.rankings import worst_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES = {"ln": "layer norm", "at": "adversarial training"}


@dataclass(frozen=True)
class Gain:
    """A model without and with a general defense: weighted accuracy, and in the worst case where that is known."""

    model: str
    without: Estimate
    defended: Estimate
    worst_without: Estimate | None = None
    worst_defended: Estimate | None = None

    @property
    def points(self) -> float:
        """Points of accuracy that the defense gains."""
        return 100 * (self.defended.mean - self.without.mean)


@dataclass(frozen=True)
class Gains:
    """All models of a board that were measured without and with one defense, the largest gain first."""

    dataset: str
    difficulty: str
    suffix: str
    models: tuple[Gain, ...]


def gains(board: Board, suffix: str, difficulty: str | None = None) -> Gains:
    """The data of :func:`draw_gains`.

    Args:
        board: Has ``gcn`` and ``gcn+ln``, and so on.
        suffix: ``ln`` or ``at``.
        difficulty: Difficulty; the last if not given.
    """
    difficulty = difficulty or board.difficulties[-1]
    rows = {name: values for name, values in board.by_defense.get(difficulty, {}).items() if "weighted" in values}
    pairs = [
        Gain(name, values["weighted"], other["weighted"], worst_of(values), worst_of(other))
        for name, values in rows.items()
        if (other := rows.get(f"{name}+{suffix}")) is not None
    ]
    if not pairs:
        raise DataError(f"the board of {board.dataset} has no model both without and with '+{suffix}'")
    return Gains(board.dataset, difficulty, suffix, tuple(sorted(pairs, key=lambda gain: -gain.points)))


def draw_gains(data: Gains, *, title: str | None = None) -> Figure:
    """One line per model, from its accuracy without the defense to that with it, and the points between them."""
    with style.styled():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(style.COLUMN, 1.0 + 0.27 * len(data.models)), layout="constrained")
        axes = figure.subplots()
        for place, gain in enumerate(data.models):
            ends = [100 * gain.without.mean, 100 * gain.defended.mean]
            axes.plot(
                ends, [place - 0.13, place + 0.13], color=style.PALE, linewidth=2.5, zorder=1, solid_capstyle="butt"
            )
            for worst, colour, aside in (
                (gain.worst_without, style.COLOURS[0], -0.13),
                (gain.worst_defended, style.COLOURS[5], 0.13),
            ):
                if worst is not None:
                    label = "worst case" if place == 0 and aside > 0 else None
                    axes.plot(
                        100 * worst.mean,
                        place + aside,
                        marker="x",
                        markersize=4,
                        color=colour,
                        linestyle="none",
                        label=label,
                    )
            for value, marker, colour, fill, aside in (
                (gain.without, "o", style.COLOURS[0], "white", -0.13),
                (gain.defended, "s", style.COLOURS[5], style.COLOURS[5], 0.13),
            ):
                axes.errorbar(
                    100 * value.mean,
                    place + aside,
                    xerr=style.error_bar(value, 100),
                    fmt=marker,
                    markersize=4.5,
                    color=colour,
                    markerfacecolor=fill,
                    elinewidth=0.8,
                    label=("plain" if marker == "o" else f"+{data.suffix}") if place == 0 else None,
                )
            axes.annotate(
                f"{gain.points:+.1f}",
                (1, place),
                xycoords=("axes fraction", "data"),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=7,
            )
        axes.set_yticks(range(len(data.models)), [gain.model for gain in data.models])
        axes.set_ylim(len(data.models) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("weighted accuracy (%)")
        figure.legend(loc="outside lower center", ncols=3)
        name = TITLES.get(data.suffix, data.suffix)
        figure.suptitle(title or f"Effect of {name} on {data.dataset}, {data.difficulty}")
        return figure
