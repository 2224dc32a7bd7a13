"""Effect of the difficulty of the targets on every attack (Figure 7 of the GRB paper)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grb.errors import DataError
from grb.evaluator.board import CLEAN, Board, Estimate
from grb.visualise import style
from grb.visualise.rankings import has_battery, worst_of, worst_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Difficulty:
    """Accuracy that every attack leaves, the mean over all defenses, by difficulty.

    Args:
        dataset: Where it was measured.
        difficulties: Difficulties in the order of the board.
        clean: Accuracy without an attack by difficulty; empty if it was not measured.
        attacks: ``[attack][difficulty]`` to the accuracy under it, the strongest attack first.
        worst: The worst case of a defense by difficulty, the mean over defenses; empty if it was not measured.
        battery: Whether that is of the whole battery.
    """

    dataset: str
    difficulties: tuple[str, ...]
    clean: dict[str, Estimate]
    attacks: dict[str, dict[str, Estimate]]
    worst: dict[str, float] = field(default_factory=dict)
    battery: bool = False

    def lost(self, attack: str) -> dict[str, float]:
        """Points of accuracy that an attack takes, by difficulty."""
        own = self.attacks[attack]
        return {
            difficulty: 100 * (self.clean[difficulty].mean - own[difficulty].mean)
            for difficulty in own
            if difficulty in self.clean
        }


def difficulty(board: Board) -> Difficulty:
    """The data of :func:`draw_difficulty`."""
    if len(board.difficulties) < 2:
        raise DataError(f"the board of {board.dataset} has one difficulty only, so there is no effect of it to show")

    def averages(attack: str) -> dict[str, Estimate]:
        found = {
            difficulty: board.by_attack.get(difficulty, {}).get(attack, {}).get("average")
            for difficulty in board.difficulties
        }
        return {difficulty: value for difficulty, value in found.items() if value is not None}

    attacks = {name: averages(name) for name in board.attacks if name != CLEAN}
    return Difficulty(
        board.dataset,
        board.difficulties,
        averages(CLEAN),
        {name: own for name, own in attacks.items() if own},
        _worst(board),
        has_battery(board),
    )


def _worst(board: Board) -> dict[str, float]:
    found = {}
    for name in board.difficulties:
        lowest = [worst_of(own) for own in board.by_defense.get(name, {}).values()]
        means = [each.mean for each in lowest if each is not None]
        if means:
            found[name] = sum(means) / len(means)
    return found


def draw_difficulty(data: Difficulty, *, title: str | None = None) -> Figure:
    """Left: accuracy under every attack, by difficulty. Right: what it lost."""
    with style.styled():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(style.PAGE, 2.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        names = list(data.attacks)
        for number, name in enumerate(names):
            colour, marker = style.class_look(number)
            look = {"color": colour, "marker": marker, "markersize": 3.5}
            aside = 0.06 * (number - (len(names) - 1) / 2)  # or their error bars hide each other
            own = data.attacks[name]
            _draw_line(
                left, data, {difficulty: 100 * value.mean for difficulty, value in own.items()}, aside, look, name
            )
            left.errorbar(
                [data.difficulties.index(difficulty) + aside for difficulty in own],
                [100 * value.mean for value in own.values()],
                yerr=[100 * value.std for value in own.values()],
                fmt="none",
                ecolor=colour,
                elinewidth=0.8,
            )
            _draw_line(right, data, data.lost(name), 0.0, look, name)
        if data.clean:
            look = {**style.CLEAN_MARK, "markersize": 4, "linestyle": "--"}
            heights = {difficulty: 100 * value.mean for difficulty, value in data.clean.items()}
            _draw_line(left, data, heights, 0.0, look, "clean graph")
        if data.worst:
            look = {**style.WORST_MARK, "markersize": 4, "linestyle": ":"}
            _draw_line(
                left,
                data,
                {name: 100 * mean for name, mean in data.worst.items()},
                0.0,
                look,
                worst_words(data.battery),
            )
        for axes in (left, right):
            axes.set_xticks(range(len(data.difficulties)), data.difficulties)
        left.set_ylabel("accuracy, mean over defenses (%)")
        right.set_ylabel("accuracy lost (points)")
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(6, len(labels)))
        figure.suptitle(title or f"Effect of the difficulty on {data.dataset}")
        return figure


def _draw_line(
    axes: Axes, data: Difficulty, heights: Mapping[str, float], aside: float, look: dict[str, Any], label: str
) -> None:
    """A line through the difficulties; all test nodes together are a point of their own, not one step further."""
    steps = [difficulty for difficulty in heights if difficulty != "full"]
    places = {difficulty: data.difficulties.index(difficulty) + aside for difficulty in heights}
    axes.plot(
        [places[difficulty] for difficulty in steps], [heights[difficulty] for difficulty in steps], label=label, **look
    )
    if "full" in heights:
        axes.plot(places["full"], heights["full"], **{**look, "linestyle": "none"})
