"""``grb train``: train models with several seeds and show their clean scores."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from grb._version import __version__
from grb.cli import output
from grb.cli.eval import dataset_line, dataset_title
from grb.cli.options import DataDir, Json, check_counts, check_seed, check_target, is_one_file, names, use_machine
from grb.cli.progress import ProgressReporter, run_all
from grb.errors import DataError, GRBError

if TYPE_CHECKING:
    from grb.dataset import Dataset
    from grb.model.build import Settings

FAILED = 1
SUFFIX = ".safetensors"


@dataclass(frozen=True)
class Plan:
    """All runs of one command: every model with every seed."""

    models: Mapping[str, Settings]
    parameters: Mapping[str, int]
    seeds: tuple[int, ...]
    changes: Mapping[str, Any]
    train_mode: Literal["inductive", "transductive"]
    device: str
    mode: str | None
    save: Path | None
    split: int | None = None

    @property
    def runs(self) -> list[tuple[str, int]]:
        return [(model, seed) for model in self.models for seed in self.seeds]


@dataclass(frozen=True)
class Run:
    """How one training went; ``error`` says why it, or writing its file, failed."""

    model: str
    seed: int
    parameters: int
    settings: dict[str, Any]
    scores: dict[str, float] = field(default_factory=dict)
    best_epoch: int | None = None
    best_val_score: float | None = None
    epochs: int | None = None
    seconds: float | None = None
    stopped: str | None = None
    saved: str | None = None
    error: str | None = None

    def message(self) -> str:
        words = f"{self.model} seed {self.seed}"
        if self.scores:
            scores = " ".join(f"{name} {100 * value:.2f}" for name, value in self.scores.items())
            words += f": {scores}, {self.epochs} epochs, {self.seconds:.1f} s"
        return words if self.error is None else f"{words}: FAILED: {self.error}"


Models = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="MODEL",
        show_default=False,
        help="Models of `grb ls models`; +ln adds layer norm, +at adversarial training.",
        autocompletion=names("model"),
    ),
]
DatasetOption = Annotated[str, typer.Option("--dataset", "-d", help="Dataset.", autocompletion=names("dataset"))]
Defenses = Annotated[
    list[str] | None,
    typer.Option(
        "--defense",
        metavar="NAME",
        help="Put a defense of `grb ls defenses` on every model (again for a second one), or train one that is a "
        "model itself, such as gatguard.",
        autocompletion=names("defense", "model"),
    ),
]
Seeds = Annotated[int | None, typer.Option(metavar="N", help="Train with the seeds 0, 1, ... N-1.")]
Seed = Annotated[int | None, typer.Option(metavar="K", help="Train with this one seed; 0 if neither is given.")]
Epochs = Annotated[int | None, typer.Option(help="Epochs at most, instead of the preset.")]
Patience = Annotated[int | None, typer.Option(help="Epochs without a better validation score before stopping.")]
Lr = Annotated[float | None, typer.Option(help="Learning rate of Adam, instead of the paper's.")]
Hidden = Annotated[str | None, typer.Option(metavar="N,N,...", help="Hidden widths, for instance 64,64.")]
Dropout = Annotated[float | None, typer.Option(help="Dropout rate, at least 0 and below 1.")]
TrainMode = Annotated[str, typer.Option(help="inductive: no test node is seen; transductive: no test label is seen.")]
Mode = Annotated[
    str | None, typer.Option(help="Score only easy, medium, hard or full test nodes; all of these if not given.")
]
SplitNumber = Annotated[
    int | None,
    typer.Option(
        "--split", metavar="K", help="Which of the dataset's splits or folds, if it has several; 0 if not given."
    ),
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, ...")]
Threads = Annotated[int, typer.Option(help="Threads of torch; scores are reproducible per number.")]
Save = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help=f"A file *{SUFFIX} for one run, a directory for any number of runs."),
]


def train(
    models: Models = None,
    *,
    dataset: DatasetOption,
    defenses: Defenses = None,
    seeds: Seeds = None,
    seed: Seed = None,
    epochs: Epochs = None,
    patience: Patience = None,
    lr: Lr = None,
    hidden: Hidden = None,
    dropout: Dropout = None,
    train_mode: TrainMode = "inductive",
    mode: Mode = None,
    split: SplitNumber = None,
    device: Device = "cpu",
    threads: Threads = 1,
    save: Save = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Train models with the papers' settings and score them on each test set.

    \b
    Examples:
      grb train gcn --dataset synth-cora
      grb train gcn gcn+ln mlp --dataset grb-cora --seeds 5 --json > scores.json
      grb train gcn -d synth-cora --hidden 128,128 --save gcn.safetensors
      grb train gcn gat --defense at -d synth-cora
      grb train gcn --defense jaccard --defense at-full -d synth-cora
      grb train --defense gatguard -d synth-cora
      grb train gin gcn -d mutag --split 3 --save models/
    """
    check_counts(seeds=seeds, epochs=epochs, patience=patience, threads=threads)
    listed = _seeds(seed, seeds)
    changes = _changes(lr, hidden, dropout, epochs, patience)
    chosen_difficulty = _train_mode(train_mode)
    import torch

    from grb.api import check_device
    from grb.dataset import load_dataset
    from grb.evaluator.scoring import primary_metric

    use_machine(threads)
    check_device(device)
    loaded = load_dataset(dataset, mode=mode or "full", data_dir=data_dir)
    if loaded.task == "graph" and chosen_difficulty == "transductive":
        raise DataError(f"--train-mode is transductive, but the graphs of '{loaded.name}' are separate; leave it out")
    if split is not None:
        loaded = loaded.with_split(split)
        assert loaded.scheme is not None
        output.say(f"split {split}: {loaded.scheme.about(split)}")
    if mode is not None:
        loaded.test_ids(mode)
    settings, parameters = _prepare(_defended(models or [], defenses or []), loaded, changes)
    check_target(save, len(settings) * len(listed), SUFFIX, example="models/")
    number = None if loaded.scheme is None else split or 0
    plan = Plan(settings, parameters, listed, changes, chosen_difficulty, device, mode, save, number)
    runs, interrupted = _train_all(plan, loaded)
    result = {
        "grb": __version__,
        "torch": torch.__version__,
        "dataset": {"name": loaded.name, "synthetic": loaded.synthetic, "fingerprint": loaded.fingerprint()},
        "metric": primary_metric(loaded),
        "train_mode": chosen_difficulty,
        **({} if number is None else {"split": number}),
        "device": device,
        "threads": threads,
        "interrupted": interrupted,
        "runs": [asdict(run) for run in runs],
        "summary": [_summary(model, [run for run in runs if run.model == model]) for model in settings],
    }
    if as_json:
        output.print_json(result)
    elif runs:
        _show(result, loaded, plan)
    _say_saved([run.saved for run in runs if run.saved])
    if interrupted:
        raise KeyboardInterrupt
    if any(run.error for run in runs):
        raise typer.Exit(FAILED)


