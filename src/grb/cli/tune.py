"""``grb tune``: search for good settings, with the same budget for everybody."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from grb.cli import output
from grb.cli.options import DataDir, Json, check_counts, check_directory, check_seed, names, use_machine
from grb.errors import DataError

Methods = Annotated[
    list[str],
    typer.Argument(
        metavar="NAME",
        help="Models and defenses, or attacks with --model.",
        autocompletion=names("model", "attack"),
    ),
]
Dataset = Annotated[str, typer.Option(help="Where.", autocompletion=names("dataset"))]
Trials = Annotated[int, typer.Option(help="For each of them.")]
Epochs = Annotated[int | None, typer.Option(help="Of a training, or iterations of an attack; the paper's.")]
Repeats = Annotated[int, typer.Option(help="Runs whose mean is a trial's score.")]
Model = Annotated[Path | None, typer.Option(help="Tune attacks on this model (.safetensors).")]
Space = Annotated[Path | None, typer.Option(help="YAML file of what to vary, instead of ours.")]
Sampler = Annotated[str, typer.Option(help="tpe or random.")]
Storage = Annotated[str | None, typer.Option(help="Keep trials here, and resume: sqlite:///tune.db")]
Seed = Annotated[int, typer.Option(help="Of the search and everything in it.")]
Recipe = Annotated[Path | None, typer.Option(help="Write what was found as a recipe for `grb run`.")]
Figures = Annotated[Path | None, typer.Option(help="Draw the searches into this directory.")]
Threads = Annotated[int, typer.Option(help="Of torch.")]


def tune(
    methods: Methods,
    dataset: Dataset = "synth-cora",
    trials: Trials = 50,
    epochs: Epochs = None,
    repeats: Repeats = 1,
    model: Model = None,
    space: Space = None,
    sampler: Sampler = "tpe",
    storage: Storage = None,
    seed: Seed = 0,
    recipe: Recipe = None,
    figures: Figures = None,
    threads: Threads = 1,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Look for good settings of models, defenses or attacks; nobody sees a test label.

    \b
    Examples:
      grb tune gcn --dataset synth-cora --trials 20
      grb tune gcn gat+ln --dataset grb-cora --storage sqlite:///tune.db --recipe tuned.yaml
      grb tune pgd --model gcn.safetensors --dataset synth-cora --epochs 50
    """
    from grb.automl import tune as search
    from grb.dataset import load_dataset

    check_counts(trials=trials, repeats=repeats, epochs=epochs, threads=threads)
    check_seed("seed", seed)
    for wanted in (recipe.parent if recipe is not None else None, figures):
        if wanted is not None:
            check_directory(wanted, wanted)
    if sampler not in ("tpe", "random"):
        raise DataError(f"--sampler is '{sampler}', but tpe or random is needed")
    use_machine(threads)
    data = load_dataset(dataset, data_dir=data_dir)
    options: dict[str, Any] = {"kind": "models" if model is None else "attacks", "space": _space(space)}
    if model is not None:
        from grb.trainer.checkpoint import load_model

        options["model"] = load_model(model)
    found = []
    for method in methods:
        best: list[float] = []

        def tell(tried: Any, method: str = method, best: list[float] = best) -> None:
            if tried.score is not None:
                best[:] = [(min if model else max)([*best, tried.score])]
            shown = f"{tried.score:.4f}" if tried.score is not None else f"{tried.state} {tried.error}".strip()
            output.say(f"{method} {tried.number + 1}/{trials}: {shown}" + (f", best {best[0]:.4f}" if best else ""))

        found.append(
            search(
                method,
                data,
                trials=trials,
                epochs=epochs,
                repeats=repeats,
                seed=seed,
                sampler=sampler,  # type: ignore[arg-type]
                storage=storage,
                on_trial=tell,
                **options,
            )
        )
    _written(found, recipe, figures)
    if as_json:
        output.print_json([_facts(each) for each in found])
        return
    rows = [[each.name, f"{each.best.score:.4f}", len(each.tried), _settings(each)] for each in found]
    heading = "share of kept labels" if model else "validation score"
    output.table(f"best settings on {dataset}", ["name", heading, "trials", "settings"], rows)


def _settings(tuned: Any) -> str:
    return ", ".join(f"{name}={value}" for name, value in tuned.settings.items())


def _written(found: list[Any], recipe: Path | None, figures: Path | None) -> None:
    """A recipe of what was found, and a figure of every search, where they are wanted."""
    from grb.atomic import write_atomic
    from grb.automl import recipe_of

    if recipe is not None:
        text = recipe_of(found).encode()
        write_atomic(recipe, lambda stream: _write(stream, text))
        output.say(f"written to {recipe}: `grb run {recipe}`")
    if figures is not None:
        from grb import visualise

        for each in found:
            path = visualise.save(visualise.draw_search(visualise.search(each)), figures / f"search-{each.name}.png")
            output.say(f"written to {path}")


def _space(path: Path | None) -> Any:
    from grb.automl import space_of
    from grb.pipeline.safe_yaml import parse_mapping, read_text

    return None if path is None else space_of(parse_mapping(read_text(path, max_bytes=2**16, what="spaces"), str(path)))


def _write(stream: Any, data: bytes) -> None:
    stream.write(data)


def _facts(found: Any) -> dict[str, Any]:
    return {
        "name": found.name,
        "dataset": found.dataset,
        "score": found.best.score,
        "settings": found.settings,
        "trials": [
            {"values": dict(each.values), "score": each.score, "state": each.state, "seconds": round(each.seconds, 3)}
            for each in found.tried
        ],
    }
