"""Boards from a CSV file with one row per score, as ``--format csv-runs`` and ``grb store copy`` write them."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from grb.atomic import size_of
from grb.catalogue import preset
from grb.errors import DataError
from grb.evaluator.board import (
    BY_DEFAULT,
    CLEAN,
    POOL,
    QUERIES,
    Board,
    Estimate,
    Knowledge,
    Ranking,
    Run,
    board_from_runs,
)
from grb.evaluator.measurement import ENSEMBLES
from grb.leaderboard.text import FORMULA

MAX_BYTES = 512 * 2**20
TRUE_LABELS = " (true labels)"
NEEDED = ("dataset", "scenario", "difficulty", "attack", "knowledge", "defense", "repeat")
KNOWLEDGE = ("none", "transfer", "query", "white-box")
DIFFICULTIES = ("easy", "medium", "hard", "full")
OLD_COLUMNS = {"difficulty": "mode", "repeat": "attack_seed"}
"""Columns of today by what version 0.1 called them; an attack's seed was its repeat, and the clean graph had none."""
UNKNOWN = Estimate(0.0, 0.0, None, None, 0)
"""What a file does not say: an estimate over no run."""
ADVICE = "`grb leaderboard STORE --format csv-runs` writes such files"


def read_scores(path: str | os.PathLike[str], ranking: Ranking = BY_DEFAULT) -> list[Board]:
    """The boards of a CSV file with one row per score; several if it has several studies, or values of a varied limit.

    Summaries, intervals, ranks and the worst case are computed anew from the scores. What such a file does not hold stays
    unknown: specs, seconds of trainings, which single targets stayed right, and, in files of ``csv-runs``, how many
    predictions an edit changed; there, the worst case with predicted labels is that of the edits made on the defense itself. A
    study that is a recipe of grb by its name gets that recipe's title and limits.

    Args:
        path: A file of ``grb leaderboard STORE --format csv-runs``, also of version 0.1, or a table of ``grb store copy STORE
            FILE.csv``, whose name then is that of the recipe, or ``leaderboard-`` and the recipe.
        ranking: What ranks.
    """
    found = Path(path)
    rows = _rows(found)
    metric = _metric(list(rows[0]), found)
    named = _recipe_of(found)
    studies: dict[tuple[str, str, str], list[Mapping[str, str]]] = {}
    for row in rows:
        own = (row["dataset"], row["scenario"], row.get("recipe") or named)
        studies.setdefault(own, []).append(row)
    return [board for key, own in studies.items() for board in _boards(key, own, metric, ranking)]


def _recipe_of(path: Path) -> str:
    """The recipe that a file without such a column is named after."""
    from grb.pipeline.recipe import recipe_names

    found = path.stem.removeprefix("leaderboard-")
    return found if found in recipe_names() else path.stem


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        if size_of(path) > MAX_BYTES:
            raise DataError(f"{path} is larger than {MAX_BYTES} bytes; {ADVICE}, and shorter ones")
        text = path.read_text("utf-8")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check the path") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is no text in UTF-8; {ADVICE}") from None
    reader = csv.DictReader(io.StringIO(text), strict=True)
    try:
        if reader.fieldnames is None:
            raise DataError(f"{path} is empty; {ADVICE}")
        old = {name: was for name, was in OLD_COLUMNS.items() if name not in reader.fieldnames}
        missing = [name for name in NEEDED if old.get(name, name) not in reader.fieldnames]
        if missing:
            raise DataError(f"{path} has no column {', '.join(missing)}; {ADVICE}")
        found = [{name: _unquoted(value) for name, value in row.items() if isinstance(value, str)} for row in reader]
    except csv.Error as error:
        raise DataError(f"{path} is no CSV ({error}); {ADVICE}") from None
    if not found:
        raise DataError(f"{path} holds no scores; {ADVICE}")
    if any(len(row) < len(set(reader.fieldnames or ())) for row in found):
        raise DataError(f"{path} has rows that are too short; {ADVICE}")
    return [{**row, **{name: row[was] for name, was in old.items()}} for row in found]


def _unquoted(value: str) -> str:
    """A cell without the quote that keeps it from being a formula."""
    return value[1:] if value.startswith("'") and value[1:].lstrip().startswith(FORMULA) else value


def _metric(headers: Sequence[str], path: Path) -> str:
    """The metric that ranks: its column follows that of the run, or of the victim."""
    before = "run" if "run" in headers else "victim"
    place = headers.index(before) + 1 if before in headers else len(headers)
    if place >= len(headers):
        raise DataError(f"{path} has no column of scores behind '{before}'; {ADVICE}")
    return headers[place]


