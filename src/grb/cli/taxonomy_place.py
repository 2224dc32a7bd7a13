"""``grb taxonomy place``: where a dataset belongs among the published ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.cli import output, run_options
from grb.cli.options import Json, StoreOption, check_counts, check_directory, names, store_at
from grb.cli.taxonomy_run import Epochs, Models, Patience, Plan, listed, parse_seeds, show_plan
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.dataset import Dataset
    from grb.pipeline import Store, Study
    from grb.taxonomy import Placement, Profiles

KIND = {"inductive": "collection", "transductive": "single"}
SEEDS = "3"
FIGURES = (".html", ".png", ".svg", ".pdf")
SHOWN = 5


Figure = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE.html|png|svg|pdf",
        help="Write a page (html) or draw the profile with its intervals.",
    ),
]


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
    models: Models = "gcn",
    exclude: Annotated[
        str | None, typer.Option(help="Published dataset to leave out; the dataset's own row if not given.")
    ] = None,
    seeds: Annotated[
        str, typer.Option(metavar="N|A,B|A-B", help="Number of trainings of each kind, or their seeds.")
    ] = SEEDS,
    epochs: Epochs = None,
    patience: Patience = None,
    plan: Plan = False,
    store: StoreOption = None,
    workers: run_options.Workers = None,
    out: Figure = None,
    as_json: Json = False,
) -> None:
    """Perturb a dataset, train GCN on it, and say which published datasets it behaves like, and what that means.

    Running again resumes. Small datasets take minutes. A training ends after 25 epochs (250 on a single graph) without a
    better validation AUROC or a lower training loss, unless --patience says otherwise. A dataset that is far from all
    published ones is said to fit nowhere.

    \b
    Examples:
      grb taxonomy place mutag
      grb taxonomy place my-graphs.npz --seeds 5 --plan
      grb taxonomy place my-graphs.npz --models gcn,gin -o place.svg
      grb taxonomy place mutag -o place.html
      grb taxonomy place enzymes --runs results
    """
    check_counts(epochs=epochs, patience=patience)
    trained = seeds != SEEDS or plan or any(each is not None for each in (epochs, patience, store, workers))
    if runs is not None and trained:
        raise DataError("--runs trains nothing; leave out --seeds, --epochs, --patience, --plan, --store and --workers")
    if runs is None and where:
        raise DataError("--where chooses among the runs of --runs; give --runs too, or leave it out")
    chosen = listed(models, "models")
    figures = _figures(out, chosen)
    from grb import taxonomy
    from grb.dataset import load_dataset

    loaded = load_dataset(dataset)
    notes = taxonomy.check_placeable(loaded.graph)
    reference = taxonomy.reference_for(loaded.graph)
    if runs is not None:
        profiles = _read(runs, loaded.title, where, chosen)
    else:
        from grb.model.profiling import PATIENCE

        training = {"epochs": epochs, "patience": patience or PATIENCE[KIND[reference]]}
        study = _planned(dataset, loaded, parse_seeds(seeds), training, chosen)
        resources = run_options.Resources(workers)
        if plan:
            show_plan(study, store_at(store), resources.cores, as_json)
            return
        profiles = _trained(study, store_at(store), resources, as_json)
    known = taxonomy.published(reference)
    left = exclude or (loaded.title if loaded.title in known.profiles.datasets else None)
    found = {}
    for model, own in profiles.items():
        published = next((name for name in known.models if name.lower() == model.lower()), None)
        if published is None:
            notes.append(f"nobody published {model} on {reference} datasets, so it is compared with GCN")
        found[model] = taxonomy.assign(
            taxonomy.as_published(own), known, dataset=loaded.title, exclude=left, model=published or "GCN"
        )
    if left:
        notes.append(f"the published row of {left} was left out")
    for model, path in figures.items():
        _draw(found[model], path, notes)
    _show(found, left, notes, as_json)


def _figures(out: Path | None, models: Sequence[str]) -> dict[str, Path]:
    """The figure of every model: one file, or one for each with its name before the ending."""
    if out is None:
        return {}
    if out.suffix.lower() not in FIGURES:
        raise DataError(f"the figure would be {out}, but a name that ends in {', '.join(FIGURES)} is needed")
    check_directory(out.parent, out)
    if len(models) == 1:
        return {models[0]: out}
    return {model: out.with_name(f"{out.stem}-{model.replace(':', '.')}{out.suffix}") for model in models}


def _draw(found: Placement, path: Path, notes: Sequence[str]) -> None:
    if path.suffix.lower() == ".html":
        from grb.leaderboard.placement_page import build_placement
        from grb.leaderboard.site import write_text

        output.echo(f"wrote {write_text(path, build_placement(found.to_dict(), notes))}")
        return
    from grb import visualise

    output.echo(f"wrote {visualise.save(visualise.draw_placement(found), path)}")


def _show(found: Mapping[str, Placement], left: str | None, notes: Sequence[str], as_json: bool) -> None:
    if as_json:
        first, *others = found.values()
        value = first.to_dict() | {"left_out": left, "remarks": list(notes)}
        output.print_json(value | ({"models": {name: own.to_dict() for name, own in found.items()}} if others else {}))
        return
    for model, own in found.items():
        if len(found) > 1:
            output.console().print(f"By {model}:")
        show(own)
    if len(found) > 1:
        said = {model: own.group or "fits nowhere" for model, own in found.items()}
        agreed = "The models agree" if len(set(said.values())) == 1 else "The models disagree"
        output.console().print(f"{agreed}: {', '.join(f'{group} by {model}' for model, group in said.items())}.")
    for note in notes:
        output.echo(f"note: {note}")


def _planned(name: str, dataset: Dataset, seeds: list[int], training: dict[str, Any], models: Sequence[str]) -> Study:
    from grb.pipeline import Spec
    from grb.pipeline.profiles import Profiling, plan_profiles
    from grb.taxonomy import comparable_perturbations

    wanted = comparable_perturbations(collection=dataset.graph.ptr is not None)
    specs = [Spec(perturbation, params) for perturbation, params in wanted.items()]
    return plan_profiles(Profiling([name], specs, models, seeds, training))


def _trained(study: Study, target: Store, resources: run_options.Resources, as_json: bool) -> dict[str, Profiles]:
    from grb.taxonomy.measurement import ProfileMeasurement
    from grb.taxonomy.read import from_rows

    if not as_json:
        outcome = run_options.carry_out(study, target, resources, as_json=False)
    else:
        from grb.pipeline import Limits, run

        outcome = run(study.jobs.values(), target, limits=Limits(resources.cores))
    if outcome.interrupted:
        raise typer.Exit(run_options.exit_code(outcome))
    if not outcome.complete:
        reason = next(iter(outcome.failed.values()), "it was interrupted")
        raise DataError(f"{len(outcome.failed)} of {len(study.jobs)} trainings failed ({reason}); run again to resume")
    rows = [ProfileMeasurement.from_dict(target.read(key).measurement).to_row() for key in study.jobs]
    return from_rows(rows, target.path)


def _read(source: Path, title: str, where: list[str] | None, chosen: Sequence[str]) -> dict[str, Profiles]:
    """Profiles of one dataset among the runs of a store or a file, by model."""
    from grb.cli.taxonomy_views import models_at, parse_where
    from grb.taxonomy.read import pick

    models = models_at(source, parse_where(where), title)
    asked = [None] if len(models) == 1 and len(chosen) == 1 else chosen
    picked = [pick(models, model, str(source)) for model in asked]
    if any(title not in own.datasets for own in picked):
        raise DataError(f"{source} has no run of {title}; `grb taxonomy run` makes them")
    return {model or own.model or "gcn": own.select(datasets=[title]) for model, own in zip(asked, picked)}


def _percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{100 * fraction:.0f}"


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
    if found.fits:
        output.table(
            "group",
            ["group", "probability in %"],
            [[name, f"{100 * fraction:.0f}"] for name, fraction in found.probability.items()],
            numbers=["probability in %"],
        )
    heads = [found.dataset, "from", "to", "published", found.group or f"{found.nearest.group} (nearest)"]
    output.table(
        "AUROC in % of the unperturbed dataset's",
        ["perturbation", *heads, "deviations"],
        [
            [
                mark.perturbation,
                *(_percent(part) for part in (mark.ratio, mark.low, mark.high, mark.published, mark.group)),
                f"{mark.deviations:+.1f}",
            ]
            for mark in found.marks
        ],
        numbers=[*heads, "deviations"],
    )
    for note in found.notes:
        output.echo(f"note: {note}")
