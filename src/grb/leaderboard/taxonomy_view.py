"""An analysis of the taxonomy as a page shows it: clustered heat map, profile of a placed dataset, components as a plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grb.errors import DataError
from grb.leaderboard import palette
from grb.leaderboard.sections import MAX_COLUMNS, MAX_ROWS, Field
from grb.leaderboard.text import MESSAGE_LENGTH, sanitize

PLACEMENT = "placement"
# AUROC runs from about one half to one, so that its ratio seldom leaves one half to two
LIMIT = 1.0
NEIGHBOURS = 3
SHAPES = ("circle", "square", "diamond", "triangle", "down", "cross")
NOWHERE = "fits nowhere"
Array = np.ndarray[Any, Any]


# what the published groups have in common, in a few words
GROUP_NAMES = {
    "I-1": "features decide",
    "I-2": "features and degrees stand in for each other",
    "I-3": "structure decides",
    "T-1": "heterophilous, only features help",
    "T-2": "degrees can replace features",
    "T-3": "no single perturbation hurts",
}


@dataclass(frozen=True)
class HeatRow:
    """A dataset in the heat map: its group, whether it is the placed one, its AUROC, and what is left of it in per cent."""

    name: str
    group: str
    original: str
    fields: tuple[Field, ...]
    first: bool = False
    placed: bool = False


@dataclass(frozen=True)
class Mark:
    """A mark of an SVG: where it stands, how it looks, what it says, and where its name begins."""

    x: float
    y: float
    shape: str
    look: str
    title: str
    label: str = ""
    at: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True)
class ProfileRow:
    """One perturbation of a placed dataset: places of its marks, and of its interval where it has one."""

    name: str
    y: float
    marks: tuple[Mark, ...]
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Plane:
    """The first two components: marks, and the words of the axes."""

    marks: tuple[Mark, ...]
    axes: tuple[str, str]
    width: int = 640
    height: int = 400


@dataclass(frozen=True)
class TaxonomyView:
    """All that a tab shows before its tables.

    Args:
        sentences: What is to be seen, in words.
        columns: Perturbations.
        rows: Datasets in the order of the tree, each group together.
        groups: Groups with shape, colour and number of datasets, for legends.
        profile: The placed dataset beside its neighbours; empty without one.
        neighbours: Names of the neighbours in the profile, with shape and colour.
        ticks: Per cents and places of the profile's scale.
        plane: Components; None if they are not there.
    """

    sentences: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[HeatRow, ...]
    groups: tuple[tuple[str, str, str, int], ...]
    profile: tuple[ProfileRow, ...]
    neighbours: tuple[tuple[str, str, str], ...]
    ticks: tuple[tuple[str, float], ...]
    plane: Plane | None

    @property
    def named_groups(self) -> tuple[tuple[str, str], ...]:
        """The published groups among these, with what they have in common."""
        return tuple((group, GROUP_NAMES[group]) for group, *_ in self.groups if group in GROUP_NAMES)


def combined(files: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One analysis of what ``grb taxonomy analyse --json`` and ``grb taxonomy place --json`` wrote.

    A placement alone is shown among the published datasets that it was compared with.
    """
    analyses = [each for each in files if not is_placement(each)]
    placements = [each for each in files if is_placement(each)]
    if len(analyses) > 1 or len(placements) > 1:
        raise DataError("one analysis and one placement can be shown, but there are more; leave the others out")
    if not placements:
        return dict(analyses[0])
    whole = analyses[0] if analyses else published_analysis(str(placements[0].get("reference")))
    return {**whole, PLACEMENT: placements[0]}


def is_placement(values: Mapping[str, Any]) -> bool:
    """Whether JSON values are a placement and not an analysis."""
    return "neighbours" in values and "messages" in values


def published_analysis(reference: str) -> dict[str, Any]:
    """The analysis of one of the two published taxonomies, ``inductive`` or ``transductive``."""
    from grb import taxonomy

    known = taxonomy.published(reference)
    found = taxonomy.analyse(known.profiles, groups=known.cut, joins=known.joins, known=known.groups, draws=2)
    return {"source": f"published {reference} datasets", **found.to_dict()}


def taxonomy_view(analysis: Mapping[str, Any]) -> TaxonomyView | None:
    """What is drawn of an analysis; None if it has no profiles or is not of the form that ``analyse`` gives."""
    try:
        return _view(analysis)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return None


