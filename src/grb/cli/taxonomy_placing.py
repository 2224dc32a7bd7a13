"""``grb taxonomy place``: where a dataset belongs among the published ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.cli import output, run_options
from grb.cli.options import Json, StoreOption, check_counts, check_seed, names, store_at
from grb.cli.taxonomy_run import numbers
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.dataset import Dataset
    from grb.taxonomy import Profiles

# epochs without a better validation AUROC after which a training ends, for collections and for single graphs
PATIENCE = {"inductive": 50, "transductive": 250}


def place(
    dataset: Annotated[
        str,
        typer.Argument(
            help="A name of `grb ls datasets`, a file.npz of arrays, a directory of npz files, or package.module:function that "
            "makes a dataset of grb or torch_geometric.",
            autocompletion=names("dataset"),
        ),
    ],
    runs: Annotated[
        Path | None,
        typer.Option(metavar="FILE|STORE", help="Place by these runs of it, as for analyse, instead of training."),
    ] = None,
    without: Annotated[
        str | None, typer.Option(help="Leave out this published dataset; by default its own row, if it has one.")
    ] = None,
    seeds: Annotated[str, typer.Option(metavar="N|A,B|A-B", help="How many trainings of each kind.")] = "3",
    epochs: Annotated[int | None, typer.Option(help="At most, of every training.")] = None,
    stop_after: Annotated[
        int | None,
        typer.Option(help="Epochs without a better validation AUROC; 50 for collections, 250 for one graph."),
    ] = None,
    draws: Annotated[int, typer.Option(help="Of the bootstrap.")] = 1000,
    seed: Annotated[int, typer.Option(metavar="K", help="Of the bootstrap.")] = 0,
    store: StoreOption = None,
    workers: run_options.Workers = None,
    as_json: Json = False,
) -> None:
    """Perturb a dataset, train GCN on it, and say which published datasets it behaves like, and what that means.

    Running again resumes. Small datasets take minutes.

    \b
    Examples:
      grb taxonomy place mutag
      grb taxonomy place my-graphs.npz --seeds 5
      grb taxonomy place enzymes --runs results
    """
    check_counts(epochs=epochs, stop_after=stop_after, draws=draws)
    check_seed("seed", seed)
    if runs is not None and (seeds != "3" or any(each is not None for each in (epochs, stop_after, store, workers))):
        raise DataError("--runs trains nothing; leave out --seeds, --epochs, --stop-after, --store and --workers")
    from grb import taxonomy
    from grb.dataset import load_dataset

    loaded = load_dataset(dataset)
    notes = taxonomy.check_placeable(loaded.graph)
    reference = taxonomy.reference_for(loaded.graph)
    if runs is not None:
        profiles = _read(runs, loaded)
    else:
        training = {"epochs": epochs, "stop_after": stop_after or PATIENCE[reference]}
        profiles = _trained(dataset, loaded, numbers(seeds), training, store, workers, as_json)
    published = taxonomy.published(reference).profiles.datasets
    left = without or (loaded.title if loaded.title in published else None)
    found = taxonomy.assign(profiles, reference, dataset=loaded.title, without=left, draws=draws, seed=seed)
    if as_json:
        output.print_json(found.as_dict() | {"left_out": left, "remarks": notes})
        return
    from grb.cli.taxonomy_place import show

    show(found)
    for note in [*notes, *([f"the published row of {left} was left out"] if left else [])]:
        output.say(f"note: {note}")


def _trained(
    name: str,
    dataset: Dataset,
    seeds: list[int],
    training: dict[str, Any],
    store: Path | None,
    workers: int | None,
    as_json: bool,
) -> Profiles:
    from grb.pipeline.profiles import Profiling, comparable, plan_profiles

    place = store_at(store)
    study: Any = plan_profiles(Profiling([name], comparable(dataset), seeds=seeds, training=training))
    if not as_json:
        outcome = run_options.carry_out(
            study, place, workers=workers, timeout=None, memory=None, as_json=False, seconds=study.seconds(place)
        )
    else:
        from grb.pipeline import Limits, run

        limits = Limits(workers if workers is not None else os.cpu_count() or 1)
        outcome = run(study.jobs.values(), place, limits=limits)
    if outcome.interrupted:
        raise typer.Exit(run_options.exit_code(outcome))
    if not outcome.complete:
        told = next(iter(outcome.failed.values()), "it was interrupted")
        raise DataError(f"{len(outcome.failed)} of {len(study.jobs)} trainings failed ({told}); run again to resume")
    return _profiles([place.read(key).result for key in study.jobs], str(place.path))


def _read(path: Path, dataset: Dataset) -> Profiles:
    """Profiles of one dataset among the runs of a store or a file."""
    from grb import taxonomy
    from grb.taxonomy.read import pick

    if not path.is_dir():
        return taxonomy.as_published(pick(taxonomy.read_models(path), None, str(path)).select(datasets=[dataset.title]))
    from grb.pipeline import Store

    found = [record.result for record in Store(path).records() if record.job.kind == "profile"]
    own = [row for row in found if row["dataset"] == dataset.title and row["model"] == "gcn"]
    if not own:
        raise DataError(f"{path} has no run of {dataset.title} with gcn; `grb taxonomy run` makes them")
    return _profiles(own, str(path))


def _profiles(rows: list[dict[str, Any]], source: str) -> Profiles:
    """Under the published names: there RandFtrs is what the published code does, if both are there."""
    from grb.taxonomy import as_published
    from grb.taxonomy.read import from_rows, pick

    return as_published(pick(from_rows(rows, source), None, source))
