"""The report as one self-contained HTML page: no script, no network, a strict content policy, every name shown as text."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any

from grb.auditing.svg import budget_curve
from grb.leaderboard.page import environment, source_hash
from grb.leaderboard.text import sanitize

# shades of the heat map, from all kept to all lost
SHADES = 5


def to_html(values: Mapping[str, Any]) -> str:
    """The page as text; the same report gives the same bytes."""
    from markupsafe import Markup

    style = _asset("audit.css")
    metric = values["metric"]
    mlp = values["clean"]["baselines"]["mlp"].get(metric["name"])
    curves = {
        each["scenario"]: Markup(
            budget_curve(
                each["points"],
                metric=metric["name"],
                unit=each["unit"],
                below=metric["below"],
                mlp=mlp,
                certified=each["certified"] or (),
                breaking=each["breaking_point"],
            )
        )
        for each in values["scenarios"]
    }
    page = environment(_asset).get_template("audit.html.j2")
    return str(
        page.render(
            report=_clean(dict(values)),
            title=f"Audit of {sanitize(values['model']['name'], 120)}",
            style=Markup(style),
            style_hash=source_hash(style),
            curves=curves,
            shade=shade,
        )
    )


def shade(cell: dict[str, Any]) -> str:
    """Name of a cell's shade: how much of what was right is lost."""
    if not cell["targets"] or cell["clean"] is None:
        return "none"
    if not cell["clean"]:
        return "none"
    lost = max(0.0, (cell["clean"] - cell["attacked"]) / cell["clean"])
    return str(min(SHADES - 1, int(lost * SHADES)))


def _clean(value: Any) -> Any:
    """All texts without control characters and of a sane length; templates escape them."""
    if isinstance(value, str):
        return sanitize(value, 2000)
    if isinstance(value, dict):
        return {sanitize(str(key), 200): _clean(each) for key, each in value.items()}
    return [_clean(each) for each in value] if isinstance(value, list) else value


def _asset(name: str) -> str:
    folder = resources.files("grb").joinpath("auditing").joinpath("templates")
    return folder.joinpath(name).read_text(encoding="utf-8")
