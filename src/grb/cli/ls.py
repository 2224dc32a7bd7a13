"""``grb ls``: what there is."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from grb import artefacts, catalogue
from grb.artefacts import Bundle, PublishedModel
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
            help="What to list: datasets, models, attacks, recipes, artefacts and so on; the catalogue by default.",
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
      grb ls artefacts
      grb ls datasets --json
      grb ls --markdown
    """
    if markdown and as_json:
        raise DataError("--markdown and --json were both given; give one of them")
    recipes = kind is not None and kind.lower() in ("recipe", "recipes")
    if kind is not None and kind.lower() in ("artefact", "artefacts"):
        if markdown:
            typer.echo(artefact_table())
        else:
            _show_artefacts(as_json)
        return
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


def artefact_table() -> str:
    """Published bundles as a Markdown table, with their hashes; the page about them has it."""
    rows = [
        f"| `{bundle.name}` | {bundle.title} | {len(bundle.models)} | {len(bundle.edits)} | {bundle.bytes / 2**20:.1f} MB | "
        f"{', '.join(bundle.signed_by) or 'nobody'} | `{bundle.sha256}` |"
        for bundle in artefacts.bundles().values()
    ]
    head = "| bundle | study | models | edits | size | signed by | sha256 |"
    return "\n".join([head, "|---|---|---|---|---|---|---|", *rows])


def _show_artefacts(as_json: bool) -> None:
    from grb.pipeline.published import addresses, where

    found = artefacts.bundles().values()
    places = {bundle.name: where(bundle) for bundle in found}
    if as_json:
        values = [
            {
                **bundle.to_dict(),
                "file": bundle.file,
                "where": str(places[bundle.name] or ""),
                "urls": addresses(bundle),
            }
            for bundle in found
        ]
        output.print_json({"artefact": values})
        return
    for bundle in found:
        place = places[bundle.name] or (ABSENT if addresses(bundle) else f"{ABSENT}, and no address is known")
        difficulty = bundle.difficulties[-1]
        title = f"{bundle.name}: {bundle.title}, {bundle.bytes / 2**20:.1f} MB, {place}; accuracy in %, {difficulty}"
        heads = ["model", "trainings (seeds)", "parameters", "clean", "worst case"]
        output.table(title, heads, _model_rows(bundle, difficulty), numbers=heads[2:])
        heads = ["edits of", "on", "labels", "edits"]
        output.table(f"{bundle.name}: edits", heads, _edit_rows(bundle), numbers=heads[3:])
    if not found:
        output.echo("nothing is published with this version")


def _model_rows(bundle: Bundle, difficulty: str) -> list[list[Any]]:
    """Every model with the means over its trainings; surrogates, which no board shows, apart."""
    groups: dict[tuple[str, bool], list[PublishedModel]] = {}
    for each in bundle.models:
        groups.setdefault((each.name, bool(each.clean)), []).append(each)
    return [
        [
            f"{bundle.name}/{name}",
            ", ".join(str(each.seed) for each in own),
            own[0].parameters,
            _mean(each.clean.get(difficulty) for each in own),
            _mean(each.worst_case.get(difficulty) for each in own),
        ]
        for (name, _), own in groups.items()
    ]


def _edit_rows(bundle: Bundle) -> list[list[Any]]:
    on = {"victim": "a victim", "surrogate": "a surrogate", "": "no model"}
    counts = Counter((each.name, on[each.role], each.labels) for each in bundle.edits)
    return [[f"{bundle.name}/{name}", role, labels, number] for (name, role, labels), number in counts.items()]


def _mean(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{100 * statistics.fmean(known):.2f}" if known else "-"


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
