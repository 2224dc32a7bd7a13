"""``grb leaderboard``: boards of a store in the terminal, as one HTML page, or as a site."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.cli import output
from grb.cli.options import DataDir, Json, check_directory, group
from grb.errors import DataError, UnknownName

if TYPE_CHECKING:
    from grb.evaluator.board import Board
    from grb.leaderboard.boards import Found

app = group("Show results: in the terminal, as one HTML page, as a site.")
FORMATS = ("table", "csv", "csv-wide", "csv-runs", "json", "md")
MAX_TAXONOMY = 64 * 2**20

Source = Annotated[
    Path | None,
    typer.Argument(
        metavar="[STORE]",
        help="A store, or a file that `grb leaderboard show --format json` wrote; the store below GRB_HOME if not given.",
    ),
]
Recipes = Annotated[
    list[str] | None,
    typer.Option(
        "--recipe", help="A recipe's name or YAML file, again for more; all of `grb ls recipes` that have scores."
    ),
]
Taxonomy = Annotated[
    Path | None, typer.Option("--taxonomy", help="JSON of `grb taxonomy analyse --json`, for a tab of its own.")
]
Title = Annotated[str | None, typer.Option(help="Heading of the page.")]


@app.command()
def show(
    store: Source = None,
    recipe: Recipes = None,
    difficulty: Annotated[str | None, typer.Option(help="easy, medium, hard or full; the last if not given.")] = None,
    metric: Annotated[str, typer.Option(help="accuracy, drop, changed or difference (to the paper).")] = "accuracy",
    form: Annotated[str, typer.Option("--format", help="table, csv, csv-wide, csv-runs, json or md.")] = "table",
    written: Annotated[Path | None, typer.Option("-o", "--output", help="Write to this file, not to stdout.")] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Show ranks, accuracy under every attack, what attacks cost, and the paper's numbers where it has some.

    \b
    Examples:
      grb leaderboard show results
      grb leaderboard show results --recipe grb-cora --mode easy --metric drop
      grb leaderboard show results --format csv -o results.csv
    """
    from grb.leaderboard import export, table

    if form not in FORMATS:
        raise UnknownName("format", form, FORMATS, advice=f"Allowed: {', '.join(FORMATS)}.")
    table.chosen_metric(metric)
    if written is not None:
        check_directory(written.parent, written)
    boards = boards_at(store, recipe, data_dir)
    form = "json" if as_json else form
    if form == "table" and written is None:
        for board in boards:
            show_board(board, difficulty=difficulty, metric=metric)
        return
    rows = {"csv": export.cell_rows, "csv-wide": export.wide_rows, "csv-runs": export.run_rows}
    if form in rows:
        text = export.to_csv([row for board in boards for row in rows[form](board)])
    elif form == "json":
        text = export.to_json(boards)
    else:
        text = "\n".join(export.to_markdown(board, difficulty, metric) for board in boards)
    _write(text, written)


