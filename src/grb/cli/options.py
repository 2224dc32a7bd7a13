"""Options that several verbs share, and names for shell completion."""

from __future__ import annotations

import math
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb import catalogue
from grb.cli import output
from grb.errors import DataError
from grb.names import is_import_path

if TYPE_CHECKING:
    from grb.dataset import Dataset
    from grb.pipeline.store import Store

MAX_SEEDS = 10_000
EXAMPLES = {"--param": "lr=0.01", "--limit": "nodes=20", "--model-param": "groups=20"}
# parameters that are lists, also with one value
LISTS = ("hidden_features",)


def names(*kinds: str) -> Callable[[str], list[str]]:
    """Completion of the catalogue's names of some kinds; of all kinds if none is given."""

    def complete(incomplete: str) -> list[str]:
        known = [name for kind in kinds or catalogue.kinds() for name in catalogue.entries(kind)]
        return [name for name in dict.fromkeys(known) if name.startswith(incomplete)]

    return complete


def chosen_targets(text: str) -> str | list[str]:
    """What ``--targets`` says: ids of a file, one per line, or the text itself."""
    if not Path(text).is_file():
        return text
    try:
        lines = Path(text).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise DataError(f"{text} is no text file; one id per line is needed") from None
    ids = [line.strip() for line in lines if line.strip()]
    if not ids:
        raise DataError(f"{text} names no target; one id per line is needed")
    return ids


def model_file(given: Path) -> Path:
    """The file of a model as it was given, or if there is none, that of the published model of this name."""
    return _published(given, "model")


def edit_file(given: Path) -> Path:
    """The file or folder of edits as it was given, or if there is none, the file of the published edit of this name."""
    return _published(given, "edit")


def _published(given: Path, kind: str) -> Path:
    from grb.pipeline.published import resolved

    return resolved(given, kind)


def find_code(names: Iterable[str], folder: Path | None = None) -> None:
    """Let ``module:Class`` be found beside the recipe that names it, or in this directory; last, so that nothing is hidden."""
    if not any(is_import_path(name) for name in names):
        return
    for place in (folder, Path.cwd()):
        if place is not None and str(place.resolve()) not in sys.path:
            sys.path.append(str(place.resolve()))


def use_machine(threads: int | str) -> None:
    """Threads of torch, one until the size is known, and large memory blocks that are reused: choices of a program."""
    import torch

    from grb.graph.memory import keep_memory

    torch.set_num_threads(1 if threads == AUTO else int(threads))
    keep_memory()


def check_threads(threads: str) -> None:
    """Refuse a number of threads that is none, before anything is loaded."""
    if threads == AUTO:
        return
    if not threads.isdecimal():
        raise DataError(f"--threads is '{threads}', but a number or {AUTO} is needed")
    check_counts(threads=int(threads))


def use_threads(threads: str, dataset: Dataset) -> int:
    """Set the number of threads for a dataset, with a note where more than one would slow it down, and return it."""
    from grb.graph.threads import threads_for

    worth = threads_for(dataset.num_nodes)
    count = worth if threads == AUTO else int(threads)
    if count > worth == 1:
        output.echo(f"note: on {dataset.num_nodes} nodes {count} threads are slower than one; --threads {AUTO} chooses")
    use_machine(count)
    return count


def expect_many_records() -> None:
    """Look for garbage rarely: records hold no cycles, and looking for some takes a fifth of the time of reading them."""
    import gc

    gc.set_threshold(200_000, 20, 20)


def check_counts(**options: int | None) -> None:
    """Refuse a count below one; None means that the option was not given."""
    for name, value in options.items():
        if value is not None and value < 1:
            raise DataError(f"--{name.replace('_', '-')} is {value}, but at least 1 is needed")


def check_seed(name: str, seed: int | None) -> None:
    """Refuse a seed that torch does not take."""
    if seed is not None and not 0 <= seed < 2**63:
        raise DataError(f"--{name} is {seed}, but a whole number from 0 to 2**63 - 1 is needed")


