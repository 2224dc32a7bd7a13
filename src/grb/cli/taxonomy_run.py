"""``grb taxonomy run``: train profiling models on perturbed datasets; running again resumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.cli import output, run_options
from grb.cli.options import Json, Params, StoreOption, check_counts, names, settings_of, store_at
from grb.cli.progress import duration
from grb.errors import DataError, UnknownName

if TYPE_CHECKING:
    from grb.pipeline import Spec, Store, Study


TASKS = ("own", "link")
VARIED = ("all", "split", "weights", "draw")
Datasets = Annotated[
    list[str],
    typer.Argument(
        metavar="DATASET...", help="Names of datasets (`grb ls datasets`).", autocompletion=names("dataset")
    ),
]
Perturbations = Annotated[
    str,
    typer.Option(
        metavar="A,B|all",
        help="The paper's names, or all: 13 for collections, 11 for one graph. NAME@gtaxogym does what its code does.",
    ),
]
Models = Annotated[
    str,
    typer.Option(
        metavar="A,B",
        help="Profiling models: gcn, gin, gin-2l, chebnet, gatedgcn, gcnii, transformer, gine, or package.module:Class.",
    ),
]
Seeds = Annotated[
    str, typer.Option(metavar="N|A,B|A-B", help="Number of runs, or their seeds; run r has split or fold r.")
]
Epochs = Annotated[
    int | None, typer.Option(help="Maximum number of epochs of a training; 300 for collections, 5000 for one graph.")
]
Patience = Annotated[
    int | None,
    typer.Option(
        help="Number of epochs without a better validation AUROC or a lower loss after which a training ends."
    ),
]
Task = Annotated[
    str,
    typer.Option(
        metavar="own|link",
        help="What is predicted: the dataset's own labels, or held-out edges of a single graph (link).",
    ),
]
Vary = Annotated[
    str,
    typer.Option(
        metavar="|".join(VARIED),
        help="What differs between runs: all, or only the split (fold), the weights or the draw of the perturbation.",
    ),
]
Plan = Annotated[bool, typer.Option("--plan", help="Only show what would run and what it would take.")]


def run(
    datasets: Datasets,
    perturbations: Perturbations = "all",
    models: Models = "gcn",
    seeds: Seeds = "10",
    epochs: Epochs = None,
    patience: Patience = None,
    task: Task = "own",
    vary: Vary = "all",
    params: Params = None,
    plan: Plan = False,
    store: StoreOption = None,
    shard: run_options.Shard = None,
    workers: run_options.Workers = None,
    timeout: run_options.Timeout = None,
    memory: run_options.Memory = None,
    dask: run_options.Dask = None,
    as_json: Json = False,
) -> None:
    """Perturb datasets, train profiling models, and keep the test AUROC of every run; running again resumes.

    The unperturbed dataset is always among the runs. `grb taxonomy analyse STORE` turns them into profiles.

    \b
    Examples:
      grb taxonomy run enzymes
      grb taxonomy run enzymes --perturbations NoEdges,RandFtrs@gtaxogym --seeds 3
      grb taxonomy run actor citationfull-citeseer --seeds 3 --patience 200 --shard 1/2
      grb taxonomy run planetoid-cora --task link --seeds 3 --patience 250
      grb taxonomy run enzymes --perturbations Frag-k1,Frag-k2 --vary draw
      grb taxonomy run coauthor-physics --param neighbours=10 --param batch=1024 --epochs 50 --seeds 1
    """
    check_counts(epochs=epochs, patience=patience)
    if task not in TASKS:
        raise UnknownName("task", task, TASKS, advice=f"Allowed: {', '.join(TASKS)}.")
    if vary not in VARIED:
        raise UnknownName("part of a run", vary, VARIED, advice=f"Allowed: {', '.join(VARIED)}.")
    settings = settings_of(params, "--param")
    twice = next(
        (name for name, value in (("epochs", epochs), ("patience", patience)) if name in settings and value), None
    )
    if twice:
        raise DataError(f"--{twice} and --param {twice}=... were both given; give one of them")
    from grb.pipeline.profiles import Profiling, plan_profiles

    asked = Profiling(
        list(dict.fromkeys(datasets)),
        chosen_perturbations(perturbations),
        listed(models, "models"),
        parse_seeds(seeds),
        {"epochs": epochs, "patience": patience, **settings},
        task,  # type: ignore[arg-type]
        vary,  # type: ignore[arg-type]
    )
    target = store_at(store)
    whole = plan_profiles(asked)
    study = run_options.part(whole, shard)
    resources = run_options.Resources(workers, timeout, memory, dask)
    if plan:
        show_plan(study, target, resources.cores, as_json)
        return
    outcome = run_options.carry_out(study, target, resources, as_json=as_json)
    rows = summary(whole, target)
    if rows and not as_json:
        headers = ["dataset", "model", "perturbation", "runs", "AUROC", "± 95 %", "of original %"]
        output.table("profiles", headers, rows, numbers=headers[3:])
    output.echo(f"{outcome.done} jobs done, {outcome.cached} were there already; store: {target.path}")
    if code := run_options.exit_code(outcome):
        raise typer.Exit(code)


def listed(text: str, what: str) -> list[str]:
    """Read distinct names between commas."""
    found = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not found:
        raise DataError(f"--{what} is '{text}', but at least one name is needed")
    return found


def chosen_perturbations(text: str) -> list[Spec] | None:
    """Read perturbations between commas; None for the paper's."""
    if text.strip().lower() == "all":
        return None
    return [spec for name in listed(text, "perturbations") if (spec := parse_perturbation(name)) is not None]


