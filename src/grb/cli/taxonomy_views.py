"""Runs that ``grb taxonomy`` reads, and what ``--against published`` and ``--against attacks`` show of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from grb.cli import output
from grb.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from grb.metric.summary import MeanStd
    from grb.pipeline import Store
    from grb.taxonomy import Comparison, OwnGroups, Profiles
    from grb.taxonomy.attack_sensitivity import AttackSensitivity, StrongestAttack


def parse_where(given: list[str] | None) -> dict[str, str]:
    """Column and value of every ``--where``.

    >>> parse_where(["epochs=300"])
    {'epochs': '300'}
    """
    pairs = [text.partition("=") for text in given or []]
    wrong = [text for text, (name, _, value) in zip(given or [], pairs) if not (name.strip() and value.strip())]
    if wrong:
        raise DataError(f"--where is '{wrong[0][:40]}', but a setting and its value are needed, such as epochs=300")
    return {name.strip(): value.strip() for name, _, value in pairs}


def rows_of(store: Store) -> list[dict[str, Any]]:
    """All profiling runs of a store, one flat row each."""
    from grb.taxonomy.measurement import ProfileMeasurement

    found = [record for record in store.records() if record.job.kind == "profile"]
    old = [record.key for record in found if record.measurement is None]
    if old:
        raise DataError(
            f"{len(old)} profiling runs of {store.path} ({old[0][:12]}, ...) were made by an earlier version, whose records do "
            "not say their settings; run `grb taxonomy run` again with a new store"
        )
    return [ProfileMeasurement.from_dict(record.measurement).to_row() for record in found]


def models_at(source: Path, where: Mapping[str, str], dataset: str | None = None) -> dict[str, Profiles]:
    """Profiles by model, from a file or from a store; of one dataset if one is named."""
    from grb.taxonomy.read import from_rows, read_models

    if not source.is_dir():
        return read_models(source, where=where, dataset=dataset)
    from grb.pipeline import Store

    return from_rows(rows_of(Store(source)), source, where=where, dataset=dataset)


def write(text: str, target: Path) -> None:
    """Write a table to a file, and say so."""
    from grb.atomic import write_atomic

    write_atomic(target, text.encode())
    output.echo(f"wrote {target}")


def csv_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV with all their columns."""
    from grb.leaderboard.export import to_csv

    columns = list(dict.fromkeys(name for row in rows for name in row))
    return to_csv([{name: row.get(name, "") for name in columns} for row in rows])


def markdown_of(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def emit(form: str, target: Path | None, *, value: Any, rows: Sequence[Mapping[str, Any]], markdown: str) -> bool:
    """Print JSON, CSV or Markdown, and write the CSV file that ``--output`` names; False if a table is to be shown."""
    if target is not None:
        write(csv_of(rows), target)
    if form == "json":
        output.print_json(value)
    elif form in ("csv", "markdown"):
        typer.echo(csv_of(rows).rstrip("\n") if form == "csv" else markdown)
    return form != "table"


def show_comparison(found: Comparison) -> None:
    """Tables of own and published ratios, nearest neighbours, and the correlation."""
    from grb.taxonomy.compare import number

    heads = ["perturbation", "runs", "ours %", "from", "to", "published %", "apart"]
    for own in found.datasets:
        title = f"{own.dataset}: AUROC {own.original:.3f} ({own.runs} runs), published {number(own.published, 3)}"
        rows = [
            [
                cell.perturbation,
                cell.runs,
                *(number(100 * share) for share in (cell.left, cell.low, cell.high, cell.published)),
                number(100 * (cell.left - cell.published), sign="+"),
            ]
            for cell in own.cells
        ]
        output.table(title, heads, rows, numbers=heads[1:])
    placed = [own.placed for own in found.datasets if own.placement is not None]
    if placed:
        output.table("placed without its own row", ["dataset", "nearest", "placed", "published group"], placed)
        output.echo("{} of {} are placed in their published group".format(*found.placed()))
    output.echo(found.summary)


GROUP_HEADS = ["published group", "run", "members together %", "others apart %", "stable"]


def groups_markdown(found: OwnGroups) -> str:
    """The published groups in own runs as a Markdown table, with sentences."""
    return "\n\n".join([markdown_of(GROUP_HEADS, _group_rows(found)), *group_sentences(found)])


def show_groups(found: OwnGroups) -> None:
    """Print which published groups hold in own runs."""
    output.table(f"{found.taxonomy} groups in these runs", GROUP_HEADS, _group_rows(found), numbers=GROUP_HEADS[2:4])
    for sentence in group_sentences(found):
        output.echo(sentence)


def group_sentences(found: OwnGroups) -> list[str]:
    """What the grouping of own runs comes to, in sentences."""
    low, high = found.interval
    within = "one run of each kind, so without an interval" if found.single else f"{low:.2f} to {high:.2f}"
    many = f"{len(found.datasets)} {found.taxonomy} datasets, {len(found.perturbations)} perturbations"
    told = [
        f"{many}: agreement of the groups with the published ones {found.agreement:.2f} ({within}); of the published means, "
        f"cut in the same way, {found.published:.2f}."
    ]
    chosen = [f"{name} ({100 * share:.0f} %)" for name, share in found.representatives.items() if share > 0]
    if not found.single:
        told.append(f"Chosen to represent the others, in per cent of the draws: {', '.join(chosen)}.")
    return told


def _group_rows(found: OwnGroups) -> list[list[str]]:
    def percent(value: float | None) -> str:
        return "-" if value is None else f"{100 * value:.0f}"

    return [
        [row.group, ", ".join(row.members), percent(row.together), percent(row.apart), _verdict(row.stable)]
        for row in found.stability
    ]


def _verdict(stable: bool | None) -> str:
    return "-" if stable is None else "yes" if stable else "no"


HEADS = ["dataset", "AUROC lost: features", "structure", "attack on features", "on edges", "by injection"]


def sensitivity_cells(row: AttackSensitivity) -> list[str]:
    """One row of the table of sensitivities, under :data:`HEADS`."""
    from grb.taxonomy.attack_sensitivity import CHANGES

    profiles = [_points(row.sensitivity.get(kind)) for kind in ("features", "structure")]
    return [row.dataset, *profiles, *(_attack(row.attacks.get(change)) for change in CHANGES)]


def _points(value: MeanStd | None) -> str:
    return "-" if value is None else f"{100 * value.mean:.1f} {output.plus_minus()} {100 * value.std:.1f}"


def _attack(found: StrongestAttack | None) -> str:
    return "-" if found is None else f"{_points(found.lost)} ({found.attack})"


def scores_of(store: Store) -> Iterator[dict[str, Any]]:
    """Score measurements of a store, as JSON values."""
    return (record.measurement for record in store.records() if record.job.kind == "score" and record.measurement)
