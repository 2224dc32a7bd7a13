"""Output of the commands: results (text, tables, JSON) on stdout, messages along the way on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

# piped tables are for grep and for files: nothing wraps
PIPE_WIDTH = 400


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Return a console on stdout or stderr as it is now; names in brackets are text, not markup."""
    made = _Console(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)
    if not made.is_terminal:
        made.width = PIPE_WIDTH
    return made


def echo(message: str) -> None:
    """Print a human-readable message on stderr."""
    console(stderr=True).print(message)


def print_json(value: Any) -> None:
    """Print JSON on stdout; NaN and infinity are a bug and raise."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False) + "\n")


def table(
    title: str | None, headers: Sequence[str], rows: Iterable[Sequence[Any]], *, numbers: Iterable[str] = ()
) -> None:
    """Print a table on stdout; columns named in ``numbers`` are aligned to the right."""
    right = set(numbers)
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    for header in headers:
        grid.add_column(Text(header), justify="right" if header in right else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(cell if isinstance(cell, Text) else Text(cell_text(cell)) for cell in row))
    _print(title, grid)


def facts(title: str | None, pairs: Iterable[tuple[str, Any]]) -> None:
    """Print names and values in two columns on stdout, without a header."""
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(Text(name), Text(cell_text(value)))
    _print(title, grid)


def _print(title: str | None, grid: Table) -> None:
    shown = console()
    with shown.capture() as captured:
        if title:
            shown.print(title, style="bold")
        shown.print(grid, soft_wrap=False)
    # rich fills every line with spaces up to the table's width
    lines = captured.get().splitlines()
    shown.file.write("\n".join(line.rstrip() for line in lines) + "\n\n")


def cell_text(value: Any) -> str:
    """Return a value as text: '-' for None, yes or no, up to four decimals."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e-3 else f"{value:.4f}".rstrip("0").rstrip(".")
    if isinstance(value, list | tuple):
        return ", ".join(cell_text(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key} {cell_text(item)}" for key, item in value.items())
    return str(value)


def plus_minus() -> str:
    """Return the sign ±, or +- where stdout cannot encode it."""
    try:
        "±".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return "+-"
    return "±"
