"""``grb data``: where datasets are, and whether they are the papers'."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb import catalogue
from grb.cli import output
from grb.cli.ls import ABSENT, has_files, where
from grb.cli.options import DataDir, Json, names
from grb.dataset import registry
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.dataset import Dataset

MISMATCH = 3
RANGE_TOLERANCE, DEGREE_TOLERANCE = 0.01, 0.005

app = typer.Typer(help="Find and verify datasets.", rich_markup_mode="rich")


@dataclass(frozen=True)
class Check:
    """One property of a dataset beside what it should be."""

    what: str
    expected: Any
    found: Any
    ok: bool


@app.callback(invoke_without_command=True)
def root(ctx: typer.Context) -> None:
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


@app.command()
def path(
    name: Annotated[str, typer.Argument(help="A dataset of `grb ls datasets`.", autocompletion=names("dataset"))],
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Print the directory of a dataset.

    \b
    Example:
      ls -l "$(grb data path grb-cora)"
    """
    name = catalogue.canonical("dataset", name)
    place = str(registry.find(name, data_dir)) if has_files(name) else None
    if as_json:
        output.print_json({"name": name, "embedded": name in registry.EMBEDDED, "path": place})
    else:
        print(place or f"{name} has no files ({where(name)}): it is made in memory when it is loaded")


@app.command()
def verify(
    datasets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help="Datasets; all that are found if none is given.", autocompletion=names("dataset")
        ),
    ] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Load datasets and compare them with the statistics that the papers print; exit code 3 if one differs.

    \b
    Examples:
      grb data verify grb-cora
      grb data verify --json
    """
    wanted = [catalogue.canonical("dataset", name) for name in datasets or []] or [
        name for name in catalogue.entries("dataset") if where(name) != ABSENT
    ]
    checks = {name: _checks(name, data_dir) for name in dict.fromkeys(wanted)}
    good = all(check.ok for listed in checks.values() for check in listed)
    if as_json:
        tables = {name: [asdict(check) for check in listed] for name, listed in checks.items()}
        output.print_json({"ok": good, "datasets": tables})
    else:
        for name, listed in checks.items():
            _show(name, listed)
    if not good:
        raise typer.Exit(MISMATCH)


def _show(name: str, checks: list[Check]) -> None:
    verdict = "as expected" if all(check.ok for check in checks) else "NOT as expected"
    rows = [(check.what, check.expected, check.found, "ok" if check.ok else "DIFFERS") for check in checks]
    output.table(f"{name}: {verdict}", ["what", "expected", "found", ""], rows, numbers=["expected", "found"])


def _checks(name: str, data_dir: Path | None) -> list[Check]:
    from grb.dataset import Dataset, load_dataset

    place = registry.find(name, data_dir) if has_files(name) else None
    what = "files are readable and valid" if place else "made and valid"
    try:
        # from_npz, because load_dataset refuses at the first difference and all of them are wanted here
        dataset = Dataset.from_npz(place, name=name) if place else load_dataset(name)
    except DataError as error:
        return [Check(what, True, str(error), False)]
    return [Check(what, True, True, True), *_against_paper(dataset)]


def _against_paper(dataset: Dataset) -> list[Check]:
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
    checks += [_close(what, wanted, value, RANGE_TOLERANCE) for what, wanted, value in ends]
    degrees = mean_degrees(dataset)
    for part, wanted in expected["degrees"].items():
        checks.append(_close(f"mean degree, {part}", wanted, degrees.get(part), DEGREE_TOLERANCE))
    return checks


def _close(what: str, expected: float, found: float | None, tolerance: float) -> Check:
    # a millionth more, because 1.535 - 1.53 is above 0.005 in floating point
    ok = found is not None and abs(found - expected) <= tolerance + 1e-6
    return Check(what, expected, None if found is None else round(found, 4), ok)


def mean_degrees(dataset: Dataset) -> dict[str, float | None]:
    """Mean number of neighbours of all nodes and of each part of the split; None where there are none."""
    degrees = dataset.graph.adj.degrees.double()
    parts = {"train": dataset.index_train, "val": dataset.index_val, **dataset.split.test}
    means = {part: float(degrees[ids].mean()) if len(ids) else None for part, ids in parts.items()}
    return {"all": float(degrees.mean()), **means}