@app.command()
def build(
    store: Source = None,
    written: Annotated[Path, typer.Option("-o", "--output", help="The file.")] = Path("leaderboard.html"),
    recipe: Recipes = None,
    taxonomy: Taxonomy = None,
    title: Title = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Write one self-contained HTML page: it works from disk, asks nothing of the network, and can be mailed.

    \b
    Examples:
      grb leaderboard build results -o page.html
      grb leaderboard build results --recipe grb-cora --taxonomy taxonomy.json -o page.html
    """
    from grb.leaderboard.page import TITLE, build_page
    from grb.leaderboard.site import write_text

    check_directory(written.parent, written)
    if written.is_dir():
        raise DataError(f"{written} is a directory, but a page is a file; add its name, for instance page.html")
    analysis = read_taxonomy(taxonomy)
    boards = boards_at(store, recipe, data_dir)
    path = write_text(written, build_page(boards, analysis, title=title or TITLE))
    _tell_written([path], boards, as_json)


@app.command()
def site(
    store: Source = None,
    written: Annotated[Path, typer.Option("-o", "--output", help="The directory.")] = Path("site"),
    recipe: Recipes = None,
    taxonomy: Taxonomy = None,
    title: Title = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Write static files for a web server: an index, one page per board, and the numbers as CSV and JSON.

    \b
    Example:
      grb leaderboard site results -o public/
    """
    from grb.leaderboard.page import TITLE
    from grb.leaderboard.site import write_site

    check_directory(written, written)
    analysis = read_taxonomy(taxonomy)
    boards = boards_at(store, recipe, data_dir)
    _tell_written(write_site(boards, written, analysis, title=title or TITLE), boards, as_json)


def show_board(board: Board, *, as_json: bool = False, difficulty: str | None = None, metric: str = "accuracy") -> None:
    """A board on stdout: tables, or one line of JSON."""
    from grb.leaderboard import export, table
    from grb.leaderboard.text import SENTENCE, shown

    if as_json:
        sys.stdout.write(export.to_json([board]))
        return
    for each in table.tables(board, difficulty, metric, sign=output.plus_minus()):
        output.table(each.title, each.headers, each.rows, numbers=each.numbers)
    measured, planned = board.meta.get("measured"), board.meta.get("planned")
    if isinstance(measured, int) and isinstance(planned, int) and measured < planned:
        output.say(f"{measured} of {planned} measurements are done; ranks may still change")
    for flag in board.flags:
        output.say(f"warning: {shown(flag, SENTENCE)}")


def boards_at(source: Path | None, recipes: Sequence[str] | None, data_dir: Path | None) -> list[Board]:
    """The boards of a store, or of a JSON file."""
    from grb.leaderboard.export import read_boards

    if source is not None and source.suffix == ".json":
        if recipes:
            raise DataError(f"--recipe chooses from a store, but {source} is a file of boards; leave it out")
        return read_boards(source)
    return [found.board for found in found_at(source, recipes, data_dir)]


def found_at(source: Path | None, recipes: Sequence[str] | None, data_dir: Path | None) -> list[Found]:
    """The studies of a store with their boards; what is left out is said on stderr."""
    from grb.cli.run_options import store_at
    from grb.leaderboard.boards import studies_of

    if source is not None and not source.exists():
        raise DataError(f"no store at {source}; `grb reproduce synth-cora --store {source}` makes one")
    place = None if data_dir is None else str(data_dir)
    return studies_of(store_at(source), recipes or None, data_dir=place, on_skip=output.say)


def read_taxonomy(path: Path | None) -> dict[str, Any] | None:
    """An analysis of `grb taxonomy analyse` from its JSON."""
    if path is None:
        return None
    from grb.atomic import size_of

    try:
        if size_of(path) > MAX_TAXONOMY:
            raise DataError(f"{path} is larger than {MAX_TAXONOMY} bytes; an analysis is shorter")
        values = json.loads(path.read_bytes())
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check the path") from None
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no JSON ({str(error)[:80]}); `grb taxonomy analyse --json` writes some") from None
    if not isinstance(values, dict):
        raise DataError(f"{path} holds a {type(values).__name__}, but an analysis is one JSON object")
    return values


def _write(text: str, written: Path | None) -> None:
    if written is None:
        sys.stdout.write(text)
        return
    from grb.leaderboard.site import write_text

    write_text(written, text)
    output.say(f"written to {written}")


def _tell_written(paths: Sequence[Path], boards: Sequence[Board], as_json: bool) -> None:
    if as_json:
        names = [{"dataset": board.dataset, "recipe": board.meta.get("recipe")} for board in boards]
        files = [{"path": str(path), "bytes": path.stat().st_size} for path in paths]
        output.print_json({"files": files, "boards": names})
        return
    for path in paths:
        output.say(f"written to {path} ({path.stat().st_size / 1024:.0f} kB)")
