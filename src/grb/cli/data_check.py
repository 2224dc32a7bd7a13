"""``grb data check``: what is in a dataset, what is wrong with it, how it was cleaned, and whether it is the papers'."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb import catalogue
from grb.cli import output
from grb.cli.ls import ABSENT, where
from grb.cli.options import Json, check_seed, names
from grb.dataset import registry
from grb.errors import DataError, MissingDataset, UnknownName

if TYPE_CHECKING:
    from grb.dataset import CleaningOptions, Dataset
    from grb.dataset.raw_arrays import RawArrays
    from grb.dataset.report import Report

BAD_INPUT, MISMATCH = 2, 3
# one unit of the last digit that the papers print: rounding takes half of it, and one number is off by a whole one
TOLERANCE = 0.01


@dataclass(frozen=True)
class Check:
    """One property of a dataset beside its expected value."""

    what: str
    expected: Any
    found: Any
    ok: bool


def check(
    datasets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DATASET]...",
            help="Names of datasets, folders with edges.csv or adj.npz, or npz files of arrays; without any, every "
            "dataset on this machine is compared with its paper.",
            autocompletion=names("dataset"),
        ),
    ] = None,
    directed: Annotated[
        str, typer.Option(help="What to do with one-way edges: symmetrise, mutual or refuse.")
    ] = "symmetrise",
    weights: Annotated[str, typer.Option(help="What to do with edge weights: keep, drop or refuse.")] = "keep",
    loops: Annotated[str, typer.Option(help="What to do with self-loops: drop or refuse.")] = "drop",
    duplicates: Annotated[str, typer.Option(help="What to do with edges listed twice: merge or refuse.")] = "merge",
    components: Annotated[
        str, typer.Option(help="What to do with several components: keep, largest or refuse.")
    ] = "keep",
    missing: Annotated[
        str, typer.Option(help="What to do with NaN and infinite features: refuse, zero or mean.")
    ] = "refuse",
    split: Annotated[
        str, typer.Option(help="The dataset's own split if there is one, or difficulty: easy, medium, hard.")
    ] = "own",
    seed: Annotated[int, typer.Option(help="Random seed of the difficulty split.")] = 0,
    feat_norm: Annotated[
        str | None, typer.Option(help="Normalisation of features: arctan, tanh, standardise or linear.")
    ] = None,
    dangling: Annotated[
        str, typer.Option(help="What to do with edges of unknown nodes in text files: refuse or drop.")
    ] = "refuse",
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether text files have headers; detected by default."),
    ] = None,
    leave_out: Annotated[
        list[str] | None, typer.Option(help="Name of a column of text files that is not a feature.")
    ] = None,
    node_id: Annotated[str | None, typer.Option("--id", help="Name of the column with the id of a node.")] = None,
    label: Annotated[str | None, typer.Option(help="Name of the column with the class.")] = None,
    source_column: Annotated[
        str | None, typer.Option("--source", help="Name of the column with one end of an edge.")
    ] = None,
    target_column: Annotated[
        str | None, typer.Option("--target", help="Name of the column with the other end.")
    ] = None,
    split_column: Annotated[str | None, typer.Option(help="Name of the column with train, val or test.")] = None,
    time: Annotated[
        str | None, typer.Option(help="Name of a column with times: the earliest nodes train, the latest test.")
    ] = None,
    target: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the cleaned dataset into this new directory; use it by its path."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Report sizes, problems, remedies and the split of datasets, and compare those of the papers with the published ones.

    The exit code is 2 if a dataset cannot be used, and 3 if one differs from the published one.

    \b
    Examples:
      grb data check ./my-graph
      grb data check ./accounts --id account --label fraud --source payer --target payee --time opened
      grb data check ./my-graph --components largest --split difficulty -o ./cleaned
      grb data check grb-cora --json
      grb data check
    """
    from grb.dataset import CleaningOptions

    check_seed("seed", seed)
    options = CleaningOptions(directed, weights, loops, duplicates, components, missing, split, seed, feat_norm)  # type: ignore[arg-type]
    columns = {"id": node_id, "label": label, "source": source_column, "target": target_column}
    columns |= {"split": split_column, "time": time}
    named = {role: column for role, column in columns.items() if column is not None}
    reading: dict[str, Any] = {"header": header, "dangling": dangling, "leave_out": tuple(leave_out or ())}
    reading["columns"] = named or None
    reading = {key: value for key, value in reading.items() if value not in (None, (), "refuse")}
    wanted = datasets or [name for name in catalogue.entries("dataset") if where(name) != ABSENT]
    if target is not None and len(wanted) != 1:
        raise DataError(f"--output takes one cleaned dataset, but there are {len(wanted)}; name one")
    code, rows = 0, []
    for source in dict.fromkeys(wanted):
        row, failed = _checked(source, options, reading, target, quiet=as_json, short=len(wanted) > 1)
        code = max(code, failed)
        rows.append(row)
    if as_json:
        output.print_json({"ok": not code, "datasets": rows})
    if code:
        raise typer.Exit(code)


