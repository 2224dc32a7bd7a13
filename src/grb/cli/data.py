"""``grb data``: getting datasets, where they are, whether they are the papers', and splitting any graph."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb import catalogue
from grb.cli import data_check, output
from grb.cli.ls import ABSENT, has_files, where
from grb.cli.options import DataDir, Json, group, names
from grb.dataset import locate, registry
from grb.dataset.sources import SOURCES
from grb.errors import DataError, UnknownName

if TYPE_CHECKING:
    from grb.dataset import Dataset
    from grb.dataset.download import Obtained
    from grb.graph import Adjacency

MISMATCH = 3
# one unit of the last digit that the papers print: rounding takes half of it, and one number is off by a whole one
RANGE_TOLERANCE, DEGREE_TOLERANCE = 0.01, 0.01

app = group("Get, find, check, verify and split datasets.")
app.command("check")(data_check.check)


@dataclass(frozen=True)
class Check:
    """One property of a dataset beside what it should be."""

    what: str
    expected: Any
    found: Any
    ok: bool


@app.command()
def get(
    datasets: Annotated[list[str], typer.Argument(metavar="NAME", help="Datasets.", autocompletion=names("dataset"))],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", help="Copy from this folder (or a root of such, or a zip archive) instead of downloading."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Get it again even if it is here.")] = False,
    as_json: Json = False,
) -> None:
    """Download datasets, or copy them from a folder, and check size, sha256 and statistics.

    They go to GRB_HOME. GRB_MIRROR names a mirror of your own, GRB_OFFLINE=1 forbids the network.

    \b
    Examples:
      grb data get grb-cora grb-flickr
      grb data get grb-reddit --from ~/Downloads/grb
      grb data get flickr-rebuilt
    """
    from grb.cli.progress import downloads
    from grb.dataset import download

    done = []
    for name in dict.fromkeys(catalogue.canonical("dataset", name) for name in datasets):
        with downloads(output.console(stderr=True), name) as progress:
            done.append(download.get(name, source=source, force=force, progress=progress))
        if not as_json:
            _show_got(done[-1])
    if as_json:
        rows = [{**asdict(each), "path": str(each.path) if each.path else None} for each in done]
        output.print_json({"datasets": rows})


def _show_got(got: Obtained) -> None:
    output.facts(got.name, [("path", got.path), ("source", got.source)])
    if got.files:
        rows = [(each.file, each.bytes, _shortened(each.sha256), each.check) for each in got.files]
        output.table(None, ["file", "bytes", "sha256", "check"], rows, numbers=["bytes"])


@app.command()
def split(
    graph: Annotated[
        str,
        typer.Argument(
            metavar="NAME|DIR",
            help="A dataset, or a directory with adj.npz (a scipy CSR matrix).",
            autocompletion=names("dataset"),
        ),
    ],
    seed: Annotated[int, typer.Option(help="Of the split.")] = 0,
    written: Annotated[Path | None, typer.Option("-o", "--output", help="Write the ids to this npz file.")] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Split any graph by the papers' scheme: easy, medium and hard test nodes have few, some and many neighbours.

    \b
    Examples:
      grb data split grb-cora --seed 1
      grb data split ./my-graph -o ./my-graph/index.npz
    """
    import numpy as np

    from grb.dataset import storage
    from grb.dataset.split import difficulty_split
    from grb.graph.files import write_npz

    if seed < 0:
        raise DataError(f"--seed is {seed}, but at least 0 is needed")
    adj, notes = _adjacency(graph, data_dir)
    degrees = adj.degrees.numpy()
    index = storage.index_arrays(difficulty_split(degrees, np.random.default_rng(seed)))
    if written is not None:
        written = write_npz(written.with_suffix(".npz") if not written.suffix else written, index)
    parts = {"all": degrees, **{part: degrees[index[key]] for part, key in storage.PARTS.items()}}
    rows = [
        {
            "part": part,
            "nodes": len(own),
            "mean_degree": round(float(own.mean()), 4),
            "lowest": int(own.min()),
            "highest": int(own.max()),
        }
        for part, own in parts.items()
    ]
    if as_json:
        facts = {"graph": graph, "nodes": adj.n, "edges": adj.num_edges, "seed": seed, "notes": notes}
        output.print_json({**facts, "parts": rows, "written": str(written) if written else None})
        return
    heads = ["part", "nodes", "mean degree", "lowest", "highest"]
    title = f"{graph}: {adj.n} nodes, {adj.num_edges} edges, seed {seed}"
    output.table(title, heads, [list(row.values()) for row in rows], numbers=heads[1:])
    if written is not None:
        output.say(f"written to {written}")


