"""Static files for a web server: an index, one page per board, the history of ranks, and its feeds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from grb._version import __version__
from grb.atomic import write_atomic
from grb.errors import DataError
from grb.evaluator.board import Board
from grb.leaderboard import export, palette, table
from grb.leaderboard.changes import FILE, Change, History
from grb.leaderboard.feed import ATOM_FILE, JSON_FILE, atom_feed, json_feed
from grb.leaderboard.headline import answers
from grb.leaderboard.mini_chart import ROW_HEIGHT, WIDTH, mini_chart, ticks
from grb.leaderboard.page import TITLE, asset, build_page, render, source_hash
from grb.leaderboard.text import MESSAGE_LENGTH, safe_link, sanitize, slug

# changes of ranks that the index tells; the feeds and changes.json have more
SHOWN = 20


def write_site(
    boards: Sequence[Board],
    directory: str | os.PathLike[str],
    taxonomy: Mapping[str, Any] | None = None,
    *,
    title: str = TITLE,
    url: str = "",
) -> list[Path]:
    """Write an index, a page per board, ``boards.csv``, ``boards.json``, and what changed: ``changes.json`` and two feeds.

    Files of those names are replaced. Ranks are compared with those of ``changes.json``, if the directory has one; what is
    different is told in the index and in the feeds. The same boards give the same bytes.

    Args:
        boards: What it shows; boards of one sweep share a page.
        directory: Where it is written.
        taxonomy: An analysis as JSON values, for a tab of every page.
        title: Heading of the index.
        url: Address of the site, for absolute addresses in the feeds.
    """
    place = Path(directory)
    if place.exists() and not place.is_dir():
        raise DataError(f"{place} is a file, but a site is a directory; choose another location")
    if url and safe_link(url) is None:
        raise DataError(f"the site's address is '{sanitize(url)}', but one with http:// or https:// is needed")
    address = url.rstrip("/") + "/" if url else ""
    pages = by_page(boards)
    first = [own[0] for own in pages]
    files = file_names(first)
    texts = {
        file: build_page(own, taxonomy, title=_title(own[0]), home="index.html")
        for file, own in zip(files, pages, strict=True)
    }
    history = History.read(place / FILE).after(first, files, _today())
    texts["index.html"] = build_index(first, files, title=title, taxonomy=taxonomy is not None, changes=history.changes)
    texts[FILE] = history.to_json()
    texts[JSON_FILE] = json_feed(history.changes, title=title, url=address)
    texts[ATOM_FILE] = atom_feed(history.changes, title=title, url=address)
    texts["boards.csv"] = export.to_csv([row for board in boards for row in export.cell_rows(board)])
    texts["boards.json"] = export.to_json(boards)
    return [write_text(place / name, text) for name, text in texts.items()]


def by_page(boards: Sequence[Board]) -> list[list[Board]]:
    """Boards that share a page: those of one sweep, whose charts go through all of them; every other board is alone."""
    pages: dict[tuple[str, ...], list[Board]] = {}
    for number, board in enumerate(boards):
        own = (str(board.meta.get("recipe")), board.dataset, board.scenario)
        pages.setdefault(own if board.limit is not None else (str(number),), []).append(board)
    return list(pages.values())


def _today() -> str:
    """The day in UTC; that of SOURCE_DATE_EPOCH where a build is to be repeated."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(given), timezone.utc) if given.isdigit() else datetime.now(timezone.utc)
    return now.strftime("%Y-%m-%d")


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


def build_index(
    boards: Sequence[Board],
    files: Sequence[str],
    *,
    title: str = TITLE,
    taxonomy: bool = False,
    changes: Sequence[Change] = (),
) -> str:
    """The index as text: a card for every board with its headline, a small chart and remarks, the rules, how to submit.

    Args:
        boards: The boards, one of every page.
        files: Their pages.
        title: The heading.
        taxonomy: Whether pages have a tab of the taxonomy.
        changes: What happened to ranks, the newest first.
    """
    from markupsafe import Markup

    style = asset("page.css") + "\n" + palette.rules()
    return render(
        "index.html.j2",
        title=sanitize(title, 120),
        version=__version__,
        style=Markup(style),
        style_hash=source_hash(style),
        width=WIDTH,
        ticks=ticks(),
        # the worst case says most: boards that have one come first
        boards=[
            _line(board, file)
            for board, file in sorted(zip(boards, files, strict=True), key=lambda pair: pair[0].rank_by != "worst_case")
        ],
        taxonomy=taxonomy,
        changes=changes[:SHOWN],
        feeds=(JSON_FILE, ATOM_FILE),
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
        "date": sanitize(board.meta.get("date") or "", 10),
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
