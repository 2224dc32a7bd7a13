"""``grb store``: look into a store, clean it, prove it, and carry it to another machine."""

from __future__ import annotations

import csv
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.cli import output
from grb.cli.options import Json, StoreOption, group, store_at
from grb.cli.store_verify import Where, existing_store, sign, verify
from grb.errors import DataError, IntegrityError

if TYPE_CHECKING:
    from grb.pipeline import Record, Store

app = group("List, clean, verify, sign, export and import records and artefacts.")
app.command("verify")(verify)
app.command("sign")(sign)


@app.command("ls")
def ls(
    store: Where = None,
    kind: Annotated[str | None, typer.Option(help="fit, attack, score or profile only.")] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Jobs that failed last instead of those that are done.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what a store holds.

    \b
    Examples:
      grb store ls
      grb store ls results --kind fit
      grb store ls results --failed
    """
    place = existing_store(store)
    if failed:
        failures = place.failures()
        if as_json:
            output.print_json(failures)
        else:
            rows = [[each["key"][:12], each["kind"], each["error"]] for each in failures]
            output.table(f"{len(rows)} failed jobs in {place.path}", ["key", "kind", "error"], rows)
        return
    from grb.pipeline.job import KINDS

    if kind is not None and kind not in KINDS:
        raise DataError(f"--kind is '{kind}', but {', '.join(KINDS)} are the kinds of jobs")
    records = (record for record in place.records() if kind in (None, record.job.kind))
    if as_json:
        output.print_json([_facts(record) for record in records])
        return
    if kind is None:
        counts: Counter[tuple[str, str]] = Counter()
        seconds: dict[tuple[str, str], float] = defaultdict(float)
        for record in records:  # one at a time: a store may have more of them than fit into memory
            name = record.job.data.dataset, record.job.kind
            counts[name] += 1
            spent = record.provenance.get("cpu_seconds", 0.0)
            seconds[name] += spent if isinstance(spent, int | float) else 0.0
        rows = [[*name, count, f"{seconds[name]:.0f}"] for name, count in sorted(counts.items())]
        output.table(f"{counts.total()} records in {place.path}", ["dataset", "kind", "records", "CPU s"], rows)
        return
    shown = [[record.key[:12], record.job.label, _result(record)] for record in records]
    output.table(f"{len(shown)} records in {place.path}", ["key", "job", "result"], shown)


@app.command("gc")
def gc(
    store: Where = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    as_json: Json = False,
) -> None:
    """Remove what no record names: artefacts of lost jobs, parts of killed writers, stale claims.

    \b
    Example:
      grb store gc results --dry-run
    """
    place = existing_store(store)
    paths = place.garbage()
    size = sum(path.stat().st_size for path in paths)
    if not dry_run:
        for path in paths:
            path.unlink(missing_ok=True)
    if as_json:
        output.print_json({"files": len(paths), "bytes": size, "removed": not dry_run})
        return
    output.say(
        f"{len(paths)} files, {size / 2**20:.1f} MB {'would be' if dry_run else 'were'} removed from {place.path}"
    )


@app.command("export")
def export(
    store: Where = None,
    to: Annotated[Path, typer.Option("-o", "--output", help="bundle.zip, or a table: .csv, .json(l)")] = Path(
        "bundle.zip"
    ),
    recipe: Annotated[str | None, typer.Option(help="Export only what the studies of this name need.")] = None,
    as_json: Json = False,
) -> None:
    """Write a bundle (records, weights, edits) for another machine, or a table: scores of a recipe, runs of the taxonomy.

    \b
    Examples:
      grb store export results -o bundle.zip
      grb store export results --recipe grb-cora -o scores.csv
      grb store export results -o runs.jsonl
    """
    place = existing_store(store)
    if to.suffix == ".zip":
        from grb.pipeline.bundle import pack, study_keys

        count = pack(place, to, None if recipe is None else study_keys(place, recipe))
    else:
        count = _write_runs(place, to) if recipe is None else _write_scores(place, recipe, to)
    if as_json:
        output.print_json({"file": str(to), "records": count, "bytes": to.stat().st_size})
    else:
        output.say(f"{count} records to {to}, {to.stat().st_size / 2**20:.2f} MB")


@app.command("import")
def take_in(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE.zip", help="Written by `grb store export`.")],
    store: StoreOption = None,
    as_json: Json = False,
) -> None:
    """Take the records of a bundle into a store, after checking every byte of it.

    \b
    Example:
      grb store import bundle.zip --store results
    """
    from grb.pipeline.bundle import merge, opened

    place = store_at(store)
    with opened(bundle) as source:
        problems = source.verify()
        if problems:
            raise IntegrityError(f"{bundle} is not taken in: {problems[0].message} ({len(problems)} problems)")
        added = merge(source, place, on_note=output.say)
    if as_json:
        output.print_json({"added": added, "store": str(place.path)})
    else:
        output.say(f"{added} new records in {place.path}")


def _facts(record: Record) -> dict[str, Any]:
    return {
        "key": record.key,
        **{name: value for name, value in record.to_dict().items() if name not in ("format", "objects")},
    }


def _result(record: Record) -> str:
    from grb.evaluator.measurement import Measurement

    result = record.result
    if record.job.kind == "study":
        return str(result.get("title", ""))[:80]
    if record.job.kind == "fit":
        score = result.get("val_score")
        return f"{result.get('epochs', 0)} epochs" + (f", val {100 * score:.2f}" if score is not None else "")
    if record.job.kind == "profile":
        from grb.taxonomy.measurement import ProfileMeasurement

        run = ProfileMeasurement.from_dict(record.measurement)
        return f"AUROC {100 * run.auroc:.2f}, {run.epochs} epochs"
    if record.job.kind == "attack":
        return ", ".join(f"{name} {value:g}" for name, value in result["budget"].items())
    found = Measurement.from_dict(record.measurement)
    return "  ".join(f"{name} {100 * each.values[found.metric]:.2f}" for name, each in found.outcomes.items())


def _write_scores(store: Store, recipe: str, to: Path) -> int:
    """All scores of a recipe, one row each."""
    from grb.leaderboard.export import run_rows
    from grb.pipeline.results import boards

    return _write_rows([row for board in boards(store, [recipe]) for row in run_rows(board)], to)


def _write_runs(store: Store, to: Path) -> int:
    """All runs of the taxonomy, as `grb taxonomy analyse` reads them."""
    from grb.taxonomy.measurement import ProfileMeasurement

    runs = [record for record in store.records() if record.job.kind == "profile"]
    if not runs:
        raise DataError(
            f"a table needs --recipe, which says what belongs together, or runs of the taxonomy, of which {store.path} has none"
        )
    table = [
        ProfileMeasurement.from_dict(run.measurement).to_row()
        | {"key": run.key[:16], "cpu_seconds": run.provenance["cpu_seconds"]}
        for run in runs
    ]
    table.sort(key=lambda row: tuple(str(row[name]) for name in ("dataset", "model", "perturbation", "seed")))
    return _write_rows(table, to)


def _write_rows(table: list[dict[str, Any]], to: Path) -> int:
    """Rows as the file's ending says; how many."""
    from grb.atomic import write_atomic

    if to.suffix == ".csv":
        import io

        text = io.StringIO()
        columns = list(dict.fromkeys(name for row in table for name in row))
        writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
        content = text.getvalue()
    elif to.suffix == ".json":
        content = json.dumps(table, indent=1, allow_nan=False) + "\n"
    elif to.suffix == ".jsonl":
        content = "".join(json.dumps(row, sort_keys=True, allow_nan=False) + "\n" for row in table)
    else:
        raise DataError(f"-o is {to}, but .zip, .csv, .json or .jsonl is needed")
    write_atomic(to, lambda stream: _put(stream, content.encode()))
    return len(table)


def _put(stream: Any, data: bytes) -> None:
    stream.write(data)