def _boards(
    key: tuple[str, str, str], rows: Sequence[Mapping[str, str]], metric: str, ranking: Ranking
) -> Iterator[Board]:
    """One board, or one for every value of a varied limit; scores without a value, of clean graphs, belong to all of them."""
    dataset, scenario, recipe = key
    values = dict.fromkeys((row.get("limit") or "", row.get("limit_value") or "") for row in rows)
    swept = [value for value in values if value[0]]
    for limit in swept or [("", "")]:
        own = [row for row in rows if (row.get("limit") or "", row.get("limit_value") or "") in (limit, ("", ""))]
        threats = _threats(recipe, dataset, scenario, limit)
        runs = [_run(row, metric, threats) for row in own]
        listed = {run.difficulty for run in runs}
        board = board_from_runs(
            runs,
            dataset=dataset,
            scenario=scenario,
            difficulties=[*(each for each in DIFFICULTIES if each in listed), *sorted(listed.difference(DIFFICULTIES))],
            meta=_meta(recipe, dataset, scenario, runs, limit),
            metric=metric,
            limit=(limit[0], _number(limit[1], "limit_value")) if limit[0] else None,
            ranking=ranking,
        )
        unchanged = any("changed" not in row for row in own)
        yield _without_changes(board) if unchanged else board


def _without_changes(board: Board) -> Board:
    """The board with the share of changed predictions unknown, except on the clean graph."""
    cells = [cell if cell.attack == CLEAN else replace(cell, changed=UNKNOWN) for cell in board.cells]
    return replace(board, cells=tuple(cells))


def _run(row: Mapping[str, str], metric: str, threats: Mapping[str, Mapping[str, Any]]) -> Run:
    knowledge = row["knowledge"]
    if knowledge not in KNOWLEDGE:
        raise DataError(f"knowledge is '{knowledge[:40]}', but one of {', '.join(KNOWLEDGE)} is needed; {ADVICE}")
    labels = row.get("labels") or "predicted"
    if labels not in ("predicted", "true"):
        raise DataError(f"labels is '{labels[:40]}', but predicted or true is needed; {ADVICE}")
    attack, difficulty = row["attack"], row["difficulty"]
    name = attack.removesuffix(TRUE_LABELS)
    # of the edits that the ensemble made on others, a file of csv-runs has the strongest alone, whatever labels it aimed at
    battery = attack == POOL or name in ENSEMBLES.values()
    victim = row.get("victim_seed") or row.get("victim") or "0"
    metadata: dict[str, Any] = {"victim_seed": _whole(victim, "victim_seed")}
    score = row.get("score") or row.get("key")
    metadata |= {"score": score} if score else {}
    if attack != CLEAN:
        known = {"attack_seed": row.get("attack_seed") or row["repeat"], "threat": threats.get(difficulty)}
        metadata |= {label: value for label, value in known.items() if value}
        seconds = row.get("attack_seconds") or row.get("attack_cpu_seconds")
        metadata |= {"attack_seconds": _number(seconds, "seconds of an attack")} if seconds else {}
    return Run(
        attack=name if battery else attack.removesuffix(QUERIES) if knowledge == "query" else attack,
        defense=row["defense"],
        difficulty=difficulty,
        repeat=_whole(row["repeat"] or "0", "repeat"),
        victim=_whole(victim, "victim"),
        score=_number(row[metric], metric),
        changed=_number(row.get("changed") or "0", "changed"),
        knowledge=cast(Knowledge, knowledge),
        metadata=metadata,
        labels="true" if attack.endswith(TRUE_LABELS) or attack == POOL or labels == "true" else "predicted",
        battery=name if battery else "",
    )


def _number(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"{what} is '{text[:40]}', but a number is needed; {ADVICE}")
    return value


def _whole(text: str, what: str) -> int:
    value = _number(text, what)
    if value != int(value):
        raise DataError(f"{what} is '{text[:40]}', but a whole number is needed; {ADVICE}")
    return int(value)


def _meta(recipe: str, dataset: str, scenario: str, runs: Iterable[Run], limit: tuple[str, str]) -> dict[str, Any]:
    from grb.pipeline.recipe import read_recipe, recipe_names

    title = f"{scenario[:1].upper()}{scenario[1:]} on {dataset}"
    if recipe in recipe_names():
        title = read_recipe(recipe).title or title
    listed = list(runs)
    return {
        "title": f"{title}, {limit[0]} {limit[1]}" if limit[0] else title,
        "recipe": recipe,
        "synthetic": dataset.startswith("synth-"),
        "repeats": len({run.repeat for run in listed if run.attack != CLEAN and not run.battery}) or 1,
        "victims": len({run.victim for run in listed}),
    }


def _threats(recipe: str, dataset: str, scenario: str, limit: tuple[str, str]) -> dict[str, dict[str, Any]]:
    """By difficulty the limits in a recipe of grb that does not change them."""
    from grb.pipeline.recipe import read_recipe, recipe_names

    table = preset("injection").get(dataset)
    if table is None or recipe not in recipe_names() or read_recipe(recipe).threat:
        return {}
    if scenario == "modification" and not limit[0]:
        own = {"kind": "modification", **preset("modification")["default"]}
        return {difficulty: dict(own) for difficulty in table["nodes"]}
    if scenario != "injection":
        return {}
    try:
        changed = {limit[0]: int(float(limit[1]))} if limit[0] else {}
    except (ValueError, OverflowError):
        return {}
    return {
        difficulty: {
            "kind": "injection",
            "nodes": nodes,
            "edges_per_node": table["edges_per_node"],
            "feature_range": table["feature_range"],
            **changed,
        }
        for difficulty, nodes in table["nodes"].items()
    }
