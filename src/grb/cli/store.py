"""``grb store``: look into a store, verify it, and copy it to another machine."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.cli import output
from grb.cli.options import Json, group, store_at, use_machine
from grb.errors import DataError, IntegrityError

if TYPE_CHECKING:
    from grb.pipeline import Record, Store

app = group("List, verify and copy records and artefacts.")
TABLES = (".csv", ".json", ".jsonl")
Where = Annotated[Path | None, typer.Argument(metavar="[STORE]", help="The store; the one below GRB_HOME by default.")]


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
    place = _existing(store)
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
    records = [record for record in place.records() if kind in (None, record.job.kind)]
    if as_json:
        output.print_json([_values(record) for record in records])
        return
    if kind is None:
        counts = Counter((record.job.data.dataset, record.job.kind) for record in records)
        seconds: Counter[tuple[str, str]] = Counter()
        for record in records:
            seconds[record.job.data.dataset, record.job.kind] += record.provenance["cpu_seconds"]
        rows = [[*name, count, f"{seconds[name]:.0f}"] for name, count in sorted(counts.items())]
        output.table(f"{len(records)} records in {place.path}", ["dataset", "kind", "records", "CPU s"], rows)
        return
    shown = [[record.key[:12], record.job.label, _result(record)] for record in records]
    output.table(f"{len(shown)} records in {place.path}", ["key", "job", "result"], shown)


@app.command("verify")
def verify(
    store: Where = None,
    rerun: Annotated[
        int, typer.Option(min=0, help="Number of random scores to compute again, with all that they were made of.")
    ] = 0,
    key: Annotated[
        str | None, typer.Option(help="Key of one record to compute again; its first digits suffice.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the choice of scores.")] = 0,
    clean: Annotated[
        bool,
        typer.Option(
            "--clean", help="Remove unused files: artefacts of lost jobs, parts of killed writers, stale claims."
        ),
    ] = False,
    trust_code: Annotated[
        bool,
        typer.Option("--trust-code", help="Import what records name as package.module:Class; for your own stores."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check every byte of a store or of a bundle, compute some of it again, and find files that no record names.

    \b
    Examples:
      grb store verify
      grb store verify results --rerun 3
      grb store verify results --clean
      grb store verify bundle.zip
    """
    from grb.pipeline.rerun import choose
    from grb.pipeline.rerun import rerun as compute_again

    use_machine(1)
    with _opened(store) as place:
        problems = place.verify()
        keys = [_whole(place, key)] if key is not None else []
        if key is None and rerun > 0 and not problems:
            keys = choose(place, rerun, seed=seed)
        compared = compute_again(
            place,
            keys,
            trust_code=trust_code,
            on_job=lambda each: output.say(f"{each.label}: {each.difference or 'equal'}"),
        )
        count = sum(1 for _ in place.keys())  # noqa: SIM118 - a store is no mapping
        unused = _unused(place, remove=clean) if not problems else {"files": 0, "bytes": 0, "removed": False}
    different = [each for each in compared if not each.equal]
    if as_json:
        output.print_json(
            {
                "records": count,
                "problems": [vars(problem) for problem in problems],
                "recomputed": [{"key": each.key, "job": each.label, "equal": each.equal} for each in compared],
                "unused": unused,
            }
        )
    else:
        for problem in problems[:20]:
            output.say(f"{problem.key[:12]}: {problem.message}")
        again = f", {len(compared) - len(different)}/{len(compared)} equal again" if compared else ""
        output.say(f"{count} records, {len(problems)} problems{again}")
        if unused["files"]:
            advice = "were removed" if unused["removed"] else "are unused; --clean removes them"
            output.say(f"{unused['files']} files, {unused['bytes'] / 2**20:.1f} MB {advice}")
    if problems or different:
        raise IntegrityError(f"{len(problems)} records are not what they say, {len(different)} gave other results")


def _unused(store: Store, *, remove: bool) -> dict[str, Any]:
    """Files that no record names, removed if asked for."""
    paths = store.garbage()
    size = sum(path.stat().st_size for path in paths)
    for path in paths if remove else []:
        path.unlink(missing_ok=True)
    return {"files": len(paths), "bytes": size, "removed": remove and bool(paths)}


@app.command("copy")
def copy(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="A store, or a bundle (.zip).")],
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="A store, a bundle (.zip), or a table (.csv, .json, .jsonl).")
    ],
    recipe: Annotated[str | None, typer.Option(help="Copy only what the studies of this name need.")] = None,
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

    with _opened(source) as place:
        keys = None if recipe is None else study_keys(place, recipe)
        if target.suffix == ".zip":
            count = pack(place, target, keys)
        elif target.suffix in TABLES:
            count = _write_runs(place, target) if recipe is None else _write_scores(place, recipe, target)
        elif target.suffix and not target.is_dir():
            raise DataError(f"the target is {target}, but a store, .zip, .csv, .json or .jsonl is needed")
        else:
            if problems := place.verify():
                raise IntegrityError(f"{source} is not copied: {problems[0].message} ({len(problems)} problems)")
            count = merge(place, store_at(target), keys)
    if as_json:
        size = target.stat().st_size if target.is_file() else None
        output.print_json({"target": str(target), "records": count, "bytes": size})
    else:
        size_text = f", {target.stat().st_size / 2**20:.2f} MB" if target.is_file() else ""
        output.say(f"{count} records copied to {target}{size_text}")


@contextmanager
def _opened(path: Path | None) -> Iterator[Store]:
    """A store, or a bundle unpacked beside."""
    if path is not None and path.suffix == ".zip":
        from grb.pipeline.bundle import opened

        with opened(path) as store:
            yield store
    else:
        yield _existing(path)


def _existing(path: Path | None) -> Store:
    """A store to look into; a path without one is refused."""
    if path is not None and not path.is_dir():
        raise DataError(f"no store {path}; `grb run RECIPE --store {path}` makes one")
    return store_at(path)


def _whole(store: Store, start: str) -> str:
    found = [key for key in store.keys() if key.startswith(start.lower())]  # noqa: SIM118 - a store is no mapping
    if len(found) != 1:
        raise DataError(f"{len(found)} records of {store.path} begin with '{start[:64]}', but exactly one is needed")
    return found[0]


def _values(record: Record) -> dict[str, Any]:
    return {name: value for name, value in record.to_dict().items() if name not in ("format", "objects")}


def _result(record: Record) -> str:
    """The result of a record in a few words."""
    result, found = record.result, record.measurement
    if found is not None and "outcomes" in found:
        metric = found["metric"]
        return "  ".join(f"{name} {100 * each['values'][metric]:.2f}" for name, each in found["outcomes"].items())
    if record.job.kind == "attack":
        return ", ".join(f"{name} {value:g}" for name, value in result["budget"].items())
    if found is not None and "auroc" in found:
        return f"AUROC {100 * found['auroc']:.2f}, {found['epochs']} epochs"
    score, epochs = result.get("val_score"), result.get("epochs")
    words = [f"{epochs} epochs" if epochs is not None else str(result.get("title", ""))]
    return ", ".join([*filter(None, words), *([f"val {100 * score:.2f}"] if score is not None else [])])


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
