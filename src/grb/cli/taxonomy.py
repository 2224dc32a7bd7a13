"""``grb taxonomy``: which datasets behave alike under perturbations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.cli import output
from grb.cli.options import Json, check_counts, check_directory, check_seed, group
from grb.cli.taxonomy_place import place
from grb.cli.taxonomy_run import run
from grb.errors import DataError, UnknownName

if TYPE_CHECKING:
    from grb.taxonomy import Analysis, Components, Profiles

PUBLISHED = ("inductive", "transductive")
AGAINST = ("published", "models", "attacks", "left-out")
TEXTS, FIGURES = ("table", "json", "markdown", "csv"), ("png", "svg", "pdf")
MODEL = "gcn"

app = group("Profile and group datasets by their sensitivity to perturbations.")
app.command()(run)
app.command()(place)


@dataclass(frozen=True, eq=False)
class Source:
    """Profiles to analyse, where they come from, and what goes with them."""

    title: str
    models: Mapping[str, Profiles]
    profiles: Profiles
    cut: int | None = None
    joins: tuple[tuple[int, int], ...] = ()
    known: Mapping[str, str] | None = None
    recommended: tuple[str, ...] = ()
    classical: Components | None = None
    taxonomy: str | None = None


Runs = Annotated[
    str | None,
    typer.Argument(
        metavar="[STORE|FILE|inductive|transductive]",
        help="A store (the one below GRB_HOME if not given); runs (dataset, perturbation, auroc, and model, seed) as CSV, "
        "JSON or JSON lines; a wide CSV, one row per dataset and one column per perturbation, of mean AUROCs (with a "
        "column '-') or of log2 ratios; or one of the two taxonomies that the paper published.",
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(AGAINST),
        help="Instead of grouping datasets, compare every ratio with the published one, the profiles of several models with "
        "each other (and with those of --model), the sensitivity to perturbations with the accuracy that attacks in the same "
        "store cost, or (of a published taxonomy) groups that place states of datasets left out with the true ones.",
    ),
]
Model = Annotated[
    str | None, typer.Option(help="Name of the model whose profiles are analysed, where there are several.")
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SETTING=VALUE",
        help="Use only runs with this setting, for instance epochs=300, where a store has runs of several; values with commas "
        "between them, such as dataset=A,B, are alternatives; repeatable.",
    ),
]
Groups = Annotated[int | None, typer.Option(metavar="K", help="Number of groups to cut the tree into; 3 if not given.")]
MergeGroups = Annotated[
    list[str] | None,
    typer.Option(metavar="A+B", help="Merge two sibling groups, numbered from the top; repeatable."),
]
Labels = Annotated[
    Path | None, typer.Option(metavar="FILE.csv", help="Groups to compare with: columns dataset and group.")
]
Missing = Annotated[
    str,
    typer.Option(
        metavar="RULE",
        help="Treatment of missing cells: drop-perturbations (the paper's), drop-datasets, or mean to fill them.",
    ),
]
Representatives = Annotated[
    int | None,
    typer.Option(metavar="N", help="Number of datasets to choose that represent all; a third if not given."),
]
NBootstrap = Annotated[int, typer.Option(help="Number of bootstrap draws and of shuffles of the permutation test.")]
Seed = Annotated[int, typer.Option(help="Random seed of the bootstrap and of the permutation test.")]
Difficulty = Annotated[
    str, typer.Option(help="Test nodes whose scores count with --against attacks: easy, medium, hard or full.")
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="|".join((*TEXTS, *FIGURES)),
        help="Format of what is printed; png, svg and pdf are formats of the figures below --output.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR|FILE.csv",
        help="Directory for figures, CSV tables and JSON; with --against, a CSV file.",
    ),
]


@app.command()
def analyse(
    runs: Runs = None,
    against: Against = None,
    model: Model = None,
    where: Where = None,
    groups: Groups = None,
    merge_groups: MergeGroups = None,
    labels: Labels = None,
    missing: Missing = "drop-perturbations",
    representatives: Representatives = None,
    n_bootstrap: NBootstrap = 999,
    seed: Seed = 0,
    difficulty: Difficulty = "full",
    out: Output = None,
    form: Format = "table",
    as_json: Json = False,
) -> None:
    """Turn AUROCs under perturbations into profiles, groups, components and correlations, and say how stable they are.

    \b
    Examples:
      grb taxonomy analyse transductive
      grb taxonomy analyse inductive -o taxonomy/
      grb taxonomy analyse runs.csv --model gcn --groups 4 --merge-groups 3+4
      grb taxonomy analyse results --where epochs=300 --against published
      grb taxonomy analyse results --against models
      grb taxonomy analyse results --against attacks --format csv
      grb taxonomy analyse inductive --against left-out
    """
    from grb.cli.taxonomy_views import parse_where

    form, figures = _formats(form, as_json, against, out)
    check_counts(groups=groups, representatives=representatives)
    check_seed("seed", seed)
    if n_bootstrap < 2:
        raise DataError(f"--n-bootstrap is {n_bootstrap}, but at least 2 are needed")
    joins = tuple(_pair(text) for text in merge_groups or [])
    chosen = parse_where(where)
    if against == "attacks":
        _against_attacks(runs, model or MODEL, chosen, difficulty, form, out)
        return
    if against == "left-out":
        from grb.cli.taxonomy_reliability import show_reliability

        show_reliability(runs, model or "GCN", chosen, seed, form, out)
        return
    if against == "models":
        _against_models(runs, model or MODEL, chosen, form, out)
        return
    if against == "published":
        _against_published(runs, model or MODEL, chosen, form, out)
        return
    from grb import taxonomy

    source = _source(runs, model, chosen)
    if labels is not None:
        source = replace(source, known=taxonomy.read_groups(labels))
    own_cut = groups is not None or bool(joins)
    found = taxonomy.analyse(
        source.profiles,
        groups=groups if own_cut else source.cut,
        joins=joins if own_cut else source.joins,
        known=source.known,
        recommended=source.recommended,
        models=source.models,
        missing=missing,
        count=representatives,
        draws=n_bootstrap,
        seed=seed,
    )
    _show_analysis(found, source, form, figures, out)


def _formats(form: str, as_json: bool, against: str | None, out: Path | None) -> tuple[str, str]:
    """The formats of text and of figures; options that do not go together are refused before anything is read."""
    if against not in (None, *AGAINST):
        raise UnknownName("comparison", str(against), AGAINST, advice=f"Allowed: {', '.join(AGAINST)}.")
    if form not in (*TEXTS, *FIGURES):
        raise UnknownName("format", form, (*TEXTS, *FIGURES), advice=f"Allowed: {', '.join((*TEXTS, *FIGURES))}.")
    if form in FIGURES and (against or out is None):
        raise DataError(f"--format {form} is a format of figures, which need --output DIR and no --against")
    if out is not None and against is not None and out.suffix != ".csv":
        raise DataError(f"the table would be {out}, but a name that ends in .csv is needed")
    if out is not None:
        check_directory(out if against is None else out.parent, out)
    if as_json and form in ("markdown", "csv"):
        raise DataError(f"--json and --format {form} were both given; give one of them")
    figures = form if form in FIGURES else FIGURES[0]
    return "json" if as_json else TEXTS[0] if form in FIGURES else form, figures


def _pair(text: str) -> tuple[int, int]:
    """Two numbers from ``a+b``.

    >>> _pair("3+4")
    (3, 4)
    """
    match = re.fullmatch(r"\s*(\d+)\s*\+\s*(\d+)\s*", text)
    if match is None:
        raise DataError(f"--merge-groups is '{text[:40]}', but two numbers of groups are needed, for instance 3+4")
    return int(match[1]), int(match[2])


def _path(runs: str | None) -> Path:
    """The file or store of one's runs; the store below GRB_HOME if none is given."""
    if runs is not None:
        return Path(runs)
    from grb.cli.options import store_at

    path = store_at(None).path
    if not path.is_dir():
        raise DataError(
            f"there is no store at {path}; `grb taxonomy run` makes one, or give a store, a file of runs, or inductive or "
            "transductive for the published results"
        )
    return path