def _adjacency(graph: str, data_dir: Path | None) -> tuple[Adjacency, list[str]]:
    """The edges of a dataset by name, or of a directory; features are not needed."""
    from grb.dataset import load_dataset, storage

    try:
        name = catalogue.canonical("dataset", graph)
    except UnknownName:
        if not Path(graph).is_dir():
            raise
        return storage.read_adjacency(graph)
    if has_files(name):
        return storage.read_adjacency(registry.find(name, data_dir, files=["adj.npz"]))
    return load_dataset(name).graph.adj, []


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
    place = None
    if name in SOURCES:
        place = str(locate.find(name, data_dir))
    elif has_files(name):
        place = str(registry.find(name, data_dir))
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
    """Load datasets and compare them with the papers' statistics and the known sha256; exit code 3 if one differs.

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
    rows = [
        (check.what, _shortened(check.expected), _shortened(check.found), "ok" if check.ok else "DIFFERS")
        for check in checks
    ]
    output.table(f"{name}: {verdict}", ["what", "expected", "found", ""], rows, numbers=["expected", "found"])


def _shortened(value: Any) -> Any:
    """The beginning of a sha256; anything else as it is."""
    return f"{value[:12]}..." if isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) else value


def _checks(name: str, data_dir: Path | None) -> list[Check]:
    from grb.dataset import Dataset, load_dataset

    place = registry.find(name, data_dir) if has_files(name) else None
    what = "files are readable and valid" if place else "made and valid"
    hashes = _hashes(name, place) if place else []
    try:
        # from_npz, because load_dataset refuses at the first difference and all of them are wanted here
        dataset = Dataset.from_npz(place, name=name) if place else load_dataset(name)
    except DataError as error:
        return [Check(what, True, str(error), False), *hashes]
    return [Check(what, True, True, True), *_against_paper(dataset), *hashes]


def _hashes(name: str, place: Path) -> list[Check]:
    from grb.dataset import download

    def check(file: str, expected: str | None) -> Check:
        found = download.sha256(place / file)
        return Check(f"sha256 of {file}", expected or download.NOT_CHECKED, found, expected in (None, found))

    return [check(file, known.sha256) for file, known in download.known(name).items()]


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
    # a millionth more, because 1.54 - 1.53 is above 0.01 in floating point
    ok = found is not None and abs(found - expected) <= tolerance + 1e-6
    return Check(what, expected, None if found is None else round(found, 4), ok)


def mean_degrees(dataset: Dataset) -> dict[str, float | None]:
    """Mean number of neighbours of all nodes and of each part of the split; None where there are none."""
    from torch import isin

    degrees = dataset.graph.adj.degrees.double()
    parts = {"train": dataset.index_train, "val": dataset.index_val, **dataset.split.test}
    if dataset.graph.ptr is not None:  # a split of a collection names graphs
        owner = dataset.graph.owner
        parts = {part: isin(owner, ids).nonzero().flatten() for part, ids in parts.items()}
    means = {part: float(degrees[ids].mean()) if len(ids) else None for part, ids in parts.items()}
    return {"all": float(degrees.mean()), **means}
