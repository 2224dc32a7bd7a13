"""``grb taxonomy cross``: sensitivity profiles beside the accuracy that attacks cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grb.catalogue import canonical
from grb.cli import output
from grb.cli.options import Json, check_directory
from grb.errors import DataError, UnknownName

if TYPE_CHECKING:
    from grb.evaluator.board import Estimate
    from grb.pipeline.crossview import CrossRow, Strongest


def cross(
    store: Annotated[
        Path | None, typer.Argument(metavar="STORE", help="The store; the one below GRB_HOME if not given.")
    ] = None,
    model: Annotated[str, typer.Option(help="Profiling model whose runs count.")] = "gcn",
    mode: Annotated[str, typer.Option(help="Test nodes whose scores count: easy, medium, hard or full.")] = "full",
    out: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Also write a CSV table.")] = None,
    as_json: Json = False,
) -> None:
    """Lay what datasets lose without features or structure beside what attacks on features and edges cost.

    \b
    Examples:
      grb run synth-cora-modification --quick --store results
      grb taxonomy run --datasets synth-cora --seeds 3 --store results
      grb taxonomy cross results
    """
    from grb.cli.options import store_at
    from grb.dataset import DIFFICULTIES
    from grb.pipeline.crossview import cross_view

    if mode not in DIFFICULTIES:
        raise UnknownName("mode", mode, DIFFICULTIES, advice=f"Allowed: {', '.join(DIFFICULTIES)}.")
    if out is not None and out.suffix != ".csv":
        raise DataError(f"the table would be {out}, but a name that ends in .csv is needed")
    if out is not None:
        check_directory(out.parent, out)
    canonical("profiler", model)
    if store is not None and not store.is_dir():
        raise DataError(f"no store {store}; `grb taxonomy run --datasets DATASET --store {store}` makes one")
    rows = cross_view(store_at(store), model=model, mode=mode)
    if out is not None:
        from grb.leaderboard.export import to_csv
        from grb.leaderboard.site import write_text

        plain = [row.as_dict() for row in rows]
        columns = list(dict.fromkeys(name for row in plain for name in row))
        write_text(out, to_csv([{name: row.get(name, "") for name in columns} for row in plain]))
    if as_json:
        output.print_json([row.as_dict() for row in rows])
        return
    heads = ["dataset", "AUROC lost: features", "structure", "attack on features", "on edges", "by injection"]
    output.table(f"what is lost, in points ({model}; {mode})", heads, [_cells(row) for row in rows], numbers=heads[1:3])


def _cells(row: CrossRow) -> list[str]:
    from grb.pipeline.crossview import CHANGES

    profiles = [_points(row.sensitivity.get(kind)) for kind in ("features", "structure")]
    return [row.dataset, *profiles, *(_attack(row.attacks.get(change)) for change in CHANGES)]


def _points(value: Estimate | None) -> str:
    return "-" if value is None else f"{100 * value.mean:.1f} {output.plus_minus()} {100 * value.std:.1f}"


def _attack(found: Strongest | None) -> str:
    return "-" if found is None else f"{_points(found.lost)} ({found.attack})"
