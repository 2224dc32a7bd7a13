"""Accuracy by the degree of the target: whom attacks hurt most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from grb.errors import DataError
from grb.evaluator.measurement import Measurement
from grb.visualise import style
from grb.visualise.degrees import bin_edges

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grb.evaluator.board import Board
    from grb.pipeline.store import Store

Array = np.ndarray[Any, Any]
LEAST = 8


@dataclass(frozen=True)
class DegreeAccuracy:
    """Share of correct targets by degree.

    Args:
        dataset: Where it was measured.
        difficulty: Difficulty.
        edges: Lower ends of the bins of degrees, and the upper end of the last; bins of few targets are joined.
        counts: Targets in every bin.
        means: ``[label]`` to the accuracy in every bin, the mean over runs.
        stds: The same for its standard deviation over runs.
    """

    dataset: str
    difficulty: str
    edges: tuple[int, ...]
    counts: tuple[int, ...]
    means: dict[str, tuple[float, ...]]
    stds: dict[str, tuple[float, ...]]


def degree_accuracy(
    degrees: Any, correct: Mapping[str, Any], *, dataset: str = "", difficulty: str = "", least: int = LEAST
) -> DegreeAccuracy:
    """The data of :func:`draw_degree_accuracy`.

    Args:
        degrees: Degrees of the targets, [t].
        correct: Which targets were right by label, e.g. of an attack: [runs, t] of booleans.
        least: Bins with fewer targets are joined with the next one.
    """
    own = np.asarray(degrees).astype(np.int64)
    if not len(own) or not correct:
        raise DataError("accuracy by degree needs at least one target and one run")
    edges = _joined(own, bin_edges(int(own.max())), least)
    bins = np.digitize(own, edges[1:-1])
    members = np.eye(len(edges) - 1)[bins] / np.bincount(bins, minlength=len(edges) - 1)
    tables = {label: np.atleast_2d(np.asarray(bits, dtype=float)) @ members for label, bits in correct.items()}
    return DegreeAccuracy(
        dataset,
        difficulty,
        tuple(edges.tolist()),
        tuple(np.bincount(bins, minlength=len(edges) - 1).tolist()),
        {label: tuple(table.mean(0).tolist()) for label, table in tables.items()},
        {label: tuple(table.std(0).tolist()) for label, table in tables.items()},
    )


def _joined(own: Array, edges: Array, least: int) -> Array:
    """Edges between which a minimum number of targets lies."""
    kept = [int(edges[0])]
    for edge in edges[1:-1]:
        if ((own >= kept[-1]) & (own < edge)).sum() >= least and (own >= edge).sum() >= least:
            kept.append(int(edge))
    return np.array([max(kept[0], int(own.min())), *kept[1:], int(edges[-1])])


def measured_correct(board: Board, store: Store, difficulty: str) -> dict[str, Array]:
    """Which targets were right, from the records behind a board: attack to [runs, t], over all defenses."""
    found: dict[str, list[Array]] = {}
    for cell in board.cells:
        if cell.difficulty == difficulty and cell.knowledge != "white-box":
            for metadata in cell.metadata:
                measurement = Measurement.from_dict(store.read(metadata["score"]).measurement)
                found.setdefault(cell.attack, []).append(measurement.outcomes[difficulty].bits())
    if not found:
        raise DataError(f"the board of {board.dataset} has no scores on '{difficulty}'")
    return {label: np.stack(runs) for label, runs in found.items()}


def draw_degree_accuracy(data: DegreeAccuracy, *, title: str | None = None) -> Figure:
    """Accuracy over the degree of the target, one line per attack, and how many targets there are."""
    with style.styled():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(style.PAGE, 3.0), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
        places = np.arange(len(data.counts))
        wide = 0.3 / max(1, len(data.means))
        number = 0
        for place, (label, means) in enumerate(data.means.items()):
            clean = label == "none"
            colour, marker = (style.INK, None) if clean else style.class_look(number)
            number += not clean
            heights, bars = (100 * np.array(each) for each in (means, data.stds[label]))
            above.errorbar(
                places + wide * (place - (len(data.means) - 1) / 2),  # beside each other, or bars hide bars
                heights,
                yerr=bars,
                color=colour,
                marker=marker,
                markersize=3.5,
                elinewidth=0.6,
                linestyle="--" if clean else "-",
                label="clean graph" if clean else label,
            )
        above.set_ylabel("accuracy (%)")
        handles, labels = above.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center")
        below.bar(places, data.counts, color=style.PALE)
        below.set_ylabel("targets")
        ends = zip(data.edges, data.edges[1:])
        below.set_xticks(places, [str(low) if high - low <= 1 else f"{low}-{high - 1}" for low, high in ends])
        below.set_xlabel("degree of the target")
        figure.align_ylabels()
        figure.suptitle(title or f"Accuracy by degree, {data.dataset}, {data.difficulty}")
        return figure
