"""Profiles from files: runs in a tidy table, or a wide table of mean AUROCs or of log2 ratios."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from grb.atomic import size_of
from grb.errors import DataError, UnknownName
from grb.taxonomy import gtaxogym
from grb.taxonomy.measurement import SAME_IN_A_CELL, SAME_IN_A_PROFILE, TRAINING, link_title
from grb.taxonomy.profile import ORIGINAL, Profiles, from_auroc, from_runs

Kind = Literal["runs", "auroc", "log2"]
MAX_BYTES = 256 * 2**20
UNPERTURBED = ("", ORIGINAL, "original", "none", "unperturbed", "clean", "nopert")
"""Words for the unperturbed dataset, in any case."""
MISSING_WORDS = ("", "nan", "na", "n/a", "none", "null", "oom")
SEED_COLUMNS = ("seed", "fold", "run", "repeat")

Row = dict[str, Any]


def read_profiles(
    path: str | os.PathLike[str],
    *,
    model: str | None = None,
    kind: Kind | None = None,
    where: Mapping[str, str] | None = None,
) -> Profiles:
    """Read the profiles of one model from a file.

    Args:
        path: See :func:`read_models`.
        model: Name of the model; the only one if not given.
        kind: What the file holds; found out if not given.
        where: See :func:`read_models`.
    """
    return pick(read_models(path, kind=kind, where=where), model, str(path))


def pick(found: Mapping[str, Profiles], model: str | None, source: str) -> Profiles:
    """The profiles of one model among several."""
    if model is None:
        if len(found) > 1:
            raise DataError(f"{source} has results of {len(found)} models; choose one of: {', '.join(found)}")
        return next(iter(found.values()))
    own = next((name for name in found if name.lower() == model.lower()), None)
    if own is None:
        raise UnknownName("model", model, found, advice=f"{source} has: {', '.join(found) or 'none'}.")
    return found[own]


def read_models(
    path: str | os.PathLike[str],
    *,
    kind: Kind | None = None,
    where: Mapping[str, str] | None = None,
    dataset: str | None = None,
) -> dict[str, Profiles]:
    """Read the profiles of every model in a file, by name; ``""`` is the name where the file has none.

    Three kinds of content:

    - ``runs``: one row per run with the columns ``dataset``, ``perturbation``, ``auroc`` and, if known, ``model`` and
      ``seed`` (or ``fold``). CSV, JSON (a list of objects, or an object with such a list) or JSON lines. The
      unperturbed dataset is the perturbation ``-`` (or ``original``, ``none``, or nothing).
    - ``auroc``: a wide CSV of means: ``dataset``, ``-`` for the unperturbed dataset, and one column per perturbation.
    - ``log2``: a wide CSV of log2 ratios: ``dataset`` and one column per perturbation.

    The aggregated JSON results of GTaxoGym, the paper's code, are read too: means of the test split, under the paper's names.
    Perturbations may have the names of that code (``NodeDegree``, ``pert_WaveletBankFiltering-lo``) in any of these.

    An empty cell, ``NaN``, ``NA`` or ``OOM`` is a missing result.

    Args:
        path: The file.
        kind: What the file holds; found out if not given.
        where: Use only runs with these values, such as ``{"epochs": "300"}``; see :func:`from_rows`.
        dataset: Use only runs of this dataset; tables of means are read whole.
    """
    path = Path(path)
    if kind is not None and kind not in get_args(Kind):
        raise UnknownName("kind of table", kind, get_args(Kind), advice=f"Allowed: {', '.join(get_args(Kind))}.")
    text = _text(path)
    if path.suffix.lower() in (".json", ".jsonl", ".ndjson") or text.lstrip()[:1] in ("{", "["):
        if kind not in (None, "runs"):
            raise DataError(f"{path} is JSON, which holds runs; a table of kind '{kind}' must be CSV")
        found = _json_rows(path, text)
        if gtaxogym.is_gtaxogym(found):
            if where:
                raise DataError(
                    f"{path} holds GTaxoGym's means, which have no settings to choose from; leave out --where"
                )
            own = gtaxogym.to_profiles(found, path)
            return {own.model or "": own}
        return from_rows(found, path, where=where, dataset=dataset)
    header, rows = _csv_rows(path, text)
    lower = [name.lower() for name in header]
    if kind == "runs" or (kind is None and {"perturbation", "auroc"} <= set(lower)):
        return from_rows([dict(zip(lower, row)) for row in rows], path, where=where, dataset=dataset)
    if where:
        raise DataError(f"{path} is a table of means, whose rows have no settings to choose from; leave out --where")
    return {"": _wide(path, header, rows, kind)}


def from_rows(
    rows: Sequence[Row],
    source: str | os.PathLike[str],
    *,
    where: Mapping[str, str] | None = None,
    dataset: str | None = None,
) -> dict[str, Profiles]:
    """Profiles of every model among runs.

    Runs of one dataset and model must agree in their training settings (columns ``training.*``), in the fingerprint of the
    dataset and in the version of the model, and those of one cell in the version of the perturbation: a mean over runs of
    different settings is the mean of nothing. Others are refused, unless ``where`` chooses among them.

    Args:
        rows: One mapping per run, with ``dataset``, ``perturbation`` and ``auroc``; :meth:`ProfileMeasurement.to_row` makes
            them.
        source: Where the runs come from, for messages.
        where: Use only runs with these values of columns, or one of several with commas between them; ``epochs`` means
            ``training.epochs`` where there is such a column.
        dataset: Use only runs of this dataset, so that those of others need no choice.
    """
    if dataset is not None:
        known = {row.get("dataset") for row in rows}
        rows = [row for row in rows if row.get("dataset") == dataset]
        if not rows and link_title(dataset) in known:
            raise DataError(
                f"{source} has runs of {link_title(dataset)} only; the published results are of labels, and tasks are not mixed"
            )
        if not rows:
            raise DataError(f"{source} has no run of {dataset}; `grb taxonomy run` makes them")
    if not rows:
        raise DataError(f"{source} has no run of a perturbed dataset; every run needs dataset, perturbation and auroc")
    return _by_model(choose_runs(rows, source, where=where), Path(source))


def choose_runs(rows: Sequence[Row], source: object, *, where: Mapping[str, str] | None = None) -> list[Row]:
    """Choose runs by the values of their columns, and refuse them if they still mix settings; see :func:`from_rows`."""
    columns = dict.fromkeys(name for row in rows for name in row)
    chosen = list(rows)
    for name, wanted in (where or {}).items():
        column = _column(name, columns)
        there = list(dict.fromkeys(_sanitized(row.get(column)) for row in chosen))
        values = wanted.split(",")
        chosen = [row for row in chosen if any(_equal(_sanitized(row.get(column)), value) for value in values)]
        if not chosen:
            raise DataError(f"no run of {source} has {name}={wanted}; there are {', '.join(there[:8])}")
    _check_settings(chosen, source)
    return chosen


def _column(name: str, columns: Iterable[str]) -> str:
    known = list(columns)
    found = next((each for each in (f"{TRAINING}{name}", name) if each in known), None)
    if found is None:
        allowed = [each.removeprefix(TRAINING) for each in known]
        raise UnknownName("setting", name, allowed, advice=f"The runs have: {', '.join(allowed)}.")
    return found


def _sanitized(value: Any) -> str:
    """A value of a setting as tables and the command line write it; none stands for nothing.

    >>> _sanitized(None), _sanitized(0.001), _sanitized(300)
    ('none', '0.001', '300')
    """
    return "none" if value is None or value == "" else str(value)


def _equal(value: str, wanted: str) -> bool:
    try:
        return float(value) == float(wanted)
    except ValueError:
        return value.lower() == wanted.strip().lower()


def _check_settings(rows: Sequence[Row], source: object) -> None:
    """Refuse runs of one profile or of one cell that were made under different settings."""
    names = dict.fromkeys(name for row in rows for name in row)
    shared = [name for name in names if name.startswith(TRAINING) or name in SAME_IN_A_PROFILE]
    levels = ((("dataset", "model"), shared), (("dataset", "model", "perturbation"), list(SAME_IN_A_CELL)))
    for key, columns in levels:
        groups: dict[tuple[Any, ...], dict[tuple[str, ...], int]] = {}
        for row in rows:
            found = groups.setdefault(tuple(row.get(name) for name in key), {})
            settings = tuple(_sanitized(row.get(name)) for name in columns)
            found[settings] = found.get(settings, 0) + 1
        for (dataset, model, *cell), found in groups.items():
            if len(found) > 1:
                _refuse_settings(
                    f"{dataset}{''.join(f' under {name}' for name in cell)}", model, columns, found, source
                )


def _refuse_settings(
    cell: str, model: Any, columns: Sequence[str], found: Mapping[tuple[str, ...], int], source: object
) -> None:
    differing = [i for i in range(len(columns)) if len({settings[i] for settings in found}) > 1]
    shown = [
        f"{' '.join(f'{columns[i].removeprefix(TRAINING)}={settings[i][:40]}' for i in differing)} ({count} runs)"
        for settings, count in found.items()
    ]
    first = f"{columns[differing[0]].removeprefix(TRAINING)}={max(found, key=lambda each: found[each])[differing[0]]}"
    raise DataError(
        f"{source} has runs of {cell} with {model or 'one model'} under {len(found)} different settings, "
        f"{' and '.join(shown[:3])}, which must not be averaged; choose one, for instance with --where {first}"
    )


def read_groups(path: str | os.PathLike[str]) -> dict[str, str]:
    """Groups of datasets from a CSV with the columns ``dataset`` and ``group``."""
    path = Path(path)
    header, rows = _csv_rows(path, _text(path))
    lower = [name.lower() for name in header]
    missing = [name for name in ("dataset", "group") if name not in lower]
    if missing:
        raise DataError(
            f"{path} has the columns {', '.join(header)}, but needs dataset and group; add {' and '.join(missing)}"
        )
    groups: dict[str, str] = {}
    for row in rows:
        name, group = (row[lower.index(key)] for key in ("dataset", "group"))
        if groups.setdefault(name, group) != group:
            raise DataError(f"{path} puts dataset '{name}' into two groups, '{groups[name]}' and '{group}'")
    return groups


def _text(path: Path) -> str:
    try:
        if path.is_dir():
            raise DataError(
                f"{path} is a directory, but a file is needed: export a store as CSV, JSON or JSON lines first"
            )
        if (size := size_of(path)) > MAX_BYTES:
            raise DataError(f"{path} has {size} bytes, but at most {MAX_BYTES} are read")
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DataError(f"no file {path}; check the path") from None
    except PermissionError:
        raise DataError(f"{path} cannot be read: permission denied") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not text in UTF-8; a CSV, JSON or JSON-lines file is needed") from None
    if not text.strip():
        raise DataError(f"{path} is empty; a table with a header and at least one row is needed")
    return text


def _csv_rows(path: Path, text: str) -> tuple[list[str], list[list[str]]]:
    try:
        table = list(csv.reader(io.StringIO(text), strict=True))
    except csv.Error as error:
        raise DataError(f"{path} is not a CSV file ({error})") from None
    numbered = [(line, [cell.strip() for cell in row]) for line, row in enumerate(table, 1) if any(row)]
    if not numbered:
        raise DataError(f"{path} has only empty rows; a table with a header and at least one row is needed")
    (_, header), rows = numbered[0], numbered[1:]
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise DataError(f"{path} has two columns '{twice[0]}'; give every column one name")
    if not rows:
        raise DataError(f"{path} has a header but no rows")
    for line, row in rows:
        if len(row) != len(header):
            raise DataError(f"line {line} of {path} has {len(row)} cells, but the header has {len(header)}")
    return header, [row for _, row in rows]


def _wide(path: Path, header: list[str], rows: list[list[str]], kind: Kind | None) -> Profiles:
    if header[0].lower() not in ("dataset", "name", ""):
        raise DataError(
            f"the first column of {path} is '{header[0]}', but 'dataset' is needed, either with one column per "
            f"perturbation or with the columns perturbation and auroc"
        )
    datasets = [row[0] for row in rows]
    names = header[1:]
    table = np.array([[_number(cell, path, row[0], name) for name, cell in zip(names, row[1:])] for row in rows])
    table = table.reshape(len(rows), len(names))
    base = [index for index, name in enumerate(names) if name.lower() in UNPERTURBED]
    if len(base) > 1:
        listed = " and ".join(f"'{names[index]}'" for index in base)
        raise DataError(f"{path} has several columns for the unperturbed dataset, {listed}; keep one")
    if kind is None:
        kind = "auroc" if base else "log2"
        if not base and np.isfinite(table).any() and np.nanmin(table) > 0:
            raise DataError(
                f"{path} has no column '{ORIGINAL}' for the unperturbed dataset and no negative number: if these are "
                "AUROCs, add that column; if they are log2 ratios, say so with --kind log2"
            )
    if kind == "log2":
        return Profiles(tuple(datasets), tuple(map(gtaxogym.perturbation_title, names)), table)
    if not base:
        raise DataError(
            f"{path} has no column for the unperturbed dataset, which every ratio is taken to; call it '{ORIGINAL}'"
        )
    rest = [index for index in range(len(names)) if index != base[0]]
    if not rest:
        raise DataError(f"{path} has no column but that of the unperturbed dataset; add one per perturbation")
    return from_auroc(
        datasets, [gtaxogym.perturbation_title(names[index]) for index in rest], table[:, base[0]], table[:, rest]
    )


def _number(cell: Any, path: Path, dataset: str, name: str) -> float:
    if cell is None or (isinstance(cell, str) and cell.strip().lower() in MISSING_WORDS):
        return np.nan
    try:
        if isinstance(cell, bool):
            raise ValueError
        return float(cell)
    except (TypeError, ValueError):
        shown = str(cell)[:40]
        raise DataError(
            f"{path} has '{shown}' for dataset '{dataset}' under '{name}', but a number is needed, or nothing where "
            "the result is missing"
        ) from None


def _json_rows(path: Path, text: str) -> list[Row]:
    try:
        if path.suffix.lower() in (".jsonl", ".ndjson"):
            raise ValueError
        value = json.loads(text)
    except ValueError:
        value = []
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                try:
                    value.append(json.loads(line))
                except ValueError as error:
                    raise DataError(f"line {number} of {path} is not JSON ({error})") from None
    if isinstance(value, dict) and "perturbation" not in value:
        lists = [own for own in value.values() if isinstance(own, list) and own and isinstance(own[0], dict)]
        if len(lists) != 1:
            raise DataError(
                f"{path} is a JSON object with {len(lists)} lists of objects, but one list of runs is needed"
            )
        value = lists[0]
    rows = [value] if isinstance(value, dict) else value
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise DataError(f"{path} must hold a list of objects, one per run, with dataset, perturbation and auroc")
    return [{str(key).lower(): item for key, item in row.items()} for row in rows]


def _by_model(rows: Sequence[Row], path: Path) -> dict[str, Profiles]:
    found: dict[str, list[tuple[str, str, Any, float]]] = {}
    for number, row in enumerate(rows, 1):
        missing = [key for key in ("dataset", "auroc") if key not in row]
        missing += [] if "perturbation" in row else ["perturbation"]
        if missing:
            raise DataError(
                f"run {number} of {path} has no {' and no '.join(missing)}; "
                "every run needs dataset, perturbation and auroc"
            )
        dataset = str(row["dataset"] or "").strip()
        if not dataset:
            raise DataError(f"run {number} of {path} names no dataset")
        name = _perturbation(row["perturbation"])
        seed = next((row[key] for key in SEED_COLUMNS if row.get(key) not in (None, "")), None)
        score = _number(row["auroc"], path, dataset, name)
        found.setdefault(str(row.get("model") or ""), []).append((dataset, name, seed, score))
    made = {model: from_runs(own, model=model or None) for model, own in found.items()}
    known = {str(row["dataset"]): float(row["complementarity"]) for row in rows if row.get("complementarity")}
    return {
        model: replace(own, notes=(*own.notes, *_notes(rows, model)), complementarity=known)
        for model, own in made.items()
    }


def _notes(rows: Sequence[Row], model: str) -> list[str]:
    """What runs of a model say about themselves: the first note of every dataset, and how many more there are."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.get("notes") and str(row.get("model") or "") == model:
            found.setdefault(str(row["dataset"]), []).append(str(row["notes"]))
    return [
        f"{dataset}: {notes[0]}" + (f" (and {len(notes) - 1} more runs with a note)" if len(notes) > 1 else "")
        for dataset, notes in found.items()
    ]


def _perturbation(value: Any) -> str:
    name = "" if value is None else str(value).strip()
    if name.lower() in UNPERTURBED:
        return ORIGINAL
    # the paper's spelling of its own names in any case, of those of its code and of the catalogue's
    return gtaxogym.perturbation_title(name)
