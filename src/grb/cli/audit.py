"""``grb audit``: how robust is a trained model on a dataset, as a report to hand on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.cli import options, output
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.auditing import AuditReport
    from grb.dataset import Dataset

FAILED = 1
Source = Annotated[
    str | None,
    typer.Argument(
        metavar="[MODEL]",
        help="Model written by `grb train --output`, a published one, or package.module:function that makes a trained module.",
    ),
]
Column = "Name of the column of CSV files that is "


def audit(
    model: Source = None,
    command: Annotated[
        str | None,
        typer.Option(
            metavar="PROGRAM",
            help="A program that answers instead of a model: it gets the paths of graph.npz (x, edge_index) and of the "
            "scores.npy that it has to write.",
        ),
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(metavar="FILE.safetensors", help="Weights for the module that MODEL makes.")
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option("--dataset", "-d", help="Dataset by name or path; the one of the model's file if not given."),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="NAME,...", help="What counts, the first one leads; for instance recall:1,accuracy."),
    ] = None,
    targets: options.TargetNodes = None,
    scenarios: Annotated[
        str, typer.Option("--scenario", metavar="NAME,...", help="Scenarios to try: injection, modification, or both.")
    ] = "injection,modification",
    budgets: Annotated[
        list[str] | None,
        typer.Option(
            "--budget", metavar="NAME=N,...", help="Budgets of a scenario, as in injection=1,2,4; repeatable."
        ),
    ] = None,
    below: Annotated[
        float | None, typer.Option(help="The model is broken where the leading metric is below this.")
    ] = None,
    limits: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.yaml",
            help="What attackers may do instead of the default limits, by scenario: nodes, edges_per_node, edges, ... and "
            "constraints in the names of your columns.",
        ),
    ] = None,
    surrogates: Annotated[
        str,
        typer.Option(metavar="NAME,...", help="Models that transfers start from, trained here; none for no transfers."),
    ] = "gcn",
    effort: Annotated[str, typer.Option(help="How much to compute: quick, standard or thorough.")] = "standard",
    corruptions: Annotated[bool, typer.Option(help="Try the corruptions of the graph and its features too.")] = True,
    queries: Annotated[
        int | None,
        typer.Option(
            help="How often an attack may ask the program of --command, for every budget; by effort if not given."
        ),
    ] = None,
    fail_under: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION",
            help="Exit with code 1 unless this holds, as in 'worst_case.recall>=0.8,injection.breaking_point>=10'.",
        ),
    ] = None,
    written: Annotated[
        list[Path] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the report: .html, .md, .json, .sarif, .yaml (model-index) or .cdx.json (CycloneDX); repeatable.",
        ),
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="Directory that keeps the steps: an interrupted audit goes on where it stopped.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the model in the report.")] = None,
    node_id: Annotated[str | None, typer.Option("--id", help=f"{Column}the id of a node.")] = None,
    label: Annotated[str | None, typer.Option(help=f"{Column}the class.")] = None,
    source: Annotated[str | None, typer.Option(help=f"{Column}one end of an edge.")] = None,
    target: Annotated[str | None, typer.Option(help=f"{Column}the other end.")] = None,
    split_column: Annotated[str | None, typer.Option(help=f"{Column}train, val or test.")] = None,
    time: Annotated[str | None, typer.Option(help=f"{Column}a time: the earliest train, the latest test.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the audit.")] = 0,
    threads: Annotated[int, typer.Option(help="Number of threads that torch uses.")] = 1,
    as_json: options.Json = False,
) -> None:
    """Audit a trained model: clean metrics, worst cases by budget, breaking points, transfers, corruptions, and who suffers.

    \b
    Examples:
      grb audit gcn.safetensors -o report.html
      grb audit gcn.safetensors --effort quick --metrics macro-f1 --fail-under 'worst_case.macro-f1>=0.5'
      grb audit my_models:make --weights net.safetensors -d ./accounts --id account --label fraud --targets class=1
      grb audit --command "python predict.py" -d ./accounts --effort quick -o report.md -o report.sarif
    """
    from grb.auditing import audit as run_audit
    from grb.auditing import check
    from grb.auditing.conditions import parse_only
    from grb.pipeline.safe_yaml import parse_mapping, read_text

    listed = [each.strip() for each in scenarios.split(",")]
    options.check_counts(threads=threads)
    options.check_seed("seed", seed)
    if fail_under is not None:
        parse_only(fail_under, listed, corrupt=corruptions)
    for path in written or ():
        _check_ending(path)
    threats = (
        None if limits is None else parse_mapping(read_text(limits, max_bytes=100_000, what="limits"), str(limits))
    )
    columns = {"id": node_id, "label": label, "source": source, "target": target, "split": split_column, "time": time}
    given = {role: column for role, column in columns.items() if column is not None}
    options.use_machine(threads)
    made, loaded, title = _load(model, command, weights, dataset, given)
    report = run_audit(
        made,
        loaded,
        metrics=metrics,
        targets=None if targets is None else options.chosen_targets(targets),
        scenarios=listed,
        budgets=_budgets(budgets or []),
        threats=threats,
        below=below,
        effort=effort,
        surrogates=[] if surrogates == "none" else [each.strip() for each in surrogates.split(",")],
        corrupt=corruptions,
        queries=queries,
        seed=seed,
        name=name or title,
        store=store,
        on_progress=None if as_json else lambda line: output.echo(line),
    )
    for path in written or ():
        report.save(path)
        output.echo(f"wrote {path}")
    outcomes = check(report, fail_under) if fail_under is not None else []
    if as_json:
        output.print_json({**report.to_dict(), "conditions": [vars(each) for each in outcomes]})
    else:
        _show(report)
    for each in outcomes:
        output.echo(str(each))
    if not all(each.holds for each in outcomes):
        raise typer.Exit(FAILED)


def _check_ending(path: Path) -> None:
    from grb.auditing.report import ENDINGS

    if not path.name.lower().endswith(tuple(ENDINGS)):
        raise DataError(f"--output is {path}, but a file that ends in one of {', '.join(ENDINGS)} is needed")
    options.check_directory(path.parent, path)


def _load(
    model: str | None, command: str | None, weights: Path | None, dataset: str | None, columns: dict[str, str]
) -> tuple[Any, Dataset, str | None]:
    """The model, its dataset, and a name for the report."""
    from grb.auditing import Program
    from grb.names import is_import_path

    if (model is None) == (command is None):
        raise DataError("give a model's file, package.module:function, or --command PROGRAM; one of them")
    if weights is not None and (model is None or not is_import_path(model)):
        raise DataError("--weights are for a module that package.module:function makes; a model's file has its own")
    if command is not None or (model is not None and is_import_path(model)):
        if dataset is None:
            raise DataError("give the dataset with --dataset; only files of `grb train` say what they were trained on")
        loaded = _dataset(dataset, columns)
        if command is not None:
            return Program(command), loaded, None
        assert model is not None
        return _made(model, weights, loaded), loaded, model.rpartition(":")[2]
    from grb.cli.eval import check_model, on_split, trained_on
    from grb.trainer.checkpoint import load_model_with_meta

    file = options.model_file(Path(str(model)))
    own, meta = load_model_with_meta(file)
    loaded, _ = on_split(_dataset(dataset or trained_on(file, meta), columns), [meta])
    check_model(file, own, meta, loaded, loaded.fingerprint())
    return own, loaded, None


def _dataset(source: str, columns: dict[str, str]) -> Dataset:
    from grb.dataset import Dataset, load_dataset

    if not columns:
        return load_dataset(source)
    if not Path(source).exists():
        raise DataError(f"--{next(iter(columns))} names a column of CSV files, but --dataset {source} is no path")
    return Dataset.from_csv(source, columns=columns)


def _made(path: str, weights: Path | None, dataset: Dataset) -> Any:
    """The module that the user's function or class makes, with weights from a safetensors file."""
    import inspect

    from torch import nn

    from grb.catalogue import resolve

    maker = resolve("model", path)
    sizes = {"in_features": dataset.num_features, "out_features": dataset.num_classes}
    try:
        taken = inspect.signature(maker).parameters if callable(maker) else {}
        made = maker(**{name: size for name, size in sizes.items() if name in taken})
    except Exception as error:  # whatever somebody's code raises
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:160]
        raise DataError(
            f"{path} makes no model ({reason}); a function or class is needed that takes nothing, or in_features and "
            "out_features, and gives the module"
        ) from error
    if weights is not None:
        if not isinstance(made, nn.Module):
            raise DataError(f"{path} makes a {type(made).__name__}, but weights belong to a torch.nn.Module")
        from grb.trainer.checkpoint import load_weights

        load_weights(made, weights)
    return made.eval() if isinstance(made, nn.Module) else made