def _source(runs: str | None, model: str | None, where: Mapping[str, str]) -> Source:
    from grb import taxonomy
    from grb.cli.taxonomy_views import models_at
    from grb.taxonomy.read import pick

    if runs in PUBLISHED:
        if where:
            raise DataError(f"the published {runs} results have one setting; leave out --where")
        reference = taxonomy.published(runs)
        chosen = pick(reference.models, model or "GCN", f"the published {runs} taxonomy")
        # the paper's recipe is for GCN; other models are cut into as many groups without merging any
        own = chosen is reference.profiles
        return Source(
            f"published {runs} datasets",
            reference.models,
            chosen,
            cut=reference.cut if own else None,
            joins=reference.joins if own else (),
            known=reference.groups,
            recommended=reference.representatives,
            classical=taxonomy.property_components() if runs == "inductive" else None,
            taxonomy=runs,
        )
    path = _path(runs)
    models = models_at(path, where)
    if model is None and len(models) > 1:
        model = next(iter(models))
        output.echo(f"note: {path} has {len(models)} models ({', '.join(models)}); these are the profiles of {model}")
    return Source(str(path), models, pick(models, model, str(path)))


def _show_analysis(found: Analysis, source: Source, form: str, figures: str, out: Path | None) -> None:
    from grb.cli import taxonomy_report, taxonomy_views

    written = []
    if out is not None:
        written = taxonomy_report.write_tables(found, source.title, out)
        written += taxonomy_report.draw_figures(
            found, source.title, source.classical, out, figures, source.taxonomy, source.models
        )
    headers, rows = taxonomy_report.profile_table(found)
    value = {"source": source.title, **found.to_dict(), "written": [str(path) for path in written]}
    flat = [dict(zip(headers, row)) for row in rows]
    if not taxonomy_views.emit(form, None, value=value, rows=flat, markdown=taxonomy_views.markdown_of(headers, rows)):
        taxonomy_report.show(found, source.title)
    _say_notes(found.notes)
    if written:
        output.echo(f"wrote {len(written)} files to {out}: {', '.join(path.name for path in written)}")


