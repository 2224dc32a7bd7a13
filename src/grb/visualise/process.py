"""How attacks proceed: the share of targets that keep their label, step by step, one strip per attack."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grb.errors import DataError
from grb.visualise import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grb.evaluator.board import Board
    from grb.pipeline.store import Store

POINTS = 50


@dataclass(frozen=True)
class Strip:
    """One attack on one difficulty: the mean trace over its runs.

    Args:
        attack: Its label.
        difficulty: Difficulty.
        steps: Number of steps of one run.
        kept: Share of the targets that the attacked model still gives the label of the clean graph, at even distances.
        loss: What the attack raises, at the same places.
        runs: How many traces this is the mean of.
    """

    attack: str
    difficulty: str
    steps: int
    kept: tuple[float, ...]
    loss: tuple[float, ...]
    runs: int

    @property
    def half(self) -> int | None:
        """The first step by which half of the final fall of kept labels is done; None if nothing falls."""
        first, last = self.kept[0], self.kept[-1]
        if not last < first:
            return None
        place = next(place for place, kept in enumerate(self.kept) if kept <= (first + last) / 2)
        return 1 + round(place * (self.steps - 1) / max(1, len(self.kept) - 1))


def strip(attack: str, difficulty: str, steps: int, traces: Iterable[tuple[Sequence[float], Sequence[float]]]) -> Strip:
    """The mean of some traces of (loss, kept labels), each stretched to the same number of points."""
    pairs = [(loss, kept) for loss, kept in traces if len(kept)]
    if not pairs:
        raise DataError(f"attack '{attack}' has no steps, so there is no process to show")
    points = min(POINTS, max(len(kept) for _, kept in pairs))
    kept = np.mean([_stretched(kept, points) for _, kept in pairs], axis=0)
    losses = [_stretched(loss, points) for loss, _ in pairs if len(loss)]
    loss = np.mean(losses, axis=0) if losses else np.full(points, math.nan)
    return Strip(attack, difficulty, steps, tuple(kept.tolist()), tuple(loss.tolist()), len(pairs))


def _stretched(values: Sequence[float], points: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    places = np.linspace(0, 1, len(values)) if len(values) > 1 else np.zeros(1)
    return np.asarray(np.interp(np.linspace(0, 1, points), places, np.asarray(values, dtype=float)))


def process(board: Board, store: Store, difficulty: str | None = None) -> list[Strip]:
    """The data of :func:`draw_process` from the records behind a board: transferred attacks first, then white-box ones."""
    difficulty = difficulty or board.difficulties[-1]
    keys: dict[str, dict[str, None]] = {}
    for cell in sorted(board.cells, key=lambda cell: cell.knowledge == "white-box"):
        if cell.difficulty == difficulty:
            name = f"{cell.attack} (white-box)" if cell.knowledge == "white-box" else cell.attack
            own = keys.setdefault(name, {})
            own.update({str(metadata["attack"]): None for metadata in cell.metadata if "attack" in metadata})
    order = {name: place for place, name in enumerate(board.attacks)}
    found = []
    for name, own in sorted(keys.items(), key=lambda item: order.get(item[0], len(order))):
        results = [store.read(key).result for key in own]
        traces = [(result["loss"], result["kept"]) for result in results if result.get("steps")]
        if traces:
            steps = max(int(result["steps"]) for result in results)
            found.append(strip(name, difficulty, steps, traces))
    if not found:
        raise DataError(f"no attack on '{difficulty}' of the board of {board.dataset} has steps to show")
    return found


def draw_process(data: Sequence[Strip], *, title: str | None = None) -> Figure:
    """One strip per attack from its first to its last step; the darker, the fewer targets keep their label."""
    if not data:
        raise DataError("there is no process to draw")
    with style.styled():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(style.PAGE, 0.95 + 0.34 * len(data)), layout="constrained")
        panels = figure.subplots(len(data), 1, squeeze=False)[:, 0]
        low = 100 * min(min(each.kept) for each in data)
        high = 100 * max(max(each.kept) for each in data)
        image = None
        for axes, each in zip(panels, data):
            shown = 100 * np.array([each.kept])
            image = axes.imshow(shown, aspect="auto", cmap="cividis", vmin=low, vmax=max(high, low + 1e-9))
            axes.set_yticks([0], [each.attack])
            axes.set_xticks([])
            axes.grid(False)
            axes.tick_params(length=0)
            half = "" if each.half is None else f", half of it by step {each.half}"
            text = f"{shown[0, 0]:.0f} to {shown[0, -1]:.0f} % in {each.steps} steps{half}"
            place = {"xy": (1, 0.5), "xycoords": "axes fraction", "xytext": (5, 0), "textcoords": "offset points"}
            axes.annotate(text, va="center", fontsize=7, **place)
        panels[-1].set_xlabel("first to last step")
        if image is not None:
            bar = figure.colorbar(image, ax=list(panels), location="bottom", shrink=0.5, aspect=40, pad=0.02)
            bar.set_label("targets that keep their clean label (%)")
        figure.suptitle(title or f"Attack process, {data[0].difficulty}")
        return figure