def _budgets(given: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for text in given:
        scenario, equals, listed = text.partition("=")
        numbers = [part.strip() for part in listed.split(",")]
        if not equals or not all(part.isdigit() for part in numbers):
            raise DataError(f"--budget is '{text}', but a scenario and numbers as in injection=1,2,4 are needed")
        found[scenario.strip()] = [int(part) for part in numbers]
    return found


def _show(report: AuditReport) -> None:
    values = report.to_dict()
    typer.echo(f"{report.headline}\n")
    metric, clean = values["metric"]["name"], values["clean"]
    rows = [
        [
            name,
            f"{value:.3f}",
            _number(clean["baselines"]["majority"].get(name)),
            _number(clean["baselines"]["mlp"].get(name)),
            *(_number(each["values"].get(name)) for each in values["scenarios"]),
        ]
        for name, value in clean["values"].items()
    ]
    worst = [f"{each['scenario']}, worst" for each in values["scenarios"]]
    header = ["metric", "clean", "largest class", "MLP", *worst]
    output.table(f"{values['model']['name']} on {values['dataset']['name']}", header, rows, numbers=header[1:])
    for each in values["scenarios"]:
        listed = [
            [point["budget"], f"{point['value']:.3f}", f"{point['low']:.3f} to {point['high']:.3f}", point["attack"]]
            for point in each["points"]
        ]
        header = [each["unit"], metric, "95 % interval", "found by"]
        output.table(each["scenario"], header, listed, numbers=header[:2])
        first = ", ".join(str(row["node"]) for row in each["vulnerable"][:8])
        if first:
            output.echo(f"nodes that fall first: {first}")
    for flag in values["flags"]:
        output.echo(f"warning: {flag['name']}: {flag['message']}")
    output.echo(f"not tested: {'; '.join(values['not_tested'])}")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
