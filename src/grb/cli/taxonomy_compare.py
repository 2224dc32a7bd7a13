"""``grb taxonomy compare``: own profiles beside the published ones."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.cli import output
from grb.cli.options import Json, check_directory
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.taxonomy import Comparison, Profiles
    from grb.taxonomy.compare import Beside


def compare(
    file: Annotated[
        Path, typer.Argument(metavar="FILE|STORE", help="A store, or runs as CSV, JSON or JSON lines, as for analyse.")
    ],
    model: Annotated[str, typer.Option(help="Profiling model whose runs count.")] = "gcn",
    markdown: Annotated[bool, typer.Option("--markdown", help="One Markdown table, a dataset in two rows.")] = False,
    out: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Also write a CSV table.")] = None,
    as_json: Json = False,
) -> None:
    """Set runs beside the published results of the same datasets: every ratio, one correlation, and where each is placed.

    \b
    Examples:
      grb taxonomy run --datasets enzymes --seeds 10 --store results
      grb taxonomy compare results
      grb taxonomy compare runs.jsonl --markdown
    """
    from grb import taxonomy
    from grb.taxonomy.read import pick

    if markdown and as_json:
        raise DataError("--markdown and --json were both given; give one of them")
    if out is not None and out.suffix != ".csv":
        raise DataError(f"the table would be {out}, but a name that ends in .csv is needed")
    if out is not None:
        check_directory(out.parent, out)
    own = pick(models_at(file), model, str(file))
    found = taxonomy.compare(own, model=model.upper())
    if out is not None:
        from grb.leaderboard.export import to_csv
        from grb.leaderboard.site import write_text

        write_text(out, to_csv(found.rows()))
    if as_json:
        output.print_json(_plain(found))
    elif markdown:
        typer.echo(as_markdown(found))
    else:
        _show(found)
    for sentence in found.notes:
        output.say(f"note: {sentence}")


def models_at(file: Path, kind: Any = None) -> dict[str, Profiles]:
    """Profiles by model, from a file or from a store: there every result that names a dataset, a perturbation and an AUROC."""
    from grb import taxonomy
    from grb.taxonomy.read import from_rows

    if not file.is_dir():
        return taxonomy.read_models(file, kind=kind)
    from grb.pipeline import Store

    needed = {"dataset", "perturbation", "auroc"}
    return from_rows([record.result for record in Store(file).records() if needed <= record.result.keys()], file)


def _show(found: Comparison) -> None:
    heads = ["perturbation", "runs", "ours %", "from", "to", "published %", "apart"]
    for own in found.datasets:
        title = f"{own.dataset}: AUROC {own.original:.3f} ({own.runs} runs), published {_number(own.published, 3)}"
        rows = [
            [
                cell.perturbation,
                cell.runs,
                *(_number(100 * share) for share in (cell.left, cell.low, cell.high, cell.published)),
                _number(100 * (cell.left - cell.published), sign="+"),
            ]
            for cell in own.cells
        ]
        output.table(title, heads, rows, numbers=heads[1:])
    places = [_place(own) for own in found.datasets if own.placement is not None]
    if places:
        output.table("placed without its own row", ["dataset", "nearest", "its group", "published group"], places)
        output.say("{} of {} lie next to a dataset of their published group".format(*found.placed()))
    output.say(_correlated(found))


def _place(own: Beside) -> list[str]:
    assert own.placement is not None
    return [own.dataset, own.placement.nearest.dataset, str(own.nearest_group), own.group]


def _correlated(found: Comparison) -> str:
    if found.correlation is None:
        return f"{found.pairs} ratios are too few for a correlation"
    return f"correlation of {found.pairs} log2 ratios with the published ones: {found.correlation:.3f}"


def _number(value: float, digits: int = 1, *, sign: str = "") -> str:
    return "-" if math.isnan(value) else f"{value:{sign}.{digits}f}"


def as_markdown(found: Comparison) -> str:
    """A table with two rows per dataset, the correlation, and where each dataset is placed."""
    names = list(dict.fromkeys(cell.perturbation for own in found.datasets for cell in own.cells))
    lines = [f"| | runs | original | {' | '.join(names)} |", "|---|" + "---|" * (len(names) + 2)]
    for own in found.datasets:
        cells = {cell.perturbation: cell for cell in own.cells}
        ours = [_left(cells[name]) if name in cells else "-" for name in names]
        theirs = [_number(100 * cells[name].published, 0) if name in cells else "-" for name in names]
        lines += [
            f"| {own.dataset}, ours | {own.runs} | {own.original:.3f} | {' | '.join(ours)} |",
            f"| published | | {_number(own.published, 3)} | {' | '.join(theirs)} |",
        ]
    lines += [
        "",
        f"{_correlated(found)}.",
        "",
        "| dataset | nearest without its own row | its group | published group |",
    ]
    lines += ["|---|---|---|---|"]
    lines += [f"| {' | '.join(_place(own))} |" for own in found.datasets if own.placement is not None]
    return "\n".join(lines)


def _left(cell: Any) -> str:
    half = 100 * (cell.high - cell.left)
    return f"{100 * cell.left:.0f}" if math.isnan(half) else f"{100 * cell.left:.0f} ± {half:.0f}"


def _plain(found: Comparison) -> dict[str, Any]:
    def known(value: float) -> float | None:
        return None if math.isnan(value) else value

    return {
        "correlation": found.correlation,
        "pairs": found.pairs,
        "placed_in_group": found.placed()[0],
        "placed": found.placed()[1],
        "datasets": [
            {
                "dataset": own.dataset,
                "original": known(own.original),
                "published": known(own.published),
                "runs": own.runs,
                "group": own.group,
                "nearest": None if own.placement is None else own.placement.nearest.dataset,
                "nearest_group": own.nearest_group,
                "cells": [
                    {key: known(value) if isinstance(value, float) else value for key, value in cell._asdict().items()}
                    for cell in own.cells
                ],
            }
            for own in found.datasets
        ],
        "notes": list(found.notes),
    }
