"""``grb eval``: score a saved model, on the clean graph or under an edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.cli import output
from grb.cli.options import DataDir, Json, check_counts, names, use_machine
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.dataset import Dataset
    from grb.graph import GraphEdit
    from grb.model.base import GraphModel


def evaluate(
    file: Annotated[Path, typer.Argument(metavar="FILE.safetensors", help="Written by `grb train --save`.")],
    dataset: Annotated[
        str | None,
        typer.Option(help="Dataset; the one it was trained on if not given.", autocompletion=names("dataset")),
    ] = None,
    edit: Annotated[Path | None, typer.Option(metavar="FILE.npz", help="Edit to apply to the graph first.")] = None,
    checks: Annotated[
        bool, typer.Option("--checks", help="Also look for signs that attacks on this model cannot be trusted.")
    ] = False,
    threads: Annotated[int, typer.Option(help="Threads of torch.")] = 1,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Score a saved model on each test set of a dataset.

    \b
    Examples:
      grb eval gcn.safetensors
      grb eval gcn.safetensors --dataset grb-cora --edit attack.npz
      grb eval gcn.safetensors --checks
    """

    from grb import api
    from grb.dataset import load_dataset
    from grb.graph import GraphEdit
    from grb.trainer.checkpoint import load_model_with_meta

    check_counts(threads=threads)
    use_machine(threads)
    model, meta = load_model_with_meta(file)
    loaded = on_split(load_dataset(dataset or trained_on(file, meta), data_dir=data_dir), [meta])
    fingerprint = loaded.fingerprint()
    check_model(file, model, meta, loaded, fingerprint)
    change = None
    if edit is not None:
        change, made_for = GraphEdit.load_with_meta(edit)
        _check_origin(edit, made_for, loaded, fingerprint)
    scores = {"clean": api.evaluate(model, loaded)}
    if change is not None:
        scores["edited"] = api.evaluate(model, loaded, change)
        output.say("note: limits of the edit were not checked here; `grb attack` does when it makes one")
    result = {
        "file": str(file),
        "model": model_title(model),
        "parameters": model.num_parameters,
        "dataset": {"name": loaded.name, "synthetic": loaded.synthetic, "fingerprint": fingerprint},
        "metric": metric_name(loaded),
        "threads": threads,
        "scores": scores,
        "edit": None if change is None else {"file": str(edit), **_size(change)},
        "warnings": None,
    }
    if checks and loaded.task == "graph":
        raise DataError(
            f"--checks looks at the nodes of one graph, but '{loaded.name}' has graphs to classify; leave it out"
        )
    if checks:
        from grb.evaluator import sanity_checks as reliability

        result["warnings"] = [flag.plain() for flag in reliability.check_model(model, loaded)]
    if as_json:
        output.print_json(result)
    else:
        _show(result, loaded)


def metric_name(dataset: Dataset) -> str:
    return "accuracy" if dataset.labels.dim() == 1 else "micro-F1"


def dataset_title(dataset: Dataset) -> str:
    return f"{dataset.name} (synthetic)" if dataset.synthetic else dataset.name


def dataset_line(dataset: Dataset) -> str:
    return (
        f"{dataset_title(dataset)}: {dataset.num_nodes} nodes, {dataset.num_edges} edges, "
        f"{dataset.num_features} features, {dataset.num_classes} classes"
    )


def model_title(model: GraphModel) -> str:
    return model.title


def trained_on(file: Path, meta: dict[str, Any]) -> str:
    name = meta.get("dataset")
    if not isinstance(name, str):
        raise DataError(f"{file} does not say which dataset it was trained on; give one with --dataset")
    if ":" in name:  # an import path: a file must not choose which code runs
        raise DataError(f"{file} names code '{name[:60]}' as its dataset; if you trust it, give it with --dataset")
    return name


def on_split(dataset: Dataset, metas: Sequence[Mapping[str, Any]]) -> Dataset:
    """The dataset with the split that models were trained on; with another one they may know the test labels."""
    if dataset.scheme is None:
        return dataset
    found = {
        meta["split"] for meta in metas if isinstance(meta.get("split"), int) and meta.get("dataset") == dataset.name
    }
    if len(found) > 1:
        listed = ", ".join(map(str, sorted(found)))
        raise DataError(
            f"the models were trained on the splits {listed} of '{dataset.name}'; compare models of one split"
        )
    return dataset.with_split(*found) if found else dataset


def check_model(file: Path, model: GraphModel, meta: dict[str, Any], dataset: Dataset, fingerprint: str) -> None:
    """Refuse a model of another shape; warn about one that was trained on other data of the same name."""
    from grb.model.base import check_task

    check_task(model, dataset)
    needs = {"features": model.params.get("in_features"), "classes": model.params.get("out_features")}
    has = {"features": dataset.num_features, "classes": dataset.num_classes}
    for what, number in needs.items():
        if number is not None and number != has[what]:
            raise DataError(
                f"{file} is a {model.name} for {number} {what}, but dataset '{dataset.name}' has {has[what]}; "
                "give the dataset it was trained on with --dataset"
            )
    if meta.get("dataset") == dataset.name and meta.get("fingerprint", fingerprint) != fingerprint:
        output.say(
            f"warning: {file} was trained on a '{dataset.name}' with another fingerprint; scores may not compare"
        )


def _check_origin(file: Path, meta: dict[str, Any], dataset: Dataset, fingerprint: str) -> None:
    """Refuse an edit of another dataset; a file that does not say what it was made for is taken as it is."""
    name = meta.get("dataset")
    if not isinstance(name, str) or meta.get("fingerprint", fingerprint) == fingerprint:
        return
    if name != dataset.name:
        raise DataError(
            f"{file} was made for dataset '{name[:60]}', but this is '{dataset.name}'; "
            "give the dataset it was made for with --dataset"
        )
    output.say(f"warning: {file} was made for a '{name}' with another fingerprint; scores may not compare")


def _size(edit: GraphEdit) -> dict[str, int]:
    return {
        "nodes_added": edit.num_new,
        "edges_added": edit.add.shape[1],
        "edges_dropped": edit.drop.shape[1],
        "rows_changed": 0 if edit.set_ids is None else len(edit.set_ids),
    }


def _show(result: dict[str, Any], dataset: Dataset) -> None:
    scores: dict[str, dict[str, float]] = result["scores"]
    rows = [[name, *(f"{100 * value:.2f}" for value in own.values())] for name, own in scores.items()]
    if "edited" in scores:
        change = (scores["edited"][key] - value for key, value in scores["clean"].items())
        rows.append(["change", *(f"{100 * value:+.2f}" for value in change)])
    parts = list(scores["clean"])
    title = f"{result['model']} on {dataset_title(dataset)}: {result['metric']} in %"
    output.table(title, ["graph", *parts], rows, numbers=parts)
    if result["warnings"]:
        found = [[flag["name"], flag["sentence"]] for flag in result["warnings"]]
        output.table("Warnings", ["check", "what was found"], found)
    elif result["warnings"] is not None:
        output.say("checks: nothing suspicious about the model's randomness, outputs and gradients")
    if result["edit"] is not None:
        words = [f"{count} {what.replace('_', ' ')}" for what, count in result["edit"].items() if what != "file"]
        output.say("edit: " + ", ".join(words))
