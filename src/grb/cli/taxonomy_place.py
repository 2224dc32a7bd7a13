"""``grb taxonomy place``: where a dataset belongs among the published ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.cli import output, run_options
from grb.cli.options import Json, StoreOption, check_counts, names, store_at
from grb.cli.taxonomy_run import Epochs, Patience, parse_seeds
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.dataset import Dataset
    from grb.taxonomy import Profiles
    from grb.taxonomy.assignment import Placement

# epochs without a better validation AUROC after which a training ends, for collections and for single graphs
PATIENCE = {"inductive": 50, "transductive": 250}
SEEDS = "3"
SHOWN = 5


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
        typer.Option(metavar="STORE|FILE", help="Runs of the dataset, as for analyse, to use instead of training."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="SETTING=VALUE", help="Use only those of --runs with this setting; repeatable."),
    ] = None,
    exclude: Annotated[
        str | None, typer.Option(help="Published dataset to leave out; the dataset's own row if not given.")
    ] = None,
    seeds: Annotated[
        str, typer.Option(metavar="N|A,B|A-B", help="Number of trainings of each kind, or their seeds.")
    ] = SEEDS,
    epochs: Epochs = None,
    patience: Patience = None,
    store: StoreOption = None,
    workers: run_options.Workers = None,
    as_json: Json = False,
) -> None:
    """Perturb a dataset, train GCN on it, and say which published datasets it behaves like, and what that means.

    Running again resumes. Small datasets take minutes. A training ends after 50 epochs (250 on a single graph) without a
    better validation AUROC, unless --patience says otherwise.

    \b
    Examples:
      grb taxonomy place mutag
      grb taxonomy place my-graphs.npz --seeds 5
      grb taxonomy place enzymes --runs results
    """
    check_counts(epochs=epochs, patience=patience)
    if runs is not None and (seeds != SEEDS or any(each is not None for each in (epochs, patience, store, workers))):
        raise DataError("--runs trains nothing; leave out --seeds, --epochs, --patience, --store and --workers")
    if runs is None and where:
        raise DataError("--where chooses among the runs of --runs; give --runs too, or leave it out")
    from grb import taxonomy
    from grb.dataset import load_dataset

    loaded = load_dataset(dataset)
    notes = taxonomy.check_placeable(loaded.graph)
    reference = taxonomy.reference_for(loaded.graph)
    if runs is not None:
        profiles = _read(runs, loaded.title, where)
    else:
        training = {"epochs": epochs, "patience": patience or PATIENCE[reference]}
        profiles = _trained(dataset, loaded, parse_seeds(seeds), training, store, workers, as_json)
    published = taxonomy.published(reference).profiles.datasets
    left = exclude or (loaded.title if loaded.title in published else None)
    found = taxonomy.assign(taxonomy.as_published(profiles), reference, dataset=loaded.title, exclude=left)
    if as_json:
        output.print_json(found.to_dict() | {"left_out": left, "remarks": notes})
        return
    show(found)
    for note in [*notes, *([f"the published row of {left} was left out"] if left else [])]:
        output.echo(f"note: {note}")


def _trained(
    name: str,
    dataset: Dataset,
    seeds: list[int],
    training: dict[str, Any],
    store: Path | None,
    workers: int | None,
    as_json: bool,
) -> Profiles:
    from grb.pipeline import Spec
    from grb.pipeline.profiles import Profiling, plan_profiles
    from grb.taxonomy import comparable_perturbations
    from grb.taxonomy.measurement import ProfileMeasurement
    from grb.taxonomy.read import from_rows, pick

    target = store_at(store)
    wanted = comparable_perturbations(collection=dataset.graph.ptr is not None)
    specs = [Spec(perturbation, params) for perturbation, params in wanted.items()]
    study = plan_profiles(Profiling([name], specs, seeds=seeds, training=training))
    if not as_json:
        outcome = run_options.carry_out(study, target, run_options.Resources(workers), as_json=False)
    else:
        from grb.pipeline import Limits, run

        limits = Limits(workers if workers is not None else os.cpu_count() or 1)
        outcome = run(study.jobs.values(), target, limits=limits)
    if outcome.interrupted:
        raise typer.Exit(run_options.exit_code(outcome))
    if not outcome.complete:
        reason = next(iter(outcome.failed.values()), "it was interrupted")
        raise DataError(f"{len(outcome.failed)} of {len(study.jobs)} trainings failed ({reason}); run again to resume")
    rows = [ProfileMeasurement.from_dict(target.read(key).measurement).to_row() for key in study.jobs]
    return pick(from_rows(rows, target.path), None, str(target.path))


def _read(source: Path, title: str, where: list[str] | None) -> Profiles:
    """Profiles of one dataset among the runs of a store or a file: gcn's, where there are several models."""
    from grb.cli.taxonomy_views import models_at, parse_where
    from grb.taxonomy.read import pick

    models = models_at(source, parse_where(where))
    found = pick(models, None if len(models) == 1 else "gcn", str(source))
    if title not in found.datasets:
        raise DataError(f"{source} has no run of {title}; `grb taxonomy run` makes them")
    return found.select(datasets=[title])


def show(found: Placement) -> None:
    """Print the answer in sentences, then its tables."""
    console = output.console()
    for sentence in found.messages:
        console.print(sentence)
    console.print()
    output.table(
        f"nearest published datasets ({found.reference})",
        ["dataset", "group", "distance", "nearest in %"],
        [
            [each.dataset, each.group, f"{each.distance:.3f}", f"{100 * each.nearest:.0f}"]
            for each in found.neighbours[:SHOWN]
        ],
        numbers=["distance", "nearest in %"],
    )
    output.table(
        "group",
        ["group", "draws in %"],
        [[name, f"{100 * fraction:.0f}"] for name, fraction in found.probability.items()],
        numbers=["draws in %"],
    )
    heads = [found.dataset, "published", found.group]
    output.table(
        "AUROC in % of the unperturbed dataset's",
        ["perturbation", *heads, "deviations"],
        [
            [
                mark.perturbation,
                *(f"{100 * fraction:.0f}" for fraction in (mark.ratio, mark.published, mark.group)),
                f"{mark.deviations:+.1f}",
            ]
            for mark in found.marks
        ],
        numbers=[*heads, "deviations"],
    )
    for note in found.notes:
        output.echo(f"note: {note}")
