"""``grb store``: look into a store, verify it, and copy it to another machine."""

from __future__ import annotations

import csv
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.cli import output
from grb.cli.options import Json, TrustCode, group, store_at
from grb.cli.store_verify import Where, existing_store, opened_store, sign, verify
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.pipeline import Record, Store

app = group("List, verify, sign and copy records and artefacts.")
TABLES = (".csv", ".json", ".jsonl")
app.command("verify")(verify)
app.command("sign")(sign)


@app.command("ls")
def ls(
    store: Where = None,
    kind: Annotated[
        str | None, typer.Option(help="Kind of the jobs to list: fit, attack, score, profile or study.")
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="List the jobs that failed last instead of those that are done.")
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
        output.print_json([_values(record) for record in records])
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


@app.command("copy")
def copy(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="A store, or a bundle (.zip).")],
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="A store, a bundle (.zip), or a table (.csv, .json, .jsonl).")
    ],
    recipe: Annotated[str | None, typer.Option(help="Copy only what the studies of this name need.")] = None,
    trust_code: TrustCode = False,
    as_json: Json = False,
) -> None:
    """Copy records to another store, into a bundle for another machine, or into a table; every byte is checked before.

    A bundle has records, weights and edits. A table has the scores of a recipe, or the runs of the taxonomy.

    \b
    Examples:
      grb store copy results bundle.zip
      grb store copy bundle.zip elsewhere
      grb store copy results scores.csv --recipe grb-cora
      grb store copy results runs.jsonl
    """
    from grb.pipeline.bundle import merge, pack, study_keys

    with opened_store(source) as place:
        keys = None if recipe is None else study_keys(place, recipe)
        if target.suffix == ".zip":
            count = pack(place, target, keys)
        elif target.suffix in TABLES:
            count = _write_runs(place, target) if recipe is None else _write_scores(place, recipe, target)
        elif target.suffix and not target.is_dir():
            raise DataError(f"the target is {target}, but a store, .zip, .csv, .json or .jsonl is needed")
        else:
            count = merge(place, store_at(target), keys, trust_code=trust_code, on_note=output.echo)
    if as_json:
        size = target.stat().st_size if target.is_file() else None
        output.print_json({"target": str(target), "records": count, "bytes": size})
    else:
        size_text = f", {target.stat().st_size / 2**20:.2f} MB" if target.is_file() else ""
        output.echo(f"{count} records copied to {target}{size_text}")


def _values(record: Record) -> dict[str, Any]:
    return {name: value for name, value in record.to_dict().items() if name not in ("format", "objects")}


def _result(record: Record) -> str:
    """The result of a record in one line."""
    result, found = record.result, record.measurement
    if found is not None and "outcomes" in found:
        metric = found["metric"]
        return "  ".join(f"{name} {100 * each['values'][metric]:.2f}" for name, each in found["outcomes"].items())
    if record.job.kind == "attack":
        return ", ".join(f"{name} {value:g}" for name, value in result["budget"].items())
    if found is not None and "auroc" in found:
        return f"AUROC {100 * found['auroc']:.2f}, {found['epochs']} epochs"
    score, epochs = result.get("val_score"), result.get("epochs")
    parts = [f"{epochs} epochs" if epochs is not None else str(result.get("title", ""))]
    return ", ".join([*filter(None, parts), *([f"val {100 * score:.2f}"] if score is not None else [])])


def _write_scores(store: Store, recipe: str, to: Path) -> int:
    """All scores of a recipe, one row each."""
    from grb.pipeline.results import score_rows

    return _write_rows(score_rows(store, recipe), to)


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
    else:
        content = "".join(json.dumps(row, sort_keys=True, allow_nan=False) + "\n" for row in table)
    write_atomic(to, content.encode())
    return len(table)