def chosen_seeds(seed: int | None, seeds: str | None) -> tuple[int, ...]:
    """Return the seeds of ``--seed 3`` (one), ``--seeds 5`` (0 to 4), ``--seeds 2-4`` or ``--seeds 0,3``; 0 if none is given.

    >>> chosen_seeds(None, "3"), chosen_seeds(None, "2-4"), chosen_seeds(None, "0,3"), chosen_seeds(7, None)
    ((0, 1, 2), (2, 3, 4), (0, 3), (7,))
    """
    if seed is not None and seeds is not None:
        raise DataError("--seed and --seeds were both given; --seeds 3 means 0, 1 and 2, --seed 3 means 3 alone")
    if seeds is None:
        check_seed("seed", seed)
        return (seed or 0,)
    found = re.fullmatch(r"(\d{1,19})-(\d{1,19})", seeds)
    chosen: Sequence[int] = ()
    if found:
        chosen = range(int(found[1]), int(found[2]) + 1)
    elif re.fullmatch(r"\d{1,6}", seeds):
        chosen = range(int(seeds))
    elif re.fullmatch(r"\d{1,19}(,\d{1,19})+", seeds):
        chosen = tuple(dict.fromkeys(map(int, seeds.split(","))))
    if not 1 <= len(chosen) <= MAX_SEEDS or max(chosen) >= 2**63:
        raise DataError(
            f"--seeds is '{seeds[:60]}', but a number of seeds (5), a range (0-4) or a list (0,3) is needed"
        )
    return tuple(chosen)


def chosen_difficulties(text: str | None, dataset: Dataset) -> list[str]:
    """Return the difficulties of ``easy,full``; all that the dataset has for ``all`` or if none is given."""
    from grb.dataset import DIFFICULTIES

    if text in (None, "all"):
        return [name for name in DIFFICULTIES if len(dataset.split.test.get(name, ()))]
    chosen = list(dict.fromkeys(name.strip() for name in str(text).split(",")))
    for name in chosen:
        if not len(dataset.test_ids(name)):
            raise DataError(f"dataset '{dataset.name}' has no {name} test nodes")
    return chosen


def settings_of(given: Sequence[str] | None, option: str) -> dict[str, Any]:
    """Return names and values of ``NAME=VALUE``, as a recipe has them.

    >>> settings_of(["lr=0.01", "hidden_features=64,64", "bias=true"], "--param")
    {'lr': 0.01, 'hidden_features': [64, 64], 'bias': True}
    """
    found: dict[str, Any] = {}
    for each in given or ():
        name, sign, value = each.partition("=")
        name = name.strip().replace("-", "_")
        if not sign or not name.isidentifier() or not value.strip():
            raise DataError(
                f"{option} is '{each[:60]}', but NAME=VALUE is needed, for instance {option} {EXAMPLES[option]}"
            )
        if name in found:
            raise DataError(f"{option} gives {name} twice; once is enough")
        parts = [_value(part.strip(), each, option) for part in value.split(",")]
        found[name] = parts if len(parts) > 1 or name in LISTS else parts[0]
    return found


def _value(text: str, given: str, option: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if not math.isfinite(number):
            raise DataError(f"{option} is '{given[:60]}', but only finite numbers are possible")
        return number
    if not text:
        raise DataError(f"{option} is '{given[:60]}', but a value is missing beside a comma")
    return text


def is_one_file(written: Path, suffix: str) -> bool:
    """Whether ``--output`` means a file and not a directory."""
    return written.suffix == suffix and not written.is_dir()


def check_target(written: Path | None, runs: int, suffix: str, *, example: str) -> None:
    """Refuse before the work what could not be written after it; nothing is created here."""
    if written is None:
        return
    if is_one_file(written, suffix) and runs > 1:
        raise DataError(f"--output is one file, but there are {runs} runs; give a directory, for instance {example}")
    check_directory(written.parent if is_one_file(written, suffix) else written, written)


def check_directory(directory: Path, wanted: Path) -> None:
    """Refuse a directory in which ``wanted`` could not be written, whether or not it exists yet."""
    existing = directory
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise DataError(f"cannot write {wanted}: {existing} is not a directory; choose another location")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise DataError(f"cannot write {wanted}: no permission in {existing}; choose another location")
    try:  # some file systems grant a permission and refuse the file
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"cannot write {wanted}: {reason} in {existing}; choose another location") from None


