"""``grb ls``: what there is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from grb import catalogue
from grb.cli import output
from grb.cli.options import Json
from grb.dataset import registry
from grb.dataset.registry import SOURCES
from grb.errors import DataError, UnknownName

STATISTICS = ("nodes", "edges", "features", "classes")
ABSENT = "not on this machine"


def _complete_kind(incomplete: str) -> list[str]:
    return [f"{kind}s" for kind in catalogue.kinds() if kind.startswith(incomplete)]


def ls(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="What to list: datasets, models, attacks and so on; everything by default.",
            autocompletion=_complete_kind,
        ),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print names alone, as a Markdown table.")] = False,
    as_json: Json = False,
) -> None:
    """List datasets, models and everything else that has a name.

    \b
    Examples:
      grb ls
      grb ls models
      grb ls recipes
      grb ls datasets --json
      grb ls --markdown
    """
    if markdown and as_json:
        raise DataError("--markdown and --json were both given; give one of them")
    recipes = kind is not None and kind.lower() in ("recipe", "recipes")
    if markdown:
        kinds = [] if recipes else catalogue.kinds() if kind is None else [known_kind(kind)]
        typer.echo(markdown_table(kinds, scenarios=kind is None, recipes=recipes))
        return
    if recipes:
        _show_recipes(as_json)
        return
    kinds = catalogue.kinds() if kind is None else [known_kind(kind)]
    sizes = catalogue.preset("sizes") if "dataset" in kinds else {}
    found = {
        kind: [_row(kind, name, entry, sizes) for name, entry in catalogue.entries(kind).items()] for kind in kinds
    }
    if as_json:
        output.print_json(found)
        return
    for kind, rows in found.items():
        _show(kind, rows)


def markdown_table(kinds: list[str], *, scenarios: bool = False, recipes: bool = False) -> str:
    """Names of some kinds, those of one family in a row; the README's table is that of all kinds and the scenarios."""
    families: dict[str, list[str]] = {}
    for kind in kinds:
        for name, entry in catalogue.entries(kind).items():
            families.setdefault(_family(kind, name, entry), []).append(name)
    if scenarios:
        families["scenarios"] = sorted({row["scenario"] for row in _recipes()})
    if recipes:
        families["recipes"] = [row["name"] for row in _recipes()]
    rows = [f"| {family} | {', '.join(f'`{name}`' for name in names)} |" for family, names in families.items()]
    return "\n".join(["| what | names |", "|---|---|", *rows])


def _family(kind: str, name: str, entry: catalogue.Entry) -> str:
    """The heading under which the table lists a name: its kind, or a part of it."""
    if kind == "attack":
        return f"attacks, {entry.group}" if entry.group else "attacks"
    if kind == "model":
        return "models that are defenses" if entry.group == "defense" else "models"
    if kind == "dataset":
        files = "GRB" if registry.has_files(name) else "from raw files"
        return f"datasets, {'embedded' if name in registry.EMBEDDED else files}"
    return {"defense": "defenses of any model", "profiler": "profiling models"}.get(kind, f"{kind}s")


def _recipes() -> list[dict[str, str]]:
    """Studies that come with grb; read here without the pipeline, which would import torch."""
    from importlib import resources

    import yaml

    folder = resources.files("grb").joinpath("pipeline").joinpath("recipes")
    rows = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        values = yaml.safe_load(entry.read_text("utf-8"))
        name, scenario = entry.name.removesuffix(".yaml"), values.get("scenario", "injection")
        rows.append({"name": name, "dataset": values["dataset"], "scenario": scenario, "title": values["title"]})
    return rows


def _show_recipes(as_json: bool) -> None:
    rows = _recipes()
    if as_json:
        output.print_json({"recipe": rows})
    else:
        output.table("recipes", ["name", "dataset", "scenario", "title"], [list(row.values()) for row in rows])


def known_kind(kind: str) -> str:
    """The catalogue's word for a kind given in singular or plural."""
    kinds = catalogue.kinds()
    for known in kinds:
        if kind.lower() in (known, f"{known}s"):
            return known
    plurals = [f"{known}s" for known in kinds]
    raise UnknownName("kind", kind, plurals, advice=f"Allowed: {', '.join(plurals)}.")


def where(name: str) -> str:
    """Where a dataset comes from: embedded, a directory, a plug-in, or nowhere on this machine."""
    if name in registry.EMBEDDED:
        return "embedded"
    if name not in SOURCES and not registry.has_files(name):
        return f"by {catalogue.entries('dataset')[name].target}"
    try:
        return str(registry.find(name))
    except DataError:
        return ABSENT


def _row(kind: str, name: str, entry: catalogue.Entry, sizes: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "summary": entry.description, "aliases": list(entry.aliases)}
    if kind == "dataset":
        known = {**sizes.get(name, {}), **catalogue.preset("datasets").get(name, {})}
        row.update({key: known.get(key) for key in ("kind", "graphs", *STATISTICS)}, where=where(name))
    return row


def _show(kind: str, rows: list[dict[str, Any]]) -> None:
    extra = ("kind", "graphs", *STATISTICS, "where") if kind == "dataset" else ()
    names = [", ".join([row["name"], *row["aliases"]]) for row in rows]
    cells = [[name, *(row[key] for key in extra), row["summary"]] for name, row in zip(names, rows)]
    output.table(f"{kind}s", ["name", *extra, "summary"], cells, numbers=("graphs", *STATISTICS))
