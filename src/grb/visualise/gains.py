"""What layer norm and adversarial training gain (Figures 10 and 11 of the GRB paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grb.errors import DataError
from grb.evaluator.board import Board, Estimate
from grb.visualise import style
from grb.visualise.rankings import has_battery, worst_of, worst_words

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
    battery: bool = False


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
    return Gains(
        board.dataset, difficulty, suffix, tuple(sorted(pairs, key=lambda gain: -gain.points)), has_battery(board)
    )


def _gained(gain: Gain) -> str:
    """Points under transferred attacks and, where it is known, in the worst case."""
    if gain.worst_without is None or gain.worst_defended is None:
        return f"{gain.points:+.1f}"
    return f"{gain.points:+.1f}, {100 * (gain.worst_defended.mean - gain.worst_without.mean):+.1f}"


def draw_gains(data: Gains, *, title: str | None = None) -> Figure:
    """Per model a line from its accuracy without the defense (hollow) to that with it (filled), and the points between them."""
    with style.styled():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(0.7 * style.PAGE, 1.3 + 0.3 * len(data.models)), layout="constrained")
        axes = figure.subplots()
        for place, gain in enumerate(data.models):
            for one, other in ((gain.without, gain.defended), (gain.worst_without, gain.worst_defended)):
                if one is not None and other is not None:
                    ends = [100 * one.mean, 100 * other.mean]
                    axes.plot(ends, [place - 0.15, place + 0.15], color=style.PALE, linewidth=1.8, zorder=1)
            for value, look, label in (
                (gain.without, style.TRANSFER_MARK, "transferred, plain"),
                (gain.defended, style.TRANSFER_MARK, f"transferred, +{data.suffix}"),
                (gain.worst_without, style.WORST_MARK, f"{worst_words(data.battery)}, plain"),
                (gain.worst_defended, style.WORST_MARK, f"{worst_words(data.battery)}, +{data.suffix}"),
            ):
                if value is None:
                    continue
                plain = label.endswith("plain")
                axes.errorbar(
                    [100 * value.mean],
                    [place - 0.15 if plain else place + 0.15],
                    xerr=style.error_bar(value, 100),
                    **{**look, **({"markerfacecolor": "white"} if plain else {})},
                    markersize=3.8,
                    linestyle="none",
                    elinewidth=0.8,
                    label=label if place == 0 else None,
                )
            axes.annotate(
                _gained(gain),
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
        axes.set_xlim(-2, 102)
        axes.set_xlabel(f"accuracy (%); right: points gained, transferred and {worst_words(data.battery)}")
        figure.legend(loc="outside lower center", ncols=2)
        name = TITLES.get(data.suffix, data.suffix)
        figure.suptitle(title or f"Effect of {name} on {data.dataset}, {data.difficulty}")
        return figure
