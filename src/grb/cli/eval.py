"""``grb eval``: score a saved model on the clean graph and under edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.cli import output
from grb.cli.options import Json, check_counts, edit_file, model_file, names, use_machine
from grb.errors import DataError, UnknownName

if TYPE_CHECKING:
    from grb.dataset import Dataset
    from grb.graph import GraphEdit
    from grb.model.base import GraphModel


def evaluate(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE.safetensors",
            help="Model written by `grb train --output`, or the name of one in `grb ls artefacts`.",
        ),
    ],
    edits: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="EDIT.npz",
            help="Edits written by `grb attack --output`, or names of published ones, each applied by itself.",
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset",
            "-d",
            help="Dataset to score on; the one that the model was trained on if not given.",
            autocompletion=names("dataset"),
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Metrics beside accuracy, for instance macro-f1,recall:1,auroc (recall:1 is the recall of class 1), "
            "or custom ones as package.module:function.",
        ),
    ] = None,
    difficulty: Annotated[
        str | None,
        typer.Option(metavar="NAME,...", help="Test sets to score, for instance easy,full; all of them if not given."),
    ] = None,
    checks: Annotated[
        bool, typer.Option("--checks", help="Also look for signs that attacks on this model cannot be trusted.")
    ] = False,
    threads: Annotated[int, typer.Option(help="Number of threads that torch uses.")] = 1,
    as_json: Json = False,
) -> None:
    """Score a saved model on the test sets of a dataset, clean and under every edit.

    \b
    Examples:
      grb eval gcn.safetensors
      grb eval gcn.safetensors attack.npz other.npz --metrics macro-f1,recall:1
      grb eval gcn.safetensors --checks
      grb eval synth-tiny/gcn+ln synth-tiny/fgsm        published ones of `grb ls artefacts`
    """

    from grb import metric
    from grb.evaluator.scoring import is_third_party, primary_metric

    check_counts(threads=threads)
    use_machine(threads)
    file, edits = model_file(file), [edit_file(path) for path in edits or []]
    model, loaded, fingerprint = _load(file, dataset)
    chosen = metric.get_all(loaded.names.in_metrics(metrics or ""))
    changes = {str(path): _load_edit(path, loaded, fingerprint) for path in edits}
    if changes:
        output.echo("note: limits of the edits were not checked here; `grb attack` does when it makes one")
    wanted = [name.strip() for name in difficulty.split(",")] if difficulty else None
    result = {
        "file": str(file),
        "model": model.title,
        "parameters": model.num_parameters,
        "dataset": {"name": loaded.name, "synthetic": loaded.synthetic, "fingerprint": fingerprint},
        "metric": primary_metric(loaded),
        "threads": threads,
        "results": _results(model, loaded, changes, metrics=list(chosen.values()), difficulties=wanted),
        "warnings": _warnings(model, loaded) if checks or is_third_party(model) else None,
    }
    if as_json:
        output.print_json(result)
    else:
        _show(result, loaded, {name for name, each in chosen.items() if each.range != (0.0, 1.0)})


def _load(file: Path, dataset: str | None) -> tuple[GraphModel, Dataset, str]:
    """A saved model, the dataset to score it on, and that dataset's fingerprint."""
    from grb.dataset import load_dataset
    from grb.trainer.checkpoint import load_model_with_meta

    model, meta = load_model_with_meta(file)
    loaded, _ = on_split(load_dataset(dataset or trained_on(file, meta)), [meta])
    fingerprint = loaded.fingerprint()
    check_model(file, model, meta, loaded, fingerprint)
    return model, loaded, fingerprint


def _load_edit(file: Path, dataset: Dataset, fingerprint: str) -> GraphEdit:
    from grb.graph import GraphEdit

    edit, made_for = GraphEdit.load_with_meta(file)
    _check_origin(file, made_for, dataset, fingerprint)
    return edit


def _results(
    model: GraphModel, dataset: Dataset, edits: Mapping[str, GraphEdit], **options: Any
) -> list[dict[str, Any]]:
    """Scores on the clean graph, then under every edit, as JSON values."""
    from grb.evaluator.baseline import check_majority
    from grb.evaluator.scoring import predict_checked, score

    clean = predict_checked(model, dataset.graph, dataset)
    for name in options.get("difficulties") or [dataset.mode]:
        for flag in check_majority(clean, dataset, dataset.test_ids(name), name):
            output.echo(f"warning: {flag}")
    found = [score(model, dataset, after=clean, **options)]
    found += [score(model, dataset, edit, before=clean, **options) for edit in edits.values()]
    sizes = [None, *map(_size, edits.values())]
    return [
        {
            "graph": graph,
            "edit": size,
            "values": {name: dict(scores) for name, scores in each.values.items()},
            "changed": dict(each.changed),
            "invalid": dict(each.invalid),
        }
        for graph, size, each in zip(["clean", *edits], sizes, found, strict=True)
    ]


