"""Degree and difficulty of a dataset (Figure 4 of the GRB paper): who is easy to attack, and who is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from grb.errors import DataError
from grb.visualise import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grb.dataset import Dataset

Array = np.ndarray[Any, Any]
BANDS = ("easy", "medium", "hard")
POINTS = 400


@dataclass(frozen=True)
class Band:
    """The test nodes of one difficulty.

    Args:
        nodes: How many.
        mean: Their mean degree.
        low: Their smallest degree.
        high: Their largest.
        shares: Share of them in every bin of degrees, [bins].
        span: Where their degrees stand among all nodes: the share of nodes below the smallest, and up to the largest.
    """

    nodes: int
    mean: float
    low: int
    high: int
    shares: tuple[float, ...]
    span: tuple[float, float]


@dataclass(frozen=True)
class Degrees:
    """Degrees of all nodes in ascending order, thinned out, and of the test nodes by difficulty.

    Args:
        dataset: Its name.
        places: Share of all nodes up to each shown one, ascending.
        degrees: Their degrees.
        edges: Lower ends of the bins of degrees, and the upper end of the last.
        bands: Easy, medium and hard test nodes.
    """

    dataset: str
    places: tuple[float, ...]
    degrees: tuple[int, ...]
    edges: tuple[int, ...]
    bands: dict[str, Band]


def degrees(dataset: Dataset) -> Degrees:
    """The data of :func:`draw_degrees`."""
    everyone = dataset.graph.adj.degrees.numpy().astype(np.int64)
    ranked = np.sort(everyone)
    n = len(ranked)
    shown = np.unique(np.linspace(0, n - 1, min(n, POINTS)).round().astype(np.int64))
    edges = bin_edges(int(ranked[-1]))
    bands = {
        name: _band(everyone[dataset.test_ids(name).numpy()], ranked, edges)
        for name in BANDS
        if len(dataset.split.test.get(name, ()))
    }
    if not bands:
        raise DataError(f"dataset '{dataset.name}' has no test nodes by difficulty")
    return Degrees(
        dataset.name,
        tuple(((shown + 1) / n).tolist()),
        tuple(ranked[shown].tolist()),
        tuple(edges.tolist()),
        bands,
    )


def bin_edges(largest: int) -> Array:
    """Bins of degrees that grow by about a half each, of whole numbers and never empty by construction.

    >>> bin_edges(9).tolist()
    [0, 1, 2, 3, 4, 6, 8, 11]
    """
    edges = np.unique(np.round(2.0 ** (np.arange(0, 2 * np.log2(max(largest, 1)) + 3) / 2)).astype(np.int64))
    edges = np.concatenate([[0], edges])
    return edges[: int(np.searchsorted(edges, largest, side="right")) + 1]


def _band(own: Array, ranked: Array, edges: Array) -> Band:
    counts, _ = np.histogram(own, bins=edges)
    below = np.searchsorted(ranked, own.min(), side="left") / len(ranked)
    upto = np.searchsorted(ranked, own.max(), side="right") / len(ranked)
    shares = tuple((counts / len(own)).tolist())
    return Band(len(own), float(own.mean()), int(own.min()), int(own.max()), shares, (float(below), float(upto)))


def draw_degrees(data: Degrees, *, title: str | None = None) -> Figure:
    """Left: degrees of all nodes in order, with the range of every difficulty. Right: how degrees spread within each."""
    with style.styled():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(style.PAGE, 2.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.plot([100 * place for place in data.places], data.degrees, color=style.INK)
        left.set_yscale("symlog", linthresh=1)
        left.set(xlabel="nodes by degree (%)", ylabel="degree", xlim=(0, 100))
        top = max(data.degrees)
        last = max(place for band in data.bands.values() for place, share in enumerate(band.shares) if share)
        for number, (name, band) in enumerate(data.bands.items()):
            colour = style.COLOURS[number]
            start, stop = (100 * end for end in band.span)
            left.axvspan(start, stop, color=colour, alpha=0.18, linewidth=0)
            left.text((start + stop) / 2, top, name, ha="center", va="top", fontsize=7)
            label = f"{name}: {band.nodes} nodes, mean {band.mean:.2f}"
            right.plot(
                range(last + 1),
                [100 * share for share in band.shares[: last + 1]],
                color=colour,
                marker=style.MARKERS[number],
                markersize=3.5,
                label=label,
            )
        right.set_xticks(range(last + 1), _bin_labels(data.edges[: last + 2]))
        right.set(xlabel="degree", ylabel="share of the test nodes (%)", xlim=(-0.3, last + 0.3))
        figure.legend(loc="outside lower center", ncols=len(data.bands))
        figure.suptitle(title or f"Degree and difficulty of {data.dataset}")
        return figure


def _bin_labels(edges: tuple[int, ...]) -> list[str]:
    return [str(low) if high - low <= 1 else f"{low}-{high - 1}" for low, high in zip(edges, edges[1:])]
