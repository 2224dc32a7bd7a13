"""Options that several verbs share, and names for shell completion."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from grb import catalogue
from grb.errors import DataError


def names(*kinds: str) -> Callable[[str], list[str]]:
    """Completion of the catalogue's names of some kinds; of all kinds if none is given."""

    def complete(incomplete: str) -> list[str]:
        known = [name for kind in kinds or catalogue.kinds() for name in catalogue.entries(kind)]
        return [name for name in dict.fromkeys(known) if name.startswith(incomplete)]

    return complete


def check_counts(**options: int | None) -> None:
    """Refuse a count below one; None means that the option was not given."""
    for name, value in options.items():
        if value is not None and value < 1:
            raise DataError(f"--{name} is {value}, but at least 1 is needed")


Json = Annotated[bool, typer.Option("--json", help="Machine-readable JSON on stdout; words for humans go to stderr.")]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Look here before GRB_DATA: the directory with a dataset's npz files, or a root of such."),
]