def dataset_title(dataset: Dataset) -> str:
    """A dataset's name for tables, which says so if it is synthetic."""
    return f"{dataset.name} (synthetic)" if dataset.synthetic else dataset.name


def dataset_line(dataset: Dataset) -> str:
    """A dataset and its size in one line."""
    return (
        f"{dataset_title(dataset)}: {dataset.num_nodes} nodes, {dataset.num_edges} edges, "
        f"{dataset.num_features} features, {dataset.num_classes} classes"
    )


def trained_on(file: Path, meta: dict[str, Any]) -> str:
    """The dataset that a model's file names; import paths are refused."""
    name = meta.get("dataset")
    if not isinstance(name, str):
        raise DataError(f"{file} does not say which dataset it was trained on; give one with --dataset")
    if ":" in name:  # an import path: a file must not choose which code runs
        raise DataError(f"{file} names code '{name[:60]}' as its dataset; if you trust it, give it with --dataset")
    from grb.catalogue import canonical

    try:
        canonical("dataset", name)
    except UnknownName as unknown:  # most often data of one's own, whose file does not say where it is
        raise DataError(
            f"{file} was trained on '{name[:60]}', which is no dataset by name; give it by its path, as in "
            f"--dataset ./{name[:60]}"
        ) from unknown
    return name


def on_split(dataset: Dataset, metas: Sequence[Mapping[str, Any]]) -> tuple[Dataset, int | None]:
    """The dataset with the split that models were trained on, and its number; with another they may know test labels."""
    if dataset.scheme is None:
        return dataset, None
    found = {
        meta["split"] for meta in metas if isinstance(meta.get("split"), int) and meta.get("dataset") == dataset.name
    }
    if len(found) > 1:
        listed = ", ".join(map(str, sorted(found)))
        raise DataError(
            f"the models were trained on the splits {listed} of '{dataset.name}'; compare models of one split"
        )
    number = found.pop() if found else 0
    return dataset.with_split(number), number


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
        output.echo(
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
    output.echo(f"warning: {file} was made for a '{name}' with another fingerprint; scores may not compare")


def _size(edit: GraphEdit) -> dict[str, int]:
    return {
        "nodes_added": edit.num_new,
        "edges_added": edit.add.shape[1],
        "edges_dropped": edit.drop.shape[1],
        "rows_changed": 0 if edit.set_ids is None else len(edit.set_ids),
    }


def _warnings(model: GraphModel, dataset: Dataset) -> list[dict[str, Any]]:
    from grb.evaluator import sanity_checks

    return [flag.to_dict() for flag in sanity_checks.check_model(model, dataset)]


def _show(result: dict[str, Any], dataset: Dataset, unbounded: set[str]) -> None:
    """One table of all metrics and graphs, in per cent but for metrics without a range from 0 to 1."""
    clean, *edited = result["results"]
    several, titles = len(clean["values"]) > 1, _titles([each["graph"] for each in edited])
    rows: list[list[str]] = []
    for name, own in clean["values"].items():
        factor, form = (1, ".4g") if name in unbounded else (100, ".2f")
        head = [name] if several else []
        rows.append([*head, "clean", *(f"{factor * value:{form}}" for value in own.values())])
        for title, each in zip(titles, edited, strict=True):
            values = each["values"][name]
            change = (f"{factor * (value - own[key]):+{form}}" for key, value in values.items())
            rows.append([*head, title, *(f"{factor * value:{form}}" for value in values.values())])
            rows.append([*head, "change", *change])
    parts = list(clean["changed"])
    unit = f"{'metrics' if several else result['metric']} in %"
    if unbounded:
        unit += f", {', '.join(sorted(unbounded))} as it is"
    headers = ["metric", "graph", *parts] if several else ["graph", *parts]
    output.table(f"{result['model']} on {dataset_title(dataset)}: {unit}", headers, rows, numbers=parts)
    if result["warnings"]:
        found = [[flag["name"], flag["message"]] for flag in result["warnings"]]
        output.table("Warnings", ["check", "what was found"], found)
    elif result["warnings"] is not None:
        output.echo("checks: nothing suspicious about the model's randomness, outputs and gradients")
    if invalid := max(max(each["invalid"].values()) for each in result["results"]):
        output.echo(f"warning: the model gives NaN for up to {invalid} targets; they count as wrong")
    for title, each in zip(titles, edited, strict=True):
        counts = [f"{count} {what.replace('_', ' ')}" for what, count in each["edit"].items()]
        output.echo(f"{title}: " + ", ".join(counts))


def _titles(files: Sequence[str]) -> list[str]:
    """File names without directory, or with it where two are the same."""
    listed = [Path(file).name for file in files]
    return [name if listed.count(name) == 1 else file for name, file in zip(listed, files, strict=True)]
