"""``grb taxonomy``: which datasets behave alike under perturbations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.cli import output
from grb.cli.options import Json, check_counts, check_directory, check_seed, group
from grb.cli.taxonomy_compare import compare, models_at
from grb.cli.taxonomy_cross import cross
from grb.cli.taxonomy_placing import place
from grb.cli.taxonomy_run import run
from grb.errors import DataError, UnknownName

if TYPE_CHECKING:
    from grb.taxonomy import Analysis, Components, Profiles

PUBLISHED = ("inductive", "transductive")
FORMATS = ("png", "svg", "pdf")

app = group("Profile and group datasets by their sensitivity to perturbations.")
app.command()(run)
app.command()(place)
app.command()(cross)
app.command()(compare)


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
    classical: Components | None = field(default=None)


File = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE|STORE",
        help="A store; runs (dataset, perturbation, auroc, and model, seed) as CSV, JSON or JSON lines; or a wide CSV, one "
        "row per dataset and one column per perturbation, of mean AUROCs (with a column '-') or of log2 ratios.",
    ),
]
Published = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(PUBLISHED),
        help="Instead of a file: the results that the taxonomy paper published.",
        autocompletion=lambda: list(PUBLISHED),
    ),
]
Model = Annotated[str | None, typer.Option(help="Analyse this model's profiles, of several.")]
Kind = Annotated[
    str | None, typer.Option(metavar="runs|auroc|log2", help="What the file holds, instead of finding out.")
]
Groups = Annotated[int | None, typer.Option(metavar="K", help="Cut the tree into so many groups; 3 if not given.")]
Join = Annotated[
    list[str] | None,
    typer.Option(metavar="A+B", help="Join two sibling groups, numbered from the top; repeatable."),
]
Labels = Annotated[
    Path | None, typer.Option(metavar="FILE.csv", help="Groups to compare with: columns dataset and group.")
]
Missing = Annotated[
    str,
    typer.Option(
        metavar="RULE",
        help="Of missing cells: drop-perturbations (the paper's), drop-datasets, or mean to fill them.",
    ),
]
Representatives = Annotated[
    int | None, typer.Option(metavar="N", help="Choose so many datasets that stand for all; a third if not given.")
]
Saturated = Annotated[
    float, typer.Option(metavar="AUROC", help="Datasets above it do not represent others if others can.")
]
Draws = Annotated[int, typer.Option(help="Shuffles of the permutation test, draws of the bootstrap.")]
Seed = Annotated[int, typer.Option(metavar="K", help="Of the shuffles and draws.")]
Out = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="DIR", help="Write figures, CSV tables and JSON there.")
]
FigureFormat = Annotated[str, typer.Option("--format", metavar="|".join(FORMATS), help="Of figures.")]


@app.command()
def analyse(
    file: File = None,
    published: Published = None,
    model: Model = None,
    kind: Kind = None,
    groups: Groups = None,
    join: Join = None,
    labels: Labels = None,
    missing: Missing = "drop-perturbations",
    representatives: Representatives = None,
    saturated: Saturated = 0.96,
    draws: Draws = 999,
    seed: Seed = 0,
    out: Out = None,
    figure_format: FigureFormat = "png",
    as_json: Json = False,
) -> None:
    """Turn AUROCs under perturbations into profiles, groups, components, correlations, and say how stable they are.

    \b
    Examples:
      grb taxonomy analyse --published transductive
      grb taxonomy analyse --published inductive -o taxonomy/
      grb taxonomy analyse runs.csv --model gcn --groups 4 --join 3+4
    """
    check_counts(groups=groups, representatives=representatives)
    check_seed("seed", seed)
    if draws < 2:
        raise DataError(f"--draws is {draws}, but at least 2 are needed")
    if not 0 < saturated <= 1:
        raise DataError(f"--saturated is {saturated:g}, but an AUROC above 0 and at most 1 is needed")
    if figure_format not in FORMATS:
        raise UnknownName("format", figure_format, FORMATS, advice=f"Allowed: {', '.join(FORMATS)}.")
    if out is not None:
        check_directory(out, out)
    joins = tuple(_pair(text) for text in join or [])
    from grb import taxonomy

    source = _source(file, published, model, kind)
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
        saturated=saturated,
        draws=draws,
        seed=seed,
    )
    written = [] if out is None else _write(found, source, out, figure_format)
    if as_json:
        result = {"source": source.title, **taxonomy.as_dict(found), "written": [str(path) for path in written]}
        output.print_json(result)
    else:
        from grb.cli import taxonomy_report

        taxonomy_report.show(found, source.title)
    for note in found.notes:
        output.say(f"note: {note}")
    if written:
        output.say(f"wrote {len(written)} files to {out}: {', '.join(path.name for path in written)}")


def _pair(text: str) -> tuple[int, int]:
    """Two numbers from ``a+b``.

    >>> _pair("3+4")
    (3, 4)
    """
    match = re.fullmatch(r"\s*(\d+)\s*\+\s*(\d+)\s*", text)
    if match is None:
        raise DataError(f"--join is '{text[:40]}', but two numbers of groups are needed, for instance 3+4")
    return int(match[1]), int(match[2])


def _source(file: Path | None, published: str | None, model: str | None, kind: Any) -> Source:
    from grb import taxonomy
    from grb.taxonomy.read import pick

    if (file is None) == (published is None):
        problem = "no file was given" if file is None else "a file and --published were both given"
        raise DataError(
            f"{problem}; give the file of your results, or --published inductive or --published transductive"
        )
    if published is not None:
        reference = taxonomy.published(published)
        chosen = pick(reference.models, model or "GCN", f"the published {published} taxonomy")
        # the paper's recipe is for GCN; other models are cut into as many groups without joining any
        own = chosen is reference.profiles
        return Source(
            f"published {published} datasets",
            reference.models,
            chosen,
            cut=reference.cut if own else None,
            joins=reference.joins if own else (),
            known=reference.groups,
            recommended=reference.representatives,
            classical=taxonomy.property_components() if published == "inductive" else None,
        )
    assert file is not None
    models = models_at(file, kind)
    if model is None and len(models) > 1:
        model = next(iter(models))
        output.say(f"note: {file} has {len(models)} models ({', '.join(models)}); these are the profiles of {model}")
    return Source(str(file), models, pick(models, model, str(file)))


def _write(found: Analysis, source: Source, directory: Path, kind: str) -> list[Path]:
    from grb.cli import taxonomy_report

    tables = taxonomy_report.write_tables(found, source.title, directory)
    return [*tables, *taxonomy_report.draw_figures(found, source.title, source.classical, directory, kind)]
