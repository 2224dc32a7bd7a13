"""``grb train``: train models with several seeds and show their clean scores."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.atomic import write_atomic
from grb.cli import jobs, options, output
from grb.cli.eval import dataset_title
from grb.errors import DataError, GRBError

if TYPE_CHECKING:
    from grb.dataset import Dataset
    from grb.pipeline import Store
    from grb.pipeline.planner import Planner

SUFFIX = ".safetensors"
COSTS = {"epochs": ".0f", "seconds": ".1f"}
Models = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL",
        help="Models of `grb ls models`; gcn+ln has layer norm, gcn+at adversarial training, gcn-jaccard preprocessing.",
        autocompletion=options.names("model", "defense"),
    ),
]
TrainMode = Annotated[
    str, typer.Option(help="What training may see: no test node (inductive), or no test label (transductive).")
]
SplitNumber = Annotated[
    int | None,
    typer.Option("--split", metavar="K", help="Number of the split or fold of a dataset with several; 0 by default."),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="PATH", help=f"Write the weights: a file *{SUFFIX} for one run, or a directory."
    ),
]


@dataclass
class Training(jobs.Run):
    """One training: a model with one seed."""

    model: str = ""
    seed: int = 0


def train(
    models: Models,
    *,
    dataset: options.DatasetOption,
    seeds: options.Seeds = None,
    seed: options.Seed = None,
    params: options.Params = None,
    train_mode: TrainMode = "inductive",
    difficulty: options.Difficulties = "all",
    split: SplitNumber = None,
    device: options.Device = "cpu",
    threads: options.Threads = "1",
    written: Output = None,
    store: options.KeptStore = None,
    as_json: options.Json = False,
) -> None:
    """Train models with the papers' settings and score them on every test set; the jobs are those of a recipe.

    Settings for --param are epochs, patience, validate_every, lr and the constructor's arguments of the model.

    \b
    Examples:
      grb train gcn --dataset synth-cora
      grb train gcn gcn+ln mlp --dataset grb-cora --seeds 5 --json > scores.json
      grb train gcn -d synth-cora --param hidden_features=128,128 --param epochs=100 -o gcn.safetensors
      grb train gcn-jaccard+at-full gatguard -d synth-cora --store results
      grb train gin gcn -d mutag --split 3 -o models/
    """
    from grb.dataset import load_dataset
    from grb.trainer.trainer import check_device

    options.check_threads(threads)
    listed, changes = options.chosen_seeds(seed, seeds), options.settings_of(params, "--param")
    if train_mode not in ("inductive", "transductive"):
        raise DataError(f"--train-mode is '{train_mode}', but inductive or transductive is needed")
    options.use_machine(threads)
    check_device(device)
    loaded = load_dataset(dataset)
    count = options.use_threads(threads, loaded)
    if loaded.task == "graph" and train_mode == "transductive":
        raise DataError(f"--train-mode is transductive, but the graphs of '{loaded.name}' are separate; leave it out")
    if split is not None:
        loaded = loaded.with_split(split)
        assert loaded.scheme is not None
        output.echo(f"split {split}: {loaded.scheme.about(split)}")
    shown = options.chosen_difficulties(difficulty, loaded)
    number = None if loaded.scheme is None else split or 0
    common = {"train_mode": train_mode, "threads": count, "device": device}
    planner = jobs.planner(loaded, dataset, split=number, **common)
    runs = _plan(planner, models, listed, changes)
    options.check_target(written, len(runs), SUFFIX, example="models/")
    with jobs.opened_store(store) as place:
        interrupted = jobs.do(
            planner.jobs,
            place,
            runs,
            loaded,
            message=lambda run: _message(place, run, shown),
            steps=lambda job: _epochs(job.spec.name, loaded.name, job.spec.params),
        )
        for run in runs:
            _write(place, run, written, loaded.name)
        found = [_values(place, run, shown) for run in runs if run.error or place.has(run.job)]
    names = dict.fromkeys(run["model"] for run in found)
    summary = [_summary(name, [run for run in found if run["model"] == name]) for name in names]
    result = {
        **jobs.header(loaded, planner.data.fingerprint, count),
        "train_mode": train_mode,
        **({} if number is None else {"split": number}),
        "device": device,
        "interrupted": interrupted,
        "runs": found,
        "summary": summary,
    }
    if as_json:
        output.print_json(result)
    elif found:
        _show(result, loaded, len(listed), len(runs))
    _say_saved([run.saved for run in runs if run.saved])
    jobs.end(runs, interrupted)


def _plan(planner: Planner, models: Sequence[str], seeds: Sequence[int], changes: Mapping[str, Any]) -> list[Training]:
    """A training and a clean score of every model with every seed; a bad name or setting is refused here."""
    from grb.pipeline import Spec

    found = {}
    for model in models:
        spec = planner.model(Spec(model, changes))
        for seed in seeds:
            key = planner.fit(spec, seed)
            score = planner.score(key, None, None, spec.name)
            found[spec.name, seed] = Training(
                f"{spec.name} seed {seed}", key, {"clean": score}, None, None, [], spec.name, seed
            )
    return list(found.values())


def _epochs(model: str, dataset: str, changes: Mapping[str, Any]) -> int:
    from grb.model.build import settings

    return settings(model, dataset).override(**changes).epochs


def _values(store: Store, run: Training, difficulties: Sequence[str]) -> dict[str, Any]:
    """One training as JSON values, for JSON and tables."""
    values: dict[str, Any] = {
        "model": run.model,
        "seed": run.seed,
        "scores": {},
        "saved": run.saved,
        "error": run.error,
    }
    if not store.has(run.job):
        return values
    record = store.read(run.job)
    if store.has(run.scores["clean"]):
        found = jobs.measurement(store, run.scores["clean"])
        values["scores"] = {name: found.outcomes[name].values[found.metric] for name in difficulties}
    kept = {name: record.result[name] for name in ("parameters", "settings", "best_epoch", "epochs", "stopped")}
    seconds = round(record.provenance["seconds"], 3)
    return {**values, **kept, "best_val_score": record.result["val_score"], "seconds": seconds}


def _message(store: Store, run: jobs.Run, difficulties: Sequence[str]) -> str:
    assert isinstance(run, Training)
    found = _values(store, run, difficulties)
    scores = " ".join(f"{name} {100 * value:.2f}" for name, value in found["scores"].items())
    return f"{scores}, {found['epochs']} epochs, {found['seconds']:.1f} s"


def _write(store: Store, run: Training, written: Path | None, dataset: str) -> None:
    """Copy the weights of a finished training to where the user wants them."""
    if written is None or run.error or not store.has(run.job):
        return
    parts = [re.sub(r"[^\w.+-]", "-", part) for part in (run.model, dataset)]
    path = (
        written if options.is_one_file(written, SUFFIX) else written / f"{parts[0]}-{parts[1]}-seed{run.seed}{SUFFIX}"
    )
    try:
        run.saved = str(write_atomic(path, store.load(store.read(run.job), "weights")))
    except GRBError as error:  # the scores are worth showing all the same
        run.error = str(error)


def _summary(model: str, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All trainings of one model: mean and standard deviation over seeds."""
    trained = [run for run in runs if run["scores"]]
    parts = trained[0]["scores"] if trained else ()

    def mean(name: str) -> float | None:
        return sum(run[name] for run in trained) / len(trained) if trained else None

    return {
        "model": model,
        "parameters": trained[0]["parameters"] if trained else None,
        "seeds": len(trained),
        "failed": sum(run["error"] is not None for run in runs),
        "scores": {part: jobs.over([run["scores"][part] for run in trained]) for part in parts},
        "epochs": mean("epochs"),
        "seconds": None if not trained else round(mean("seconds") or 0.0, 3),
    }


def _show(result: Mapping[str, Any], dataset: Dataset, seeds: int, total: int) -> None:
    parts = list(dict.fromkeys(part for row in result["summary"] for part in row["scores"]))

    def cells(row: Mapping[str, Any]) -> list[Any]:
        costs = [None if row[name] is None else f"{row[name]:{form}}" for name, form in COSTS.items()]
        return [row["model"], row["parameters"], *(jobs.percent(row["scores"].get(part)) for part in parts), *costs]

    headers = ["model", "params", *parts, *COSTS]
    title = f"{dataset_title(dataset)}, {result['train_mode']}"
    jobs.show(result, title, headers, cells, numbers=headers[1:], seeds=seeds, total=total)


def _say_saved(files: Sequence[str]) -> None:
    if len(files) > 1:
        output.echo(f"saved {len(files)} models in {Path(files[0]).parent}")
    elif files:
        output.echo(f"saved {files[0]}")
