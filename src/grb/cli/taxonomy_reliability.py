"""``grb taxonomy reliability``: how often ``place`` is right about groups that it states."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grb.cli import output
from grb.cli.options import Json, check_directory, check_seed
from grb.errors import DataError, UnknownName

FIGURES = (".png", ".svg", ".pdf")


def reliability(
    taxonomy: Annotated[
        str, typer.Argument(metavar="inductive|transductive", help="One of the two published taxonomies.")
    ] = "inductive",
    model: Annotated[str, typer.Option(help="Model of the published profiles to compare with.")] = "GCN",
    seed: Annotated[int, typer.Option(help="Random seed of the noise.")] = 0,
    out: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.png|svg|pdf", help="Draw the curves into this file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Place every published dataset without its own row, and count how often the stated group is right.

    Placed are its own row, its rows by other models, and its row with noise; what the probabilities were fitted to is left out.

    \b
    Examples:
      grb taxonomy reliability inductive
      grb taxonomy reliability transductive -o reliability.svg
    """
    from grb.taxonomy import PUBLISHED
    from grb.taxonomy import reliability as measure

    if taxonomy not in PUBLISHED:
        raise UnknownName("published taxonomy", taxonomy, PUBLISHED, advice=f"Allowed: {', '.join(PUBLISHED)}.")
    if out is not None and out.suffix.lower() not in FIGURES:
        raise DataError(f"the figure would be {out}, but a name that ends in {', '.join(FIGURES)} is needed")
    if out is not None:
        check_directory(out.parent, out)
    check_seed("seed", seed)
    found = measure(taxonomy, model=model, seed=seed)
    if as_json:
        output.print_json([each.to_dict() for each in found])
    else:
        heads = ["placed", "probability in %", "mean", "right", "of", "right in %"]
        rows = [
            [
                curve.setting,
                f"{100 * each.low:.0f} to {100 * each.high:.0f}",
                f"{100 * each.stated:.0f}",
                each.right,
                each.cases,
                f"{100 * each.right / each.cases:.0f}",
            ]
            for curve in found
            for each in curve.bins
        ]
        output.table(f"stated groups of {taxonomy} datasets, each without its own row", heads, rows, numbers=heads[1:])
        for curve in found:
            output.echo(f"{curve.setting}: {curve.nowhere} of {curve.count} are said to fit nowhere")
    if out is not None:
        from grb import visualise

        figure = visualise.draw_reliability(found, f"{taxonomy} datasets")
        output.echo(f"wrote {visualise.save(figure, out)}")
