"""``grb data check``: what is in a dataset, what is wrong with it, and what was chosen about that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb import catalogue
from grb.cli import output
from grb.cli.options import DataDir, Json, check_seed, names
from grb.errors import DataError, UnknownName

if TYPE_CHECKING:
    from grb.dataset.given import Given
    from grb.dataset.report import Report

BAD_INPUT = 2


def check(
    source: Annotated[
        str,
        typer.Argument(
            metavar="NAME|PATH",
            help="A dataset; or a folder with edges.csv or adj.npz; or an npz file of arrays.",
            autocompletion=names("dataset"),
        ),
    ],
    directed: Annotated[str, typer.Option(help="One-way edges: symmetrise, mutual or refuse.")] = "symmetrise",
    weights: Annotated[str, typer.Option(help="Edge weights: keep, drop or refuse.")] = "keep",
    loops: Annotated[str, typer.Option(help="Self-loops: drop or refuse.")] = "drop",
    duplicates: Annotated[str, typer.Option(help="Edges listed twice: merge or refuse.")] = "merge",
    components: Annotated[str, typer.Option(help="Several components: keep, largest or refuse.")] = "keep",
    missing: Annotated[str, typer.Option(help="NaN and infinite features: refuse, zero or mean.")] = "refuse",
    split: Annotated[str, typer.Option(help="own (if there is one), or difficulty: easy, medium, hard.")] = "own",
    seed: Annotated[int, typer.Option(help="Of the difficulties.")] = 0,
    feat_norm: Annotated[
        str | None, typer.Option(help="Normalise features: arctan, tanh, standardise, linear.")
    ] = None,
    dangling: Annotated[str, typer.Option(help="Edges of unknown nodes in text files: refuse or drop.")] = "refuse",
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="Of text files; seen if not said.")
    ] = None,
    leave_out: Annotated[list[str] | None, typer.Option(help="A column of text files that is no feature.")] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write the dataset into this new directory; use it by path.")
    ] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Report on any dataset: sizes, faults, choices, split, and the limits that an attack would get.

    \b
    Examples:
      grb data check ./my-graph
      grb data check ./my-graph --components largest --split difficulty --save ./cleaned
      grb data check planetoid-cora --json
    """
    from grb.dataset import Choices
    from grb.dataset.choices import Refused, prepare
    from grb.dataset.report import refused, report
    from grb.dataset.storage import save as save_directory

    check_seed("seed", seed)
    choices = Choices(directed, weights, loops, duplicates, components, missing, split, seed, feat_norm)  # type: ignore[arg-type]
    given = _given(source, data_dir, {"header": header, "dangling": dangling, "leave_out": tuple(leave_out or ())})
    try:
        prepared = prepare(given, choices)
    except Refused as refusal:
        _show(refused(given, choices), None, as_json)
        output.say(f"error: {refusal}")
        raise typer.Exit(BAD_INPUT) from None
    written = None if save is None else str(save_directory(prepared.dataset, save))
    limits = _limits(prepared.dataset)
    _show(report(prepared), limits, as_json, written)
    if written is not None:
        output.say(
            f"written to {written}; use it by this path, for instance: grb train gcn --dataset {_as_name(written)}"
        )


def _as_name(path: str) -> str:
    """A path that is not taken for a name of the catalogue."""
    return path if "/" in path else f"./{path}"


def _given(source: str, data_dir: Path | None, reading: dict[str, Any]) -> Given:
    """The arrays of a name of the catalogue, of an import path, or of a file or folder."""
    from grb.dataset import given, load_dataset, own

    reading = {key: value for key, value in reading.items() if value not in (None, (), "refuse")}
    try:
        known = ":" in source or bool(catalogue.canonical("dataset", source))
    except UnknownName:
        if not own.is_path(source) and not Path(source).exists():
            raise
        known = False
    if not known:
        return own.given(source, **reading)
    if reading:
        raise DataError(f"--{next(iter(reading)).replace('_', '-')} is about text files, but '{source}' is a name")
    return given.of_dataset(load_dataset(source, data_dir=data_dir))


def _limits(dataset: Any) -> dict[str, Any] | None:
    """What an injection may do on each difficulty if nobody says otherwise."""
    from dataclasses import asdict

    from grb.attack.build import default_threat

    if dataset.task == "node" and dataset.graph.ptr is not None:
        return None  # nodes of several graphs: nobody attacks them yet
    modes = [mode for mode, ids in dataset.split.test.items() if len(ids)]
    return {mode: asdict(default_threat(None, dataset, mode)) for mode in modes}


def _show(found: Report, limits: dict[str, Any] | None, as_json: bool, written: str | None = None) -> None:
    if as_json:
        output.print_json({**found.as_dict(), "injection_limits": limits, "written": written})
        return
    listed = {f"input: {key.replace('_', ' ')}": value for key, value in found.input.items()}
    facts = {key.replace("_", " "): value for key, value in found.facts.items() if key != "class_counts"}
    counts = found.facts.get("class_counts", {})
    output.facts(found.name, [*listed.items(), *facts.items()])
    if counts:
        most = sorted(counts.items(), key=lambda each: -each[1])
        more = [("others", sum(count for _, count in most[20:]))] if len(most) > 20 else []
        output.table("classes", ["class", "members"], [*most[:20], *more], numbers=["members"])
    rows = [(each.what, _option(each.option, each.choice), ", ".join(each.others)) for each in found.problems]
    if rows:
        output.table("problems", ["found", "choice", "instead"], rows)
    if limits:
        heads = ["difficulty", "nodes", "edges per node", "feature range"]
        told = [[mode, *limit.values()] for mode, limit in limits.items()]
        output.table("limits of an injection", heads, told, numbers=heads[1:3])
    for sentence in found.notes:
        output.say(f"note: {sentence}")
    for sentence in found.warnings:
        output.say(f"warning: {sentence}")


def _option(name: str, choice: str) -> str:
    return f"--{name} {choice}" if name else choice
