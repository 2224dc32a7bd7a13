"""``grb tune``: search for good settings, with the same budget for every method."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.cli import output
from grb.cli.options import Json, check_counts, check_directory, model_file, names, use_machine
from grb.cli.taxonomy_run import parse_seeds
from grb.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

    from grb.automl import Trial, TuningResult

Methods = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME...",
        help="Models and defenses, or attacks with --model.",
        autocompletion=names("model", "attack"),
    ),
]
Dataset = Annotated[str, typer.Option("--dataset", "-d", help="Dataset to tune on.", autocompletion=names("dataset"))]
Trials = Annotated[int, typer.Option(help="Number of trials of every method.")]
Epochs = Annotated[
    int | None,
    typer.Option(help="Number of epochs of a training, or of iterations of an attack; the paper's if not given."),
]
Seeds = Annotated[
    str,
    typer.Option(metavar="N|A-B", help="Number of runs whose mean is a trial's score, or their seeds, as in 0-4."),
]
Model = Annotated[Path | None, typer.Option(help="Model to tune attacks on (.safetensors), or a published one.")]
Against = Annotated[
    str,
    typer.Option(
        help="Attack under which models are judged, on validation nodes, such as pgd; the clean validation score if not given.",
        autocompletion=names("attack"),
    ),
]
Space = Annotated[Path | None, typer.Option(help="YAML file of the search space, instead of the one of grb.")]
Storage = Annotated[
    str | None, typer.Option(help="Database to keep trials in and to resume from, such as sqlite:///tune.db.")
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE.yaml|DIR",
        help="File for a recipe of the best settings, or directory for that recipe and a figure of every search.",
    ),
]
Threads = Annotated[int, typer.Option(help="Number of torch threads.")]


def tune(
    methods: Methods,
    dataset: Dataset = "synth-cora",
    trials: Trials = 50,
    epochs: Epochs = None,
    seeds: Seeds = "1",
    model: Model = None,
    against: Against = "",
    space: Space = None,
    storage: Storage = None,
    out: Output = None,
    threads: Threads = 1,
    as_json: Json = False,
) -> None:
    """Search for good settings of models, defenses or attacks; no test label is used.

    \b
    Examples:
      grb tune gcn --dataset synth-cora --trials 20
      grb tune gcn gat+ln --dataset grb-cora --storage sqlite:///tune.db -o tuned.yaml
      grb tune gcn+ln gat+ln --dataset grb-cora --against pgd
      grb tune pgd --model gcn.safetensors --dataset synth-cora --epochs 50
    """
    from grb.automl import tune as search
    from grb.dataset import load_dataset

    check_counts(trials=trials, epochs=epochs, threads=threads)
    first, repeats = _consecutive(seeds)
    recipe, figures = _targets(out)
    use_machine(threads)
    data = load_dataset(dataset)
    options: dict[str, Any] = {"kind": "models" if model is None else "attacks", "space": _space(space)}
    if model is not None:
        from grb.trainer.checkpoint import load_model

        options["model"] = load_model(model_file(model))
    options |= {
        "against": against,
        "trials": trials,
        "epochs": epochs,
        "repeats": repeats,
        "seed": first,
        "storage": storage,
    }
    better = max if model is None else min
    found = [search(method, data, on_trial=_reporter(method, trials, better), **options) for method in methods]
    _write(found, recipe, figures)
    if as_json:
        output.print_json([each.to_dict() for each in found])
        return
    rows = [[each.name, f"{each.best.score:.4f}", len(each.trials), _settings(each)] for each in found]
    heading = "fraction of kept labels" if model else f"validation score{f' under {against}' if against else ''}"
    output.table(f"best settings on {dataset}", ["name", heading, "trials", "settings"], rows)


def _consecutive(seeds: str) -> tuple[int, int]:
    """First seed and number of seeds.

    >>> _consecutive("3"), _consecutive("4-5")
    ((0, 3), (4, 2))
    """
    found = parse_seeds(seeds)
    if found != list(range(found[0], found[0] + len(found))):
        raise DataError(f"--seeds is '{seeds}', but a number as in 3, or consecutive seeds as in 0-2, are needed")
    return found[0], len(found)


def _targets(out: Path | None) -> tuple[Path | None, Path | None]:
    """Where the recipe and the figures go; refused before the work if they cannot be written."""
    if out is None:
        return None, None
    is_file = out.suffix in (".yaml", ".yml")
    check_directory(out.parent if is_file else out, out)
    return (out, None) if is_file else (out / "tuned.yaml", out)


def _reporter(method: str, trials: int, better: Any) -> Callable[[Trial], None]:
    """A line on stderr after every trial."""
    scores: list[float] = []

    def report(trial: Trial) -> None:
        if trial.score is not None:
            scores.append(trial.score)
        shown = f"{trial.score:.4f}" if trial.score is not None else f"{trial.state} {trial.error}".strip()
        best = f", best {better(scores):.4f}" if scores else ""
        output.echo(f"{method} {trial.number + 1}/{trials}: {shown}{best}")

    return report


def _settings(tuned: TuningResult) -> str:
    return ", ".join(f"{name}={value}" for name, value in tuned.settings.items())


def _write(found: list[TuningResult], recipe: Path | None, figures: Path | None) -> None:
    """A recipe of what was found, and a figure of every search, where they are wanted."""
    from grb.atomic import write_atomic
    from grb.automl import recipe_of

    if recipe is not None:
        write_atomic(recipe, recipe_of(found).encode())
        output.echo(f"wrote {recipe}: `grb run {recipe}`")
    if figures is not None:
        from grb import visualise

        for each in found:
            path = visualise.save(visualise.draw_search(visualise.search(each)), figures / f"search-{each.name}.png")
            output.echo(f"wrote {path}")


def _space(path: Path | None) -> Any:
    from grb.automl import space_of
    from grb.pipeline.safe_yaml import parse_mapping, read_text

    return None if path is None else space_of(parse_mapping(read_text(path, max_bytes=2**16, what="spaces"), str(path)))
