"""``grb info``: everything about one name."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from grb import catalogue
from grb.cli import describe, output
from grb.cli.ls import known_kind, where
from grb.cli.options import Json, names
from grb.errors import DataError, UnknownName
from grb.names import ModelName

# facts that only models have
MORE = (("parameters_on_grb_cora", "parameters on grb-cora"), ("training", "training"))


def info(
    name: Annotated[str, typer.Argument(help="Any name that `grb ls` shows.", autocompletion=names())],
    kind: Annotated[
        str | None, typer.Option(help="Show only the dataset, model or other kind of this name; all kinds by default.")
    ] = None,
    only_path: Annotated[
        bool, typer.Option("--path", help="Print only the directory of a dataset, which is not loaded for that.")
    ] = False,
    by_class: Annotated[
        bool,
        typer.Option(
            "--by-class",
            help="Print only mean properties of the graphs of every class, as in the taxonomy paper's Table D.1.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show a dataset's statistics, or a model's parameters and the papers' settings for it.

    \b
    Examples:
      grb info synth-cora
      grb info gcn+ln
      grb info grb-cora --json
      grb info mutag --by-class
      ls -l "$(grb info grb-cora --path)"
    """
    kinds = catalogue.kinds() if kind is None else [known_kind(kind)]
    found = {kind: known for kind in kinds if (known := _canonical_name(kind, name)) is not None}
    if not found:
        every = [each for kind in kinds for each in catalogue.entries(kind)]
        raise UnknownName(" or ".join(kinds), name, every, advice="`grb ls` shows all names.")
    if only_path:
        _print_path(found.get("dataset"), name, as_json)
        return
    if by_class:
        _print_classes(found.get("dataset"), name, as_json)
        return
    about = {kind: _about(kind, known, name) for kind, known in found.items()}
    if as_json:
        output.print_json({"name": name, "kinds": about})
        return
    for kind, facts in about.items():
        _show(kind, facts)


def _print_path(name: str | None, given: str, as_json: bool) -> None:
    """Print where the files of a dataset are; embedded ones have none."""
    from grb.dataset import registry
    from grb.dataset.registry import SOURCES

    if name is None:
        raise DataError(f"--path is for datasets, but '{given}' is none; leave it out")
    place = str(registry.find(name)) if name in SOURCES or registry.has_files(name) else None
    if as_json:
        output.print_json({"name": name, "embedded": name in registry.EMBEDDED, "path": place})
    else:
        print(place or f"{name} has no files ({where(name)}): it is made in memory when it is loaded")


def _print_classes(name: str | None, given: str, as_json: bool) -> None:
    """Print nodes, edges, diameter and other properties of graphs, mean by class."""
    if name is None:
        raise DataError(f"--by-class is for datasets, but '{given}' is none; leave it out")
    from grb.dataset import load_dataset
    from grb.taxonomy import class_properties

    found = class_properties(load_dataset(name).graph)
    if as_json:
        output.print_json({"name": name, "classes": {str(label): own for label, own in found.items()}})
        return
    columns = list(next(iter(found.values())))
    rows = [[label, *(f"{own[column]:.3f}" for column in columns)] for label, own in found.items()]
    output.table(f"{name}: mean properties of the graphs of a class", ["class", *columns], rows, numbers=columns)


def _canonical_name(kind: str, name: str) -> str | None:
    try:
        return catalogue.canonical(kind, ModelName.parse(name).architecture if kind == "model" else name)
    except UnknownName:
        return None


def _about(kind: str, known: str, given: str) -> dict[str, Any]:
    if kind == "dataset":
        return describe.dataset(known)
    if kind == "model":
        return describe.model(given)
    return describe.anything(kind, known)


def _show(kind: str, facts: dict[str, Any]) -> None:
    if kind == "dataset":
        _show_dataset(facts)
    else:
        _show_code(kind, facts)


def _show_dataset(facts: dict[str, Any]) -> None:
    label = " (synthetic)" if facts["synthetic"] else ""
    pairs = {key: value for key, value in facts.items() if key not in ("name", "synthetic", "mean_degrees", "split")}
    output.facts(f"dataset {facts['name']}{label}", ((key.replace("_", " "), value) for key, value in pairs.items()))
    parts = dict.fromkeys([*facts.get("split", {}), *facts["mean_degrees"]])
    rows = [(part, facts.get("split", {}).get(part), facts["mean_degrees"].get(part)) for part in parts]
    output.table(None, ["part", "nodes", "mean degree"], rows, numbers=["nodes", "mean degree"])


def _show_code(kind: str, facts: dict[str, Any]) -> None:
    output.facts(
        f"{kind} {facts['name']}",
        [("summary", facts["summary"]), ("code", facts["code"]), ("about", facts["about"])]
        + [(label, facts[key]) for key, label in MORE if key in facts],
    )
    arguments = [(row["name"], row["default"], row["meaning"]) for row in facts["arguments"]]
    output.table("constructor", ["argument", "default", "meaning"], arguments)
    if facts.get("presets"):
        keys = list(dict.fromkeys(key for row in facts["presets"] for key in row))
        rows = [[row.get(key) for key in keys] for row in facts["presets"]]
        output.table(
            "the papers' settings", keys, rows, numbers=[key for key in keys if key not in ("dataset", "model")]
        )
