"""One self-contained HTML page of boards: no network, a strict content policy, every name shown as text."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from grb._version import __version__
from grb.errors import DataError
from grb.evaluator.board import Board
from grb.leaderboard import palette, table
from grb.leaderboard.brackets import bracket_tables
from grb.leaderboard.data import page_data, script_json
from grb.leaderboard.sections import sections
from grb.leaderboard.taxonomy_view import placed_name, taxonomy_view
from grb.leaderboard.text import sanitize

TITLE = "Graph robustness leaderboard"


def build_page(
    boards: Sequence[Board | Mapping[str, Any]],
    taxonomy: Mapping[str, Any] | None = None,
    *,
    title: str = TITLE,
    home: str | None = None,
) -> str:
    """The page as text; the same boards give the same bytes.

    Args:
        boards: What it shows, as boards or as what :meth:`Board.to_dict` gives.
        taxonomy: An analysis as JSON values; its tables and matrices get a tab of their own.
        title: The page's heading.
        home: Relative address of an index, if there is one.
    """
    if not boards:
        raise DataError("a page needs at least one board; run a recipe first")
    whole = [board if isinstance(board, Board) else Board.from_dict(board) for board in boards]
    style = asset("page.css") + "\n" + palette.rules()
    script = asset("chart.js") + "\n" + asset("page.js")
    from markupsafe import Markup

    return render(
        "page.html.j2",
        title=sanitize(title, 120),
        version=__version__,
        home=home,
        # the only three texts that are not escaped: two files of ours, and JSON without any bracket
        style=Markup(style),
        script=Markup(script),
        data=Markup(script_json({"format": 1, "boards": [page_data(board, whole) for board in whole]})),
        style_hash=source_hash(style),
        script_hash=source_hash(script),
        taxonomy=sections(taxonomy) if taxonomy else [],
        view=taxonomy_view(taxonomy) if taxonomy else None,
        placed=placed_name(taxonomy),
        plain=[table.summary_table(board) for board in whole],
        brackets=bracket_tables(whole),
    )


def render(template: str, **values: Any) -> str:
    """A template of ours with every value escaped."""
    return str(environment(asset).get_template(template).render(values))


@cache
def environment(read: Callable[[str], str]) -> Any:
    """Templates that ``read`` gives by name, with every value escaped and none missing."""
    import jinja2

    # autoescape=True and not select_autoescape: that one looks at the ending, which is .j2 here, and would escape nothing
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(read),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def asset(name: str) -> str:
    """A file of the package's own templates."""
    return resources.files("grb").joinpath("leaderboard").joinpath("templates").joinpath(name).read_text("utf-8")


def source_hash(text: str) -> str:
    """How a content security policy names an inline script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
