"""``grb data``: getting, finding, checking and splitting datasets."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grb import catalogue
from grb.cli import data_check, output
from grb.cli.options import Json, check_seed, group, names
from grb.dataset import registry
from grb.errors import UnknownName

if TYPE_CHECKING:
    from grb.dataset.download import Obtained
    from grb.graph import Adjacency

app = group("Get, find, check and split datasets.")
app.command("check")(data_check.check)


@app.command()
def get(
    datasets: Annotated[
        list[str],
        typer.Argument(
            metavar="DATASET...", help="Datasets that `grb ls datasets` shows.", autocompletion=names("dataset")
        ),
    ],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", help="Copy from this folder (or the folder above it, or a zip archive) instead of downloading."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Get the dataset again even if it is on this machine.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Download datasets, or copy them from a folder, and check size, sha256 and statistics.

    They go to GRB_HOME. GRB_MIRROR names a custom mirror, GRB_OFFLINE=1 forbids the network.

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
        rows = [(each.file, each.bytes, data_check.shorten_hash(each.sha256), each.check) for each in got.files]
        output.table(None, ["file", "bytes", "sha256", "check"], rows, numbers=["bytes"])


@app.command()
def split(
    graph: Annotated[
        str,
        typer.Argument(
            metavar="DATASET",
            help="Name of a dataset, or a directory with adj.npz (a scipy CSR matrix).",
            autocompletion=names("dataset"),
        ),
    ],
    seed: Annotated[int, typer.Option(help="Random seed of the split.")] = 0,
    target: Annotated[Path | None, typer.Option("-o", "--output", help="Write the ids to this npz file.")] = None,
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
    from grb.dataset.splits import difficulty_split
    from grb.graph.files import write_npz

    check_seed("seed", seed)
    adj, notes = _adjacency(graph)
    degrees = adj.degrees.numpy()
    index = storage.index_arrays(difficulty_split(degrees, np.random.default_rng(seed)))
    written = None
    if target is not None:
        written = write_npz(target if target.suffix else target.with_suffix(".npz"), index)
    parts = {"all": degrees, **{part: degrees[index[key]] for part, key in storage.PARTS.items()}}
    rows = [
        {
            "part": part,
            "nodes": len(found),
            "mean_degree": round(float(found.mean()), 4),
            "lowest": int(found.min()),
            "highest": int(found.max()),
        }
        for part, found in parts.items()
    ]
    if as_json:
        facts = {"graph": graph, "nodes": adj.n, "edges": adj.num_edges, "seed": seed, "notes": notes}
        output.print_json({**facts, "parts": rows, "written": str(written) if written else None})
        return
    heads = ["part", "nodes", "mean degree", "lowest", "highest"]
    title = f"{graph}: {adj.n} nodes, {adj.num_edges} edges, seed {seed}"
    output.table(title, heads, [list(row.values()) for row in rows], numbers=heads[1:])
    if written is not None:
        output.echo(f"written to {written}")


def _adjacency(graph: str) -> tuple[Adjacency, list[str]]:
    """The edges of a dataset by name, or of a directory; features are not needed."""
    from grb.dataset import load_dataset, storage

    try:
        name = catalogue.canonical("dataset", graph)
    except UnknownName:
        if not Path(graph).is_dir():
            raise
        return storage.read_adjacency(graph)
    if registry.has_files(name):
        return storage.read_adjacency(registry.find(name, files=["adj.npz"]))
    return load_dataset(name).graph.adj, []
