"""Static files for a web server: an index and one page per board."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from grb._version import __version__
from grb.atomic import write_atomic
from grb.errors import DataError
from grb.evaluator.board import Board
from grb.leaderboard import export, palette, table
from grb.leaderboard.headline import answers
from grb.leaderboard.mini_chart import ROW_HEIGHT, WIDTH, mini_chart
from grb.leaderboard.page import TITLE, asset, build_page, render, source_hash
from grb.leaderboard.text import MESSAGE_LENGTH, sanitize, slug


def write_site(
    boards: Sequence[Board],
    directory: str | os.PathLike[str],
    taxonomy: Mapping[str, Any] | None = None,
    *,
    title: str = TITLE,
) -> list[Path]:
    """Write ``index.html``, a page per board, ``boards.csv`` and ``boards.json``; files of those names are replaced."""
    place = Path(directory)
    if place.exists() and not place.is_dir():
        raise DataError(f"{place} is a file, but a site is a directory; choose another location")
    files = file_names(boards)
    texts = {
        file: build_page([board], taxonomy, title=_title(board), home="index.html")
        for file, board in zip(files, boards, strict=True)
    }
    texts["index.html"] = build_index(boards, files, title=title, taxonomy=taxonomy is not None)
    texts["boards.csv"] = export.to_csv([row for board in boards for row in export.cell_rows(board)])
    texts["boards.json"] = export.to_json(boards)
    return [write_text(place / name, text) for name, text in texts.items()]


def file_names(boards: Sequence[Board]) -> list[str]:
    """A file name per board, of harmless letters and all different."""
    seen: dict[str, int] = {}
    names = []
    for board in boards:
        stem = slug(f"{board.meta.get('recipe') or board.dataset}-{board.scenario}")
        stem = "board-index" if stem == "index" else stem
        seen[stem] = seen.get(stem, 0) + 1
        names.append(f"{stem}.html" if seen[stem] == 1 else f"{stem}--{seen[stem]}.html")
    return names


def build_index(boards: Sequence[Board], files: Sequence[str], *, title: str = TITLE, taxonomy: bool = False) -> str:
    """The index as text: a card for every board with its headline, a small chart and remarks, the rules, how to submit."""
    from markupsafe import Markup

    style = asset("page.css") + "\n" + palette.rules()
    return render(
        "index.html.j2",
        title=sanitize(title, 120),
        version=__version__,
        style=Markup(style),
        style_hash=source_hash(style),
        width=WIDTH,
        boards=[_line(board, file) for board, file in zip(boards, files, strict=True)],
        taxonomy=taxonomy,
    )


def _line(board: Board, file: str) -> dict[str, Any]:
    chart = mini_chart(board)
    sentences = answers(board, board.difficulties[-1])
    measured, planned = board.meta.get("measured"), board.meta.get("planned")
    short = isinstance(measured, int) and isinstance(planned, int) and measured < planned
    return {
        "file": file,
        "title": _title(board),
        "dataset": sanitize(board.dataset),
        "scenario": sanitize(board.scenario),
        "defenses": len(board.defenses),
        "attacks": len([name for name in board.attacks if name != table.CLEAN]),
        "headline": sanitize(sentences.winner, MESSAGE_LENGTH),
        "certainty": sanitize(sentences.certainty, MESSAGE_LENGTH),
        "attacker": sanitize(sentences.attacker, MESSAGE_LENGTH),
        "chart": chart,
        "height": ROW_HEIGHT * len(chart),
        "synthetic": bool(board.meta.get("synthetic")),
        "incomplete": f"{measured} of {planned} measurements" if short else "",
        "flags": len(board.flags),
    }


def _title(board: Board) -> str:
    return sanitize(board.meta.get("title") or f"{board.scenario} on {board.dataset}", 120)


def write_text(path: Path, text: str) -> Path:
    """Write a text file whole or not at all; its bytes are the same on every system."""
    return write_atomic(path, lambda stream: _write(stream, text.encode()))


def _write(stream: Any, data: bytes) -> None:
    stream.write(data)