def _changes(
    lr: float | None, hidden: str | None, dropout: float | None, epochs: int | None, patience: int | None
) -> dict[str, Any]:
    """What the user wants otherwise than the preset; the model's own arguments only if given."""
    if lr is not None and not (math.isfinite(lr) and lr > 0):
        raise DataError(f"--lr is {lr}, but a finite number above 0 is needed, for instance 0.01")
    if dropout is not None and not 0 <= dropout < 1:
        raise DataError(f"--dropout is {dropout}, but at least 0 and below 1 is needed, for instance 0.5")
    changes: dict[str, Any] = {"lr": lr, "epochs": epochs, "patience": patience}
    if hidden is not None:
        changes["hidden_features"] = _widths(hidden)
    if dropout is not None:
        changes["dropout"] = dropout
    return changes


def _widths(text: str) -> list[int]:
    """Hidden widths from ``64,64``.

    >>> _widths("64, 32")
    [64, 32]
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"[0-9]{1,6}", part) and int(part) > 0 for part in parts):
        raise DataError(f"--hidden is '{text}', but whole numbers above 0 with commas are needed, for instance 64,64")
    return [int(part) for part in parts]


def _train_mode(given: str) -> Literal["inductive", "transductive"]:
    if given == "inductive":
        return "inductive"
    if given == "transductive":
        return "transductive"
    raise DataError(f"--train-mode is '{given}', but inductive or transductive is needed")


def _defended(models: list[str], defenses: list[str]) -> list[str]:
    """Names of the models with all defenses on them; a defense that is a model of its own needs no other one."""
    from grb.names import ModelName

    if not models and not defenses:
        raise DataError("no MODEL was given; name one, for instance `grb train gcn`, or a --defense such as gatguard")
    if not models:
        alone, *defenses = defenses
        models = [str(ModelName.of_defense(alone))]
    for defense in defenses:
        models = [str(ModelName.parse(model).with_defense(defense)) for model in models]
    return models


def _seeds(seed: int | None, seeds: int | None) -> tuple[int, ...]:
    if seed is not None and seeds is not None:
        raise DataError("--seed and --seeds were both given; --seeds 3 trains with 0, 1 and 2, --seed 3 with 3 alone")
    check_seed("seed", seed)
    return tuple(range(seeds)) if seeds is not None else (seed or 0,)


def _prepare(
    models: list[str], dataset: Dataset, changes: Mapping[str, Any]
) -> tuple[dict[str, Settings], dict[str, int]]:
    """Settings and size of every model, so that a bad name is refused before the first training and not after it."""
    from grb.model.build import build, settings
    from grb.names import ModelName

    chosen = [
        settings(ModelName.parse(name).for_task(dataset.task), dataset.name).override(**changes) for name in models
    ]
    found = {own.model: own for own in chosen}
    made = {name: build(own, dataset.num_features, dataset.num_classes) for name, own in found.items()}
    return found, {name: sum(weight.numel() for weight in model.parameters()) for name, model in made.items()}


def _file(save: Path, model: str, dataset: str, seed: int) -> Path:
    if is_one_file(save, SUFFIX):
        return save
    plain = [re.sub(r"[^\w.+-]", "-", part) for part in (model, dataset)]
    return save / f"{plain[0]}-{plain[1]}-seed{seed}{SUFFIX}"


def _train_all(plan: Plan, dataset: Dataset) -> tuple[list[Run], bool]:
    """All runs, or those that were finished when the user interrupted."""

    def announced(run: tuple[str, int]) -> tuple[str, int | None]:
        model, seed = run
        return f"{model} seed {seed}", plan.models[model].epochs

    console = output.console(stderr=True)
    console.print(dataset_line(dataset))
    return run_all(console, plan.runs, announced, lambda run, progress: _train_one(plan, dataset, *run, progress))


def _train_one(plan: Plan, dataset: Dataset, model: str, seed: int, progress: ProgressReporter) -> Run:
    from grb import api
    from grb.trainer import save_model
    from grb.trainer.loop import TrainingError

    chosen = plan.models[model]
    settings = {"lr": chosen.lr, "epochs": chosen.epochs, "patience": chosen.patience, **chosen.params}
    begun: dict[str, Any] = {
        "model": model,
        "seed": seed,
        "parameters": plan.parameters[model],
        "settings": settings,
    }
    try:
        trained, fit = api.train_with_history(
            model,
            dataset,
            seed=seed,
            train_mode=plan.train_mode,
            device=plan.device,
            on_epoch=progress.epoch,
            **plan.changes,
        )
    except TrainingError as error:
        return Run(**begun, error=str(error))
    scores = api.evaluate(trained, dataset)
    shown = dict(scores) if plan.mode is None else {plan.mode: scores[plan.mode]}
    saved = problem = None
    if plan.save is not None:
        place = _file(plan.save, model, dataset.name, seed)
        meta: dict[str, Any] = {
            "dataset": dataset.name,
            "fingerprint": dataset.fingerprint(),
            "train_mode": plan.train_mode,
        }
        meta |= {} if plan.split is None else {"split": plan.split}
        try:
            saved = str(save_model(trained, place, seed=seed, scores=dict(scores), **meta))
        except GRBError as refusal:  # the scores are worth showing all the same
            problem = str(refusal)
    return Run(
        **begun,
        scores=shown,
        best_epoch=fit.best_epoch,
        best_val_score=fit.best_score,
        epochs=fit.epochs,
        seconds=round(fit.seconds, 3),
        stopped=fit.stopped,
        saved=saved,
        error=problem,
    )


def _summary(model: str, runs: list[Run]) -> dict[str, Any]:
    from grb.metric import mean_std

    trained = [run for run in runs if run.scores]
    scores: dict[str, Any] = {}
    for part in trained[0].scores if trained else ():
        found = mean_std([run.scores[part] for run in trained])
        scores[part] = {"mean": float(found.mean), "std": float(found.std) if len(trained) > 1 else None}
    count = max(len(trained), 1)
    return {
        "model": model,
        "parameters": runs[0].parameters if runs else None,
        "seeds": len(trained),
        "failed": sum(run.error is not None for run in runs),
        "scores": scores,
        "epochs": sum(run.epochs or 0 for run in trained) / count if trained else None,
        "seconds": round(sum(run.seconds or 0 for run in trained) / count, 3) if trained else None,
    }


def _show(result: dict[str, Any], dataset: Dataset, plan: Plan) -> None:
    parts = list(dict.fromkeys(part for row in result["summary"] for part in row["scores"]))
    failed = any(row["failed"] for row in result["summary"])
    headers = ["model", "params", *parts, "epochs", "seconds", *(["failed"] if failed else [])]
    rows = [
        [
            row["model"],
            row["parameters"],
            *(_score(row["scores"].get(part)) for part in parts),
            None if row["epochs"] is None else f"{row['epochs']:.0f}",
            None if row["seconds"] is None else f"{row['seconds']:.1f}",
            *([f"{row['failed']} of {len(plan.seeds)}"] if failed else []),
        ]
        for row in result["summary"]
        if row["parameters"] is not None
    ]
    several = f", mean {output.plus_minus()} std of {len(plan.seeds)} seeds" if len(plan.seeds) > 1 else ""
    if result["interrupted"]:
        several = f", interrupted after {len(result['runs'])} of {len(plan.runs)} runs"
    title = f"{dataset_title(dataset)}, {plan.train_mode}: {result['metric']} in %{several}"
    output.table(title, headers, rows, numbers=headers[1:])


def _say_saved(files: list[str]) -> None:
    if len(files) > 1:
        output.say(f"saved {len(files)} models in {Path(files[0]).parent}")
    elif files:
        output.say(f"saved {files[0]}")


def _score(score: dict[str, float | None] | None) -> str | None:
    if score is None or score["mean"] is None:
        return None
    mean = f"{100 * score['mean']:.2f}"
    return mean if score["std"] is None else f"{mean}{output.plus_minus()}{100 * score['std']:.2f}"