def _view(analysis: Mapping[str, Any]) -> TaxonomyView:
    names = [str(name) for name in analysis["datasets"]]
    columns = [str(name) for name in analysis["perturbations"]]
    table = np.array([[np.nan if item is None else float(item) for item in row] for row in analysis["log2_ratio"]])
    if (
        table.shape != (len(names), len(columns))
        or not 0 < len(names) <= MAX_ROWS
        or not 0 < len(columns) <= MAX_COLUMNS
    ):
        raise ValueError("no matrix of profiles")
    profiles = dict(zip(names, table, strict=True))
    groups = {str(name): str(group) for name, group in dict((analysis.get("groups") or {}).get("of") or {}).items()}
    placed = analysis.get(PLACEMENT)
    own = _placed_profile(placed, columns) if placed else None
    named = sorted(set(groups.values()), key=lambda each: (len(each), each))
    looks = {group: _look(place) for place, group in enumerate(named)}
    counts = {group: sum(1 for each in groups.values() if each == group) for group in looks}
    profile, neighbours, ticks = _profile(placed, profiles, columns) if placed else ((), (), ())
    return TaxonomyView(
        _sentences(analysis, placed, counts),
        tuple(sanitize(column) for column in columns),
        _rows(analysis, profiles, groups, placed, own),
        tuple((sanitize(group), *looks[group], counts[group]) for group in looks),
        profile,
        neighbours,
        ticks,
        _plane(analysis, profiles, columns, groups, looks, placed, own),
    )


def placed_name(analysis: Mapping[str, Any] | None) -> str:
    """The dataset that an analysis places; empty if none."""
    placed = (analysis or {}).get(PLACEMENT)
    return sanitize(placed.get("dataset", "")) if isinstance(placed, Mapping) else ""


def _look(place: int) -> tuple[str, str]:
    return SHAPES[place % len(SHAPES)], f"c{place % 6}"


def _sentences(analysis: Mapping[str, Any], placed: Any, counts: Mapping[str, int]) -> tuple[str, ...]:
    told = [str(message) for message in (placed or {}).get("messages", [])[:4]]
    if counts:
        parts = ", ".join(f"{group} ({count})" for group, count in counts.items())
        told.append(f"{sum(counts.values())} datasets fall into {len(counts)} groups: {parts}.")
    verdict = (analysis.get("stability") or {}).get("verdict")
    if verdict:
        told.append(f"How far to trust the groups: {verdict}.")
    return tuple(sanitize(text, MESSAGE_LENGTH) for text in told)


def _placed_profile(placed: Mapping[str, Any], columns: Sequence[str]) -> Array:
    ratios = {str(mark["perturbation"]): float(mark["ratio"]) for mark in placed["perturbations"]}
    return np.array([np.log2(ratios[name]) if ratios.get(name, 0) > 0 else np.nan for name in columns])


def _rows(
    analysis: Mapping[str, Any],
    profiles: Mapping[str, Array],
    groups: Mapping[str, str],
    placed: Any,
    own: Array | None,
) -> tuple[HeatRow, ...]:
    leaves = [str(name) for name in ((analysis.get("tree") or {}).get("leaves") or profiles)]
    order = [name for name in leaves if name in profiles] + [name for name in profiles if name not in leaves]
    known = dict(zip(map(str, analysis["datasets"]), analysis.get("original") or [None] * len(profiles)))
    listed = [(name, groups.get(name, ""), known.get(name), profiles[name], False) for name in order]
    if placed and own is not None:
        group = str(placed.get("group") or NOWHERE)
        near = [str(each["dataset"]) for each in placed["neighbours"] if str(each.get("group")) == group]
        at = next((order.index(name) + 1 for name in near if name in order), 0)
        listed.insert(at, (str(placed["dataset"]), group, None, own, True))
    rows = []
    for place, (name, group, original, values, mine) in enumerate(listed):
        first = bool(group) and (place == 0 or listed[place - 1][1] != group)
        auroc = f"{float(original):.2f}" if isinstance(original, int | float) else ""
        rows.append(HeatRow(sanitize(name), sanitize(group), auroc, tuple(map(_field, values)), first, mine))
    return tuple(rows)


def _field(value: float) -> Field:
    if not np.isfinite(value):
        return Field("–")
    share = (min(max(value, -LIMIT), LIMIT) + LIMIT) / (2 * LIMIT)
    return Field(f"{100 * 2.0**value:.0f}", round(float(value), 4), f"d{round(share * (palette.STEPS - 1))}")


# the profile: one line per perturbation, per cents across
LEFT, RIGHT, LINE, TOP = 110, 620, 22, 26


