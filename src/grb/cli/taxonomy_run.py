"""``grb taxonomy run``: train profiling models on perturbed datasets; running again resumes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.cli import output, run_options
from grb.cli.options import DataDir, Json, StoreOption, check_counts, names, store_at
from grb.cli.progress import duration
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.pipeline import Spec, Store
    from grb.pipeline.profiles import ProfileStudy


Datasets = Annotated[
    str,
    typer.Option(metavar="A,B", help="Names of datasets (`grb ls datasets`).", autocompletion=names("dataset")),
]
Perturbations = Annotated[
    str,
    typer.Option(
        metavar="A,B|all",
        help="The paper's names, or all: 13 for collections, 11 for one graph. NAME@gtaxogym does what its code does.",
    ),
]
Models = Annotated[
    str, typer.Option(metavar="A,B", help="gcn, gin, gin-2l, chebnet, gatedgcn, gcnii, or package.module:Class.")
]
Seeds = Annotated[
    str, typer.Option(metavar="N|A,B|A-B", help="How many runs, or their numbers; run r has split or fold r.")
]
Epochs = Annotated[int | None, typer.Option(help="At most; 300 for collections, 5000 for one graph.")]
StopAfter = Annotated[
    int | None, typer.Option(help="End a training after so many epochs without a better validation AUROC.")
]
Plan = Annotated[bool, typer.Option("--plan", help="Only say what would run and what it would take.")]


def run(
    datasets: Datasets,
    perturbations: Perturbations = "all",
    models: Models = "gcn",
    seeds: Seeds = "10",
    epochs: Epochs = None,
    stop_after: StopAfter = None,
    plan: Plan = False,
    store: StoreOption = None,
    data_dir: DataDir = None,
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
      grb taxonomy run --datasets enzymes
      grb taxonomy run --datasets enzymes --perturbations NoEdges,RandFtrs@gtaxogym --seeds 3
      grb taxonomy run --datasets actor,citationfull-citeseer --seeds 3 --stop-after 200 --shard 1/2
    """
    check_counts(epochs=epochs, stop_after=stop_after)
    from grb.pipeline.profiles import Profiling, plan_profiles

    asked = Profiling(
        listed(datasets, "datasets"),
        chosen_perturbations(perturbations),
        listed(models, "models"),
        numbers(seeds),
        {"epochs": epochs, "stop_after": stop_after},
    )
    place = store_at(store)
    whole = plan_profiles(asked, data_dir=None if data_dir is None else str(data_dir))
    study: Any = run_options.part(whole, shard)  # type: ignore[arg-type]
    seconds = study.seconds(place)
    if plan:
        _show_plan(study, place, seconds, workers, as_json)
        return
    outcome = run_options.carry_out(
        study,
        place,
        workers=workers,
        timeout=timeout,
        memory=memory,
        cluster=dask,
        as_json=as_json,
        seconds=seconds,
    )
    rows = summary(whole, place)
    if rows and not as_json:
        headers = ["dataset", "model", "perturbation", "runs", "AUROC", "± 95 %", "of original %"]
        output.table("profiles", headers, rows, numbers=headers[3:])
    output.say(f"{outcome.done} jobs done, {outcome.cached} were there already; store: {place.path}")
    if code := run_options.exit_code(outcome):
        raise typer.Exit(code)


def listed(text: str, what: str) -> list[str]:
    """Distinct names between commas."""
    found = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not found:
        raise DataError(f"--{what} is '{text}', but at least one name is needed")
    return found


def chosen_perturbations(text: str) -> list[Spec] | None:
    """Specs of the names; None for the paper's."""
    from grb.pipeline.profiles import parse_perturbation

    if text.strip().lower() == "all":
        return None
    return [spec for name in listed(text, "perturbations") if (spec := parse_perturbation(name)) is not None]


def numbers(text: str) -> list[int]:
    """Numbers of runs: ``3`` is 0, 1, 2; ``0,4`` and ``2-5`` are themselves.

    >>> numbers("3"), numbers("0,4"), numbers("2-4")
    ([0, 1, 2], [0, 4], [2, 3, 4])
    """
    parts = text.strip().split("-")
    if len(parts) == 2 and all(part.isdecimal() for part in parts) and int(parts[0]) <= int(parts[1]) < 10**6:
        return list(range(int(parts[0]), int(parts[1]) + 1))
    found = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) < 7 for part in found) or found == ["0"]:
        raise DataError(
            f"--seeds is '{text}', but a number of runs as in 10, or their numbers as in 0,4 or 2-5, are needed"
        )
    return list(range(int(found[0]))) if len(found) == 1 else list(dict.fromkeys(map(int, found)))


def summary(study: ProfileStudy, store: Store) -> list[list[Any]]:
    """Mean AUROC of every cell that the store has, with the interval of the mean and the share of the original."""
    from grb import metric
    from grb.taxonomy.profile import ORIGINAL

    cells: dict[tuple[str, str, str], list[float]] = {}
    for key in study.jobs:
        if store.has(key):
            result = store.read(key).result
            cells.setdefault((result["dataset"], result["model"], result["perturbation"]), []).append(result["auroc"])
    rows = []
    for (dataset, model, name), values in cells.items():
        interval = metric.confidence_interval(values)
        original = cells.get((dataset, model, ORIGINAL))
        share = None if original is None else 100 * interval.mean / (sum(original) / len(original))
        half = f"{100 * (interval.high - interval.mean):.1f}" if len(values) > 1 else "-"
        mean, ratio = f"{100 * interval.mean:.1f}", "-" if share is None else f"{share:.0f}"
        rows.append([dataset, model, name, len(values), mean, half, ratio])
    return rows


def _show_plan(
    study: ProfileStudy, store: Store, seconds: dict[str, float], workers: int | None, as_json: bool
) -> None:
    cores = max(workers if workers is not None else os.cpu_count() or 1, 1)
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
    for dataset in study.nodes:
        own = [key for key, job in study.jobs.items() if job.data.dataset == dataset]
        todo = [key for key in own if key in seconds]
        rows.append([dataset, len(own), len(own) - len(todo), len(todo), duration(sum(seconds[key] for key in todo))])
    headers = ["dataset", "all", "done", "to do", "CPU time"]
    output.table("runs", headers, rows, numbers=headers[1:])
    output.say(f"about {duration(total / cores)} on {cores} workers; store: {store.path}")