def parse_perturbation(text: str) -> Spec | None:
    """Read a perturbation: a name, or ``name@gtaxogym`` for what the published code does; None for the unperturbed dataset.

    >>> parse_perturbation("RandFtrs@gtaxogym").params
    {'compat': 'gtaxogym'}
    """
    from grb.pipeline import Spec
    from grb.taxonomy.read import UNPERTURBED

    name, _, variant = text.strip().partition("@")
    if name.lower() in UNPERTURBED:
        return None
    return Spec(name, {"compat": variant} if variant else {})


def parse_seeds(text: str) -> list[int]:
    """Seeds of runs: ``3`` is 0, 1, 2; ``0,4`` and ``2-5`` are themselves.

    >>> parse_seeds("3"), parse_seeds("0,4"), parse_seeds("2-4")
    ([0, 1, 2], [0, 4], [2, 3, 4])
    """
    parts = text.strip().split("-")
    if len(parts) == 2 and all(part.isdecimal() for part in parts) and int(parts[0]) <= int(parts[1]) < 10**6:
        return list(range(int(parts[0]), int(parts[1]) + 1))
    found = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) < 7 for part in found) or found == ["0"]:
        raise DataError(
            f"--seeds is '{text}', but a number of runs as in 10, or their seeds as in 0,4 or 2-5, are needed"
        )
    return list(range(int(found[0]))) if len(found) == 1 else list(dict.fromkeys(map(int, found)))


def summary(study: Study, store: Store) -> list[list[Any]]:
    """Mean AUROC of every cell that the store has, with the interval of the mean and the fraction of the original."""
    from grb import metric
    from grb.taxonomy.measurement import ProfileMeasurement
    from grb.taxonomy.profile import ORIGINAL

    cells: dict[tuple[str, str, str], list[float]] = {}
    for key in study.jobs:
        if store.has(key):
            run = ProfileMeasurement.from_dict(store.read(key).measurement)
            cells.setdefault((run.dataset, run.model, run.perturbation), []).append(run.auroc)
    rows = []
    for (dataset, model, name), values in cells.items():
        interval = metric.confidence_interval(values)
        original = cells.get((dataset, model, ORIGINAL))
        fraction = None if original is None else 100 * interval.mean / (sum(original) / len(original))
        half = f"{100 * (interval.high - interval.mean):.1f}" if len(values) > 1 else "-"
        mean, ratio = f"{100 * interval.mean:.1f}", "-" if fraction is None else f"{fraction:.0f}"
        rows.append([dataset, model, name, len(values), mean, half, ratio])
    return rows


def show_plan(study: Study, store: Store, cores: int, as_json: bool) -> None:
    """Print how many runs a study has, how many are done, and what the others will take."""
    from grb.pipeline.estimate import seconds_of

    seconds = seconds_of(study, store)
    total = sum(seconds.values())
    if as_json:
        output.print_json(
            {
                "store": str(store.path),
                "jobs": len(study.jobs),
                "cached": len(study.jobs) - len(seconds),
                "cpu_seconds": total,
                "workers": cores,
            }
        )
        return
    rows = []
    for dataset in study.sizes:
        own = [key for key, job in study.jobs.items() if job.data.dataset == dataset]
        todo = [key for key in own if key in seconds]
        rows.append([dataset, len(own), len(own) - len(todo), len(todo), duration(sum(seconds[key] for key in todo))])
    headers = ["dataset", "all", "done", "to do", "CPU time"]
    output.table("runs", headers, rows, numbers=headers[1:])
    output.echo(f"about {duration(total / cores)} on {cores} workers; store: {store.path}")
