"""Boards to read: tables for a terminal, one self-contained HTML page, CSV, JSON and Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grb import _lazy

if TYPE_CHECKING:
    from grb.leaderboard.export import cell_rows, read_boards, run_rows, to_csv, to_json, to_markdown
    from grb.leaderboard.page import build_page
    from grb.leaderboard.score_files import read_scores
    from grb.leaderboard.site import write_site
    from grb.leaderboard.table import tables

_HOMES = {
    "export": ("cell_rows", "read_boards", "run_rows", "to_csv", "to_json", "to_markdown"),
    "page": ("build_page",),
    "score_files": ("read_scores",),
    "site": ("write_site",),
    "table": ("tables",),
}
__all__ = [
    "build_page",
    "cell_rows",
    "read_boards",
    "read_scores",
    "run_rows",
    "tables",
    "to_csv",
    "to_json",
    "to_markdown",
    "write_site",
]
__getattr__, __dir__ = _lazy.attach(
    __name__, {name: f"grb.leaderboard.{module}" for module, names in _HOMES.items() for name in names}
)