Json = Annotated[bool, typer.Option("--json", help="Write JSON to stdout; messages go to stderr.")]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Directory to search before GRB_DATA: one with a dataset's npz files, or with folders of such."),
]
DatasetOption = Annotated[
    str,
    typer.Option("--dataset", "-d", help="Name, file or folder of the dataset.", autocompletion=names("dataset")),
]
TrainedOn = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        "-d",
        help="Name, file or folder of the dataset; by default the one that the model was trained on.",
        autocompletion=names("dataset"),
    ),
]
Seed = Annotated[int | None, typer.Option("--seed", metavar="N", help="One random seed; 0 by default.")]
Seeds = Annotated[
    str | None,
    typer.Option("--seeds", metavar="5|0-4|0,3", help="Several random seeds: how many, a range, or a list."),
]
Difficulties = Annotated[
    str | None,
    typer.Option("--difficulty", metavar="NAME,...", help="Test sets, for instance easy,full; or all."),
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param", "-p", metavar="NAME=VALUE", help="A setting instead of the paper's, as in a recipe; repeatable."
    ),
]


def limit_option(names: str) -> Any:
    """``--limit NAME=VALUE`` with the names that a verb takes."""
    text = f"A limit of the threat model instead of the paper's: {names}; repeatable."
    return typer.Option("--limit", metavar="NAME=VALUE", help=text)


Device = Annotated[str, typer.Option("--device", help="Device to compute on: cpu, cuda, cuda:1, ...")]
Threads = Annotated[
    str,
    typer.Option(
        "--threads",
        metavar="N",
        help="Number of torch threads, or auto: one for small graphs, all cores for large ones. Results are reproducible "
        "per number.",
    ),
]
AUTO = "auto"


TargetNodes = Annotated[
    str | None,
    typer.Option(
        "--targets",
        help="Test nodes to attack: class=NAME, a column, a file with one id per line, random=20, degrees=5 (of every band), "
        "margin-low=10, margin-high=10 or nettack=40 (by the model's margins); all by default.",
    ),
]
TrustCode = Annotated[
    bool,
    typer.Option("--trust-code", help="Accept records that name code as package.module:Class; for your own stores."),
]
StoreOption = Annotated[
    Path | None, typer.Option("--store", help="Directory of records and artefacts; the one below GRB_HOME by default.")
]
KeptStore = Annotated[
    Path | None,
    typer.Option(
        "--store", help="Store that keeps the jobs, so that running again resumes; a temporary one by default."
    ),
]
StoreArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[STORE]",
        help="A store, or a file of `--format json` or `csv-runs`; the store below GRB_HOME by default.",
    ),
]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="File or directory to write to.")]
Recipes = Annotated[
    list[str] | None,
    typer.Option("--recipe", help="Name of a recipe whose results to show; repeatable; all of the store by default."),
]
Difficulty = Annotated[
    str | None,
    typer.Option("--difficulty", help="Difficulty: easy, medium, hard or full; the last of a board by default."),
]


def store_at(path: Path | None) -> Store:
    """The store at a path, or the one below GRB_HOME."""
    from grb.dataset import registry
    from grb.pipeline.store import Store

    return Store(path or registry.home() / "store")


def group(about: str) -> typer.Typer:
    """Return a command with verbs; without one of them it shows its help."""
    made = typer.Typer(help=about, rich_markup_mode="rich")

    @made.callback(invoke_without_command=True)
    def root(ctx: typer.Context) -> None:
        if ctx.invoked_subcommand is None:
            typer.echo(ctx.get_help())

    return made