def _profile(
    placed: Mapping[str, Any], profiles: Mapping[str, Array], columns: Sequence[str]
) -> tuple[tuple[ProfileRow, ...], tuple[tuple[str, str, str], ...], tuple[tuple[str, float], ...]]:
    near = [str(each["dataset"]) for each in placed["neighbours"] if str(each["dataset"]) in profiles][:NEIGHBOURS]
    looks = {name: _look(1 + place) for place, name in enumerate(near)}
    marks = sorted(
        placed["perturbations"],
        key=lambda mark: columns.index(mark["perturbation"]) if mark["perturbation"] in columns else len(columns),
    )[:MAX_COLUMNS]
    ends = [float(mark[name]) for mark in marks for name in ("ratio", "low", "high") if mark.get(name) is not None]
    ends += [2.0 ** float(value) for name in near for value in profiles[name] if np.isfinite(value)]
    low, high = np.floor(10 * min(ends)) / 10, np.ceil(10 * max(*ends, 1.0)) / 10

    def x(ratio: float) -> float:
        return round(LEFT + (ratio - low) / (high - low or 1.0) * (RIGHT - LEFT), 1)

    rows = []
    for number, mark in enumerate(marks):
        y, name = TOP + LINE * (number + 0.5), str(mark["perturbation"])
        shown = []
        for other in near:
            value = profiles[other][columns.index(name)] if name in columns else np.nan
            if np.isfinite(value):
                ratio = 2.0 ** float(value)
                shown.append(Mark(x(ratio), y, *looks[other], f"{sanitize(other)}: {100 * ratio:.0f} %"))
        bounds = [mark.get("low"), mark.get("high")]
        span = f" ({100 * bounds[0]:.0f} to {100 * bounds[1]:.0f})" if None not in bounds else ""
        said = f"{sanitize(placed['dataset'])}: {100 * mark['ratio']:.0f} %{span}"
        shown.append(Mark(x(float(mark["ratio"])), y, "circle", "own", said))
        interval = None if None in bounds else (x(float(bounds[0])), x(float(bounds[1])))
        rows.append(ProfileRow(sanitize(name, 16), y, tuple(shown), interval))
    step = 0.25 if high - low > 0.8 else 0.1
    at = np.arange(np.ceil(low / step) * step, high + 1e-9, step)
    ticks = tuple((f"{100 * value:.0f}", x(float(value))) for value in at)
    legend = tuple((sanitize(name), *looks[name]) for name in near)
    return tuple(rows), legend, ticks


def label_places(places: Array, labels: Sequence[str]) -> list[tuple[float, float] | None]:
    """Where to write a name at every point such that no two meet; None for one that finds no room.

    Args:
        places: x and y of the points, [n, 2].
        labels: Their names.
    """
    taken = [(x - 6, y - 6, x + 6, y + 6) for x, y in places.tolist()]
    found: list[tuple[float, float] | None] = []
    for (x, y), label in zip(places.tolist(), labels, strict=True):
        wide = 7 * len(label)
        options = [(x + dx, y + 4 + dy) for dy in (0, -10, 10, -20, 20) for dx in (9.0, -9.0 - wide)]
        options += [(x - wide / 2, y + dy) for dy in (-9, 17)]
        boxes = [
            ((left, up - 9, left + wide, up + 2), (round(left, 1), round(up, 1))) for left, up in options if left > 24
        ]
        best = next((each for each in boxes if not any(_meet(each[0], other) for other in taken)), None)
        if best is not None:
            taken.append(best[0])
        found.append(None if best is None else best[1])
    return found


def _meet(one: tuple[float, ...], two: tuple[float, ...]) -> bool:
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]


def _plane(
    analysis: Mapping[str, Any],
    profiles: Mapping[str, Array],
    columns: Sequence[str],
    groups: Mapping[str, str],
    looks: Mapping[str, tuple[str, str]],
    placed: Any,
    own: Array | None,
) -> Plane | None:
    components = analysis.get("pca") or {}
    scores = {str(name): [float(value) for value in row[:2]] for name, row in (components.get("scores") or {}).items()}
    if not scores or any(len(row) < 2 for row in scores.values()):
        return None
    points = {name: (row, looks.get(groups.get(name, ""), ("circle", "c0"))) for name, row in scores.items()}
    if placed and own is not None:
        loadings = {str(name): row for name, row in components["loadings"].items()}
        used = [place for place, name in enumerate(columns) if name in loadings]
        centre = np.array([profiles[name] for name in scores])[:, used].mean(0)
        weights = np.array([loadings[columns[place]][:2] for place in used])
        where = (np.nan_to_num(own[used] - centre)) @ weights
        points[str(placed["dataset"])] = (where.tolist(), ("circle", "own"))
    plane = Plane((), ("", ""))
    spread = np.array([row for row, _ in points.values()])
    low, high = spread.min(0), spread.max(0)
    across = np.where(high > low, high - low, 1.0)
    size = np.array([plane.width - 150, 70 - plane.height])
    places = np.round((spread - low) / across * size + np.array([30, plane.height - 40]), 1)
    labels = [sanitize(name, 20) for name in points]
    marks = []
    for (name, (_, (shape, look))), (x, y), label, at in zip(
        points.items(), places.tolist(), labels, label_places(places, labels), strict=True
    ):
        title = f"{sanitize(name)}{f', {sanitize(groups[name])}' if name in groups else ''}"
        marks.append(Mark(x, y, shape, look, title, label if at else "", at or (0.0, 0.0)))
    explained = components.get("explained") or [0, 0]
    axes = tuple(f"component {place + 1} ({100 * float(explained[place]):.0f} % of the variance)" for place in (0, 1))
    return Plane(tuple(marks), (axes[0], axes[1]))
