"""A budget curve as inline SVG: no script, no style of its own, every text escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 16, 44


def budget_curve(
    points: Sequence[Mapping[str, Any]],
    *,
    metric: str,
    unit: str,
    below: float,
    mlp: float | None,
    certified: Sequence[Mapping[str, Any]] = (),
    breaking: Mapping[str, Any] | None = None,
) -> str:
    """The curve with its band of uncertainty, the threshold, and what a model without edges reaches.

    Args:
        points: With ``budget``, ``value``, ``low`` and ``high``, ascending by budget.
        metric: Name of the vertical axis.
        unit: Name of the horizontal axis.
        below: The threshold.
        mlp: Value of the baseline, if there is one.
        certified: Lower bounds with ``budget`` and ``value``, if there are any.
        breaking: The breaking point with ``budget``, ``low`` and ``high``, if it is to be marked.
    """
    largest = max((point["budget"] for point in points), default=1) or 1

    def x(budget: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * budget / largest, 1)

    def y(value: float) -> float:
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - min(max(value, 0.0), 1.0)), 1)

    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(metric)} by {escape(unit)}" class="curve">'
    ]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick)}" y2="{y(tick)}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 8}" y="{y(tick) + 4}" text-anchor="end">{tick:g}</text>')
    shown: list[float] = []
    for point in points:
        if not shown or x(point["budget"]) - shown[-1] >= 34:
            shown.append(x(point["budget"]))
            parts.append(
                f'<text class="tick" x="{shown[-1]}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">'
                f"{int(point['budget'])}</text>"
            )
    band = [f"{x(point['budget'])},{y(point['high'])}" for point in points]
    band += [f"{x(point['budget'])},{y(point['low'])}" for point in reversed(points)]
    parts.append(f'<polygon class="band" points="{" ".join(band)}"/>')
    line = " ".join(f"{x(point['budget'])},{y(point['value'])}" for point in points)
    parts.append(f'<polyline class="line" points="{line}"/>')
    for point in points:
        title = f"{point['value']:.3f} at {int(point['budget'])} {unit} ({point.get('attack', '')})"
        parts.append(
            f'<circle class="dot" cx="{x(point["budget"])}" cy="{y(point["value"])}" r="4">'
            f"<title>{escape(title)}</title></circle>"
        )
    parts.append(f'<line class="limit" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(below)}" y2="{y(below)}"/>')
    parts.append(
        f'<text class="note" x="{WIDTH - RIGHT}" y="{y(below) - 5}" text-anchor="end">broken below {below:.2f}</text>'
    )
    if breaking is not None and breaking["budget"] is not None:
        ends = [breaking["low"] or 0, breaking["high"] if breaking["high"] is not None else largest]
        title = f"breaks at {int(breaking['budget'])} {unit}"
        parts.append(
            f'<line class="breaks" x1="{x(ends[0])}" x2="{x(ends[1])}" y1="{y(below)}" y2="{y(below)}"/>'
            f'<circle class="break" cx="{x(breaking["budget"])}" cy="{y(below)}" r="6"><title>{escape(title)}</title></circle>'
        )
    if certified:
        line = " ".join(f"{x(point['budget'])},{y(point['value'])}" for point in certified)
        parts.append(f'<polyline class="certified" points="{line}"/>')
        last = certified[-1]
        parts.append(
            f'<text class="note" x="{LEFT + 4}" y="{y(last["value"]) + 14}">certified {last["value"]:.2f}</text>'
        )
    if mlp is not None:
        parts.append(f'<line class="mlp" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(mlp)}" y2="{y(mlp)}"/>')
        beside = 14 if 0 <= below - mlp < 0.12 else -5  # not across the threshold
        parts.append(f'<text class="note" x="{LEFT + 4}" y="{y(mlp) + beside}">without edges {mlp:.2f}</text>')
    parts.append(
        f'<text class="axis" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{escape(unit)}</text>'
    )
    parts.append(
        f'<text class="axis" x="14" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 14 {HEIGHT / 2})">'
        f"{escape(metric)}</text></svg>"
    )
    return "".join(parts)