def _checked(
    source: str,
    options: CleaningOptions,
    reading: dict[str, Any],
    target: Path | None,
    *,
    quiet: bool,
    short: bool,
) -> tuple[dict[str, Any], int]:
    """The row of one dataset for JSON, and its exit code; ``short`` shows the comparison with the paper alone."""
    from grb.dataset import Dataset
    from grb.dataset.cleaning import Refused, clean
    from grb.dataset.report import refused, report
    from grb.dataset.storage import save

    name = _catalogue_name(source)
    if name and reading:
        raise DataError(f"--{next(iter(reading)).replace('_', '-')} is about text files, but '{source}' is a name")
    dataset, checks = _compared(name) if name else (None, [])
    verdict: dict[str, Any] = {"checks": [asdict(each) for each in checks]}
    code = 0 if all(each.ok for each in checks) else MISMATCH
    if checks and not quiet and (short or code):
        _show_checks(name or source, checks)
    if name and dataset is None:
        return {"name": name, "ok": False, **verdict}, code
    raw = _raw(source, dataset, reading)
    try:
        cleaned = clean(raw, options)
    except Refused as refusal:
        found = refused(raw, options)
        if not quiet:
            _show(found, None)
        output.echo(f"error: {refusal}")
        return {**found.as_dict(), "injection_limits": None, "written": None, **verdict}, BAD_INPUT
    result = Dataset.from_raw(cleaned.arrays)
    written = None if target is None else str(save(result, target))
    found, limits = report(cleaned, result), _limits(result)
    if not quiet and not short:
        _show(found, limits)
        if checks and not code:
            _show_checks(name or source, checks)
    if written is not None:
        path = written if "/" in written else f"./{written}"
        output.echo(f"written to {written}; use it by this path, for instance: grb train gcn --dataset {path}")
    row = {**found.as_dict(), "injection_limits": limits, "written": written, **verdict}
    return {**row, "ok": found.ok and not code}, code


def _catalogue_name(source: str) -> str | None:
    """The name of the catalogue, or the import path, that a source is; None for a file or folder."""
    try:
        return source if ":" in source else catalogue.canonical("dataset", source)
    except UnknownName:
        if not registry.is_path(source) and not Path(source).exists():
            raise
        return None


def _raw(source: str, dataset: Dataset | None, reading: dict[str, Any]) -> RawArrays:
    from grb.dataset.load import read_raw
    from grb.dataset.raw_arrays import from_dataset

    return read_raw(source, **reading) if dataset is None else from_dataset(dataset)


def _compared(name: str) -> tuple[Dataset | None, list[Check]]:
    """A named dataset and its comparison with the papers' statistics and the known sha256; None if it is broken."""
    from grb.dataset import Dataset, load_dataset

    if ":" in name:
        return load_dataset(name), []
    directory = registry.find(name) if registry.has_files(name) else None
    what = "made and valid" if directory is None else "files are readable and valid"
    hashes = [] if directory is None else _hashes(name, directory)
    try:
        # from_npz, because load_dataset refuses at the first difference and all of them are wanted here
        dataset = Dataset.from_npz(directory, name=name) if directory else load_dataset(name)
    except MissingDataset:
        raise
    except DataError as error:
        return None, [Check(what, True, str(error), False), *hashes]
    return dataset, [Check(what, True, True, True), *_against_paper(dataset), *hashes]


