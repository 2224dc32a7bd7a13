"""Options that several verbs share, and names for shell completion."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grb import catalogue
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.pipeline.store import Store


def names(*kinds: str) -> Callable[[str], list[str]]:
    """Completion of the catalogue's names of some kinds; of all kinds if none is given."""

    def complete(incomplete: str) -> list[str]:
        known = [name for kind in kinds or catalogue.kinds() for name in catalogue.entries(kind)]
        return [name for name in dict.fromkeys(known) if name.startswith(incomplete)]

    return complete


def use_machine(threads: int) -> None:
    """Threads of torch, and large memory blocks that are reused: choices of a program, not of the library."""
    import torch

    from grb.graph.memory import keep_memory

    torch.set_num_threads(threads)
    keep_memory()


def check_counts(**options: int | None) -> None:
    """Refuse a count below one; None means that the option was not given."""
    for name, value in options.items():
        if value is not None and value < 1:
            raise DataError(f"--{name.replace('_', '-')} is {value}, but at least 1 is needed")


def check_seed(name: str, seed: int | None) -> None:
    """Refuse a seed that torch does not take."""
    if seed is not None and not 0 <= seed < 2**63:
        raise DataError(f"--{name} is {seed}, but a whole number from 0 to 2**63 - 1 is needed")


def is_one_file(save: Path, suffix: str) -> bool:
    """Whether ``--save`` means a file and not a directory."""
    return save.suffix == suffix and not save.is_dir()


def check_target(save: Path | None, runs: int, suffix: str, *, example: str) -> None:
    """Refuse before the work what could not be written after it; nothing is created here."""
    if save is None:
        return
    if is_one_file(save, suffix) and runs > 1:
        raise DataError(f"--save is one file, but there are {runs} runs; give a directory, for instance {example}")
    check_directory(save.parent if is_one_file(save, suffix) else save, save)


def check_directory(directory: Path, wanted: Path) -> None:
    """Refuse a directory in which ``wanted`` could not be written, whether or not it exists yet."""
    existing = directory
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise DataError(f"cannot write {wanted}: {existing} is not a directory; choose another place")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise DataError(f"cannot write {wanted}: no permission in {existing}; choose another place")
    try:  # some file systems grant a permission and refuse the file
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"cannot write {wanted}: {reason} in {existing}; choose another place") from None


Json = Annotated[bool, typer.Option("--json", help="Machine-readable JSON on stdout; words for humans go to stderr.")]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Look here before GRB_DATA: the directory with a dataset's npz files, or a root of such."),
]


StoreOption = Annotated[
    Path | None, typer.Option("--store", help="Directory of records and artefacts; the one below GRB_HOME by default.")
]
StoreArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[STORE]", help="A store, or a file of `--format json`; the store below GRB_HOME by default."
    ),
]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="File or directory to write to.")]
Recipes = Annotated[
    list[str] | None,
    typer.Option("--recipe", help="Name of a recipe whose results to show; repeatable; all of the store by default."),
]
Difficulty = Annotated[
    str | None, typer.Option("--difficulty", help="easy, medium, hard or full; the last of a board by default.")
]


def store_at(path: Path | None) -> Store:
    """The store at a path, or the one below GRB_HOME."""
    from grb.dataset import registry
    from grb.pipeline.store import Store

    return Store(path or registry.home() / "store")


def group(about: str) -> typer.Typer:
    """A command with verbs of its own; without one of them it shows its help."""
    made = typer.Typer(help=about, rich_markup_mode="rich")

    @made.callback(invoke_without_command=True)
    def root(ctx: typer.Context) -> None:
        if ctx.invoked_subcommand is None:
            typer.echo(ctx.get_help())

    return made
