"""``grb leaderboard``: the boards of a store as tables, one HTML page, a site, CSV, JSON, Markdown or LaTeX."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.cli import output
from grb.cli.options import (
    Difficulty,
    Json,
    Output,
    Recipes,
    StoreArgument,
    check_directory,
    expect_many_records,
    store_at,
)
from grb.errors import DataError, UnknownName

if TYPE_CHECKING:
    from grb.evaluator.board import Board

FORMATS = ("table", "html", "site", "csv", "csv-wide", "csv-runs", "json", "markdown", "latex")
DEFAULT_FILES = {"html": Path("leaderboard.html"), "site": Path("site")}
# what is shown without a store
FILES = (".json", ".csv")
MAX_TAXONOMY = 64 * 2**20


def leaderboard(
    store: StoreArgument = None,
    form: Annotated[str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.")] = "table",
    written: Output = None,
    recipe: Recipes = None,
    difficulty: Difficulty = None,
    metric: Annotated[
        str, typer.Option(help="What cells show: score, drop, changed, difference (to the paper), or a metric's name.")
    ] = "score",
    taxonomy: Annotated[
        list[Path] | None,
        typer.Option(
            "--taxonomy",
            help="JSON of `grb taxonomy analyse --json` or `place --json`, shown in its own tab of the page; repeatable.",
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    key: Annotated[
        list[Path] | None,
        typer.Option("--key", help="Public key whose signatures say who measured, in every row; repeatable."),
    ] = None,
    rank_by: Annotated[
        str | None,
        typer.Option(
            "--rank-by",
            help="Score that ranks: worst_case or weighted (the paper's); by default the worst case if it was measured.",
        ),
    ] = None,
    promote: Annotated[
        list[str] | None,
        typer.Option("--promote", help="Submitted attack that counts in the weighted score like ours; repeatable."),
    ] = None,
    details: Annotated[
        bool,
        typer.Option(
            "--details",
            help="Add attacked neighbourhoods and accuracy by degree; the datasets must be on this machine.",
        ),
    ] = False,
    url: Annotated[str, typer.Option(help="Address of the site, for absolute addresses in its feeds.")] = "",
    as_json: Json = False,
) -> None:
    """Show the results of a store: ranks, scores under every attack, costs, and the paper's numbers where it has some.

    The page (html) is one file that works from disk and asks nothing of the network. Only records are read: no dataset,
    recipe or model is needed, unless --details asks for what only these know.

    \b
    Examples:
      grb leaderboard results
      grb leaderboard results --format html -o page.html
      grb leaderboard results --format html --details
      grb leaderboard results --recipe grb-cora --difficulty easy --metric drop
      grb leaderboard results --rank-by weighted
      grb leaderboard results --format site -o public --url https://example.org/board
      grb leaderboard results --format csv -o results.csv
      grb leaderboard scores.csv --format html
    """
    from grb.leaderboard import table

    form = "json" if as_json and form == "table" else form
    if url and form != "site":
        raise DataError(f"--url is the address of a site, but --format is {form}; leave it out, or give --format site")
    if form not in FORMATS:
        raise UnknownName("format", form, FORMATS, advice=f"Allowed: {', '.join(FORMATS)}.")
    written = written or DEFAULT_FILES.get(form)
    if written is not None:
        check_directory(written if form == "site" else written.parent, written)
        if written.is_dir() and form != "site":
            raise DataError(f"{written} is a directory, but a file is needed; add its name, for instance page.html")
    analysis = read_taxonomy(taxonomy)
    boards = boards_at(store, recipe, key, rank_by=rank_by, promoted=promote or ())
    table.check_metric(metric, boards)
    if details:
        boards = _detailed(boards, store)
    if form in DEFAULT_FILES:
        assert written is not None
        _report_written(_write_pages(form, boards, written, analysis, title, url), boards, as_json)
    elif form == "table" and written is None:
        show_boards(boards, difficulty=difficulty, metric=metric)
    else:
        _write(_text(form, boards, difficulty, metric), written)


def _detailed(boards: list[Board], source: Path | None) -> list[Board]:
    """The boards with their details; one whose dataset is not here stays as it is, and that is said."""
    from grb.errors import GRBError
    from grb.leaderboard.details import with_details

    if source is not None and source.suffix in FILES:
        raise DataError(f"--details reads the edits of a store, but {source} is a file of boards; give the store")
    found = []
    for board in boards:
        try:
            found.append(with_details(board, store_at(source)))
        except GRBError as error:
            output.echo(f"without details: {error}")
            found.append(board)
    return found


def _write_pages(
    form: str, boards: list[Board], written: Path, analysis: dict[str, Any] | None, title: str | None, url: str
) -> list[Path]:
    from grb.leaderboard.page import TITLE, build_page
    from grb.leaderboard.site import write_site, write_text

    if form == "html":
        return [write_text(written, build_page(boards, analysis, title=title or TITLE))]
    return write_site(boards, written, analysis, title=title or TITLE, url=url)


def _text(form: str, boards: list[Board], difficulty: str | None, metric: str) -> str:
    from grb.leaderboard import export

    rows = {"csv": export.cell_rows, "csv-wide": export.wide_rows, "csv-runs": export.run_rows}
    if form in rows:
        return export.to_csv([row for board in boards for row in rows[form](board)])
    if form == "json":
        return export.to_json(boards)
    writer = export.to_latex if form == "latex" else export.to_markdown
    return "\n".join(writer(board, difficulty, metric) for board in boards)


def show_boards(
    boards: Sequence[Board], *, as_json: bool = False, difficulty: str | None = None, metric: str = "score"
) -> None:
    """Boards on stdout: tables, or one line of JSON; those of a sweep as one table for every varied limit."""
    from grb.leaderboard import export, table
    from grb.leaderboard.text import MESSAGE_LENGTH, sanitize

    if as_json:
        sys.stdout.write(export.to_json(boards))
        return
    swept = [board for board in boards if board.limit is not None]
    tables = [
        *(each for board in boards if board.limit is None for each in _tables(board, difficulty, metric)),
        *table.sweep_tables(swept, difficulty, sign=output.plus_minus()),
    ]
    for each in tables:
        output.table(each.title, each.headers, each.rows, numbers=each.numbers)
    for board in boards:
        measured, planned = board.meta.get("measured"), board.meta.get("planned")
        if isinstance(measured, int) and isinstance(planned, int) and measured < planned:
            output.echo(f"{measured} of {planned} measurements are done; ranks may still change")
        if signers := board.meta.get("measured_by"):
            counted = ", ".join(f"{sanitize(name)} ({count} scores)" for name, count in dict(signers).items())
            output.echo(f"measured by: {counted}")
        for flag in board.flags:
            output.echo(f"warning: {sanitize(flag, MESSAGE_LENGTH)}")


def _tables(board: Board, difficulty: str | None, metric: str) -> Sequence[Any]:
    from grb.leaderboard import table

    return table.tables(board, difficulty, metric, sign=output.plus_minus())


def boards_at(
    source: Path | None,
    recipes: Sequence[str] | None,
    keys: Sequence[Path] | None = None,
    *,
    rank_by: str | None = None,
    promoted: Sequence[str] = (),
) -> list[Board]:
    """The boards of a store, of a JSON file that ``--format json`` wrote, or of a CSV file of ``--format csv-runs``."""
    from grb.evaluator.board import Ranking

    ranking = Ranking(rank_by, tuple(promoted))
    if source is not None and source.suffix in FILES:
        from grb.leaderboard.export import read_boards
        from grb.leaderboard.score_files import read_scores

        if promoted or (rank_by and source.suffix == ".json"):
            raise DataError(
                f"--rank-by and --promote need the scores of a store, but {source} is a file of boards; give the store"
            )
        if recipes:
            raise DataError(f"--recipe chooses from a store, but {source} is a file of boards; leave it out")
        if keys:
            raise DataError(
                f"--key checks the signatures of a store, but {source} is a file of boards without any; give the store"
            )
        found = read_boards(source) if source.suffix == ".json" else read_scores(source, ranking)
        if any(board.meta.get("measured_by") for board in found):
            output.echo(f"who measured is what {source} says; signatures can be checked in its store only")
        return found
    from grb.pipeline.results import boards

    if source is not None and not source.exists():
        raise DataError(f"no store at {source}; `grb reproduce synth-cora --store {source}` makes one")
    if source is not None and source.is_file():
        raise DataError(
            f"{source} is a file, but a store, a JSON file of boards or a CSV file of scores is shown; "
            f"`grb store copy {source} STORE` makes a store of a bundle"
        )
    expect_many_records()
    return boards(
        store_at(source), recipes or None, trusted=[_public_key(path) for path in keys or ()], ranking=ranking
    )


def _public_key(path: Path) -> Any:
    from grb.pipeline.attestation import read_public_key

    public = Path(f"{path}.pub")
    if path.suffix != ".pub" and public.exists():
        raise DataError(f"{path} is a private key, but readers check signatures with the public one; give {public}")
    return read_public_key(path)


def read_taxonomy(paths: Sequence[Path] | None) -> dict[str, Any] | None:
    """An analysis of `grb taxonomy analyse`, a placement of `grb taxonomy place`, or both, from their JSON."""
    if not paths:
        return None
    from grb.leaderboard.export import read_json
    from grb.leaderboard.taxonomy_view import combined

    found = []
    for path in paths:
        values = read_json(path, MAX_TAXONOMY, "`grb taxonomy analyse --json` writes some")
        if not isinstance(values, dict):
            raise DataError(f"{path} holds a {type(values).__name__}, but an analysis is one JSON object")
        found.append(values)
    return combined(found)


def _write(text: str, written: Path | None) -> None:
    if written is None:
        sys.stdout.write(text)
        return
    from grb.leaderboard.site import write_text

    write_text(written, text)
    output.echo(f"written to {written}")


def _report_written(paths: Sequence[Path], boards: Sequence[Board], as_json: bool) -> None:
    if as_json:
        names = [{"dataset": board.dataset, "recipe": board.meta.get("recipe")} for board in boards]
        files = [{"path": str(path), "bytes": path.stat().st_size} for path in paths]
        output.print_json({"files": files, "boards": names})
        return
    for path in paths:
        output.echo(f"written to {path} ({path.stat().st_size / 1024:.0f} kB)")