def _hashes(name: str, directory: Path) -> list[Check]:
    from grb.dataset import download

    def compared(file: str, expected: str | None) -> Check:
        found = download.sha256(directory / file)
        return Check(f"sha256 of {file}", expected or download.NOT_CHECKED, found, expected in (None, found))

    return [compared(file, known.sha256) for file, known in download.known(name).items()]


def _against_paper(dataset: Dataset) -> list[Check]:
    from grb.dataset.report import mean_degrees

    expected = catalogue.preset("datasets").get(dataset.name)
    if expected is None:
        return []
    found = {
        "nodes": dataset.num_nodes,
        "edges": dataset.num_edges,
        "features": dataset.num_features,
        "classes": dataset.num_classes,
    }
    checks = [Check(what, expected[what], value, expected[what] == value) for what, value in found.items()]
    ends = zip(("smallest feature", "largest feature"), expected["range"], dataset.feature_range)
    checks += [_close(what, wanted, value) for what, wanted, value in ends]
    degrees = mean_degrees(dataset)
    return checks + [
        _close(f"mean degree, {part}", wanted, degrees.get(part)) for part, wanted in expected["degrees"].items()
    ]


def _close(what: str, expected: float, found: float | None) -> Check:
    # a millionth more, because 1.54 - 1.53 is above 0.01 in floating point
    ok = found is not None and abs(found - expected) <= TOLERANCE + 1e-6
    return Check(what, expected, None if found is None else round(found, 4), ok)


def _limits(dataset: Dataset) -> dict[str, Any] | None:
    """The default limits of an injection for each difficulty."""
    from grb.attack.build import default_threat

    if dataset.task == "node" and dataset.graph.ptr is not None:
        return None  # nodes of several graphs: no attack is for them yet
    modes = [mode for mode, ids in dataset.split.test.items() if len(ids)]
    limits = {mode: default_threat(None, dataset, mode).to_dict() for mode in modes}
    return {mode: {key: value for key, value in own.items() if key != "kind"} for mode, own in limits.items()}


def shorten_hash(value: Any) -> Any:
    """The beginning of a sha256; anything else as it is."""
    return f"{value[:12]}..." if isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) else value


def _show_checks(name: str, checks: list[Check]) -> None:
    verdict = "as expected" if all(each.ok for each in checks) else "NOT as expected"
    rows = [
        (each.what, shorten_hash(each.expected), shorten_hash(each.found), "ok" if each.ok else "DIFFERS")
        for each in checks
    ]
    output.table(f"{name}: {verdict}", ["what", "expected", "found", ""], rows, numbers=["expected", "found"])


def _show(found: Report, limits: dict[str, Any] | None) -> None:
    listed = {f"input: {key.replace('_', ' ')}": value for key, value in found.input.items()}
    facts = {key.replace("_", " "): value for key, value in found.facts.items() if key != "class_counts"}
    output.facts(found.name, [*listed.items(), *facts.items()])
    counts = sorted(found.facts.get("class_counts", {}).items(), key=lambda each: -each[1])
    if counts:
        more = [("others", sum(count for _, count in counts[20:]))] if len(counts) > 20 else []
        output.table("classes", ["class", "members"], [*counts[:20], *more], numbers=["members"])
    rows = [(each.what, _option(each.option, each.choice), ", ".join(each.others)) for each in found.problems]
    if rows:
        output.table("problems", ["found", "choice", "instead"], rows)
    if limits:
        heads = ["difficulty", "nodes", "edges per node", "feature range"]
        limited = [[mode, *limit.values()] for mode, limit in limits.items()]
        output.table("limits of an injection", heads, limited, numbers=heads[1:3])
    for sentence in found.notes:
        output.echo(f"note: {sentence}")
    for sentence in found.warnings:
        output.echo(f"warning: {sentence}")


def _option(name: str, choice: str) -> str:
    return f"--{name} {choice}" if name else choice