def _say_notes(notes: Sequence[str]) -> None:
    for note in notes:
        output.echo(f"note: {note}")


def _against_published(runs: str | None, model: str, where: Mapping[str, str], form: str, out: Path | None) -> None:
    from grb import taxonomy
    from grb.cli import taxonomy_views
    from grb.taxonomy.read import pick

    path = _path(runs)
    profiles = pick(taxonomy_views.models_at(path, where), model, str(path))
    found = taxonomy.compare(profiles, model=model)
    groups = taxonomy.own_groups(profiles)
    value = {**found.to_dict(), "groups": [each.to_dict() for each in groups]}
    markdown = "\n\n".join([found.to_markdown(), *map(taxonomy_views.groups_markdown, groups)])
    if not taxonomy_views.emit(form, out, value=value, rows=found.rows(), markdown=markdown):
        taxonomy_views.show_comparison(found)
        for each in groups:
            taxonomy_views.show_groups(each)
    _say_notes(found.notes)


def _against_models(runs: str | None, model: str, where: Mapping[str, str], form: str, out: Path | None) -> None:
    from grb import taxonomy
    from grb.cli import taxonomy_views

    models = _source(runs, model, where).models
    found = taxonomy.compare_models(models, model)
    if not taxonomy_views.emit(form, out, value=found.to_dict(), rows=found.rows(), markdown=found.to_markdown()):
        output.echo(found.coverage)
        for title, heads, rows in found.tables():
            output.table(title, heads, rows, numbers=heads[1:])
    _say_notes(found.notes)


def _against_attacks(
    runs: str | None, model: str, where: Mapping[str, str], difficulty: str, form: str, out: Path | None
) -> None:
    from grb.catalogue import canonical
    from grb.cli import taxonomy_views
    from grb.dataset.registry import DIFFICULTIES
    from grb.pipeline import Store
    from grb.taxonomy.attack_sensitivity import attack_sensitivity

    if difficulty not in DIFFICULTIES:
        raise UnknownName("difficulty", difficulty, DIFFICULTIES, advice=f"Allowed: {', '.join(DIFFICULTIES)}.")
    canonical("profiler", model)
    path = _path(runs)
    if not path.is_dir():
        raise DataError(f"no store {path}; `grb taxonomy run DATASET --store {path}` makes one")
    store = Store(path)
    found = attack_sensitivity(
        taxonomy_views.rows_of(store),
        taxonomy_views.scores_of(store),
        model=model,
        difficulty=difficulty,
        where=where,
        source=path,
    )
    rows: Any = [each.to_dict() for each in found]
    cells = [taxonomy_views.sensitivity_cells(each) for each in found]
    heads = taxonomy_views.HEADS
    if not taxonomy_views.emit(form, out, value=rows, rows=rows, markdown=taxonomy_views.markdown_of(heads, cells)):
        output.table(f"what is lost, in points ({model}; {difficulty})", heads, cells, numbers=heads[1:3])
