"""What a study measured: its rows in the store, the board that they make, and the paper's numbers beside them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from grb.errors import DataError
from grb.evaluator.matrix import Board, Row, build_board
from grb.pipeline.plan import Place, Study
from grb.pipeline.store import Record, Store
from grb.pipeline.worker import unpack_bits


def rows(study: Study, store: Store) -> Iterator[Row]:
    """Every measurement that the store has."""
    known: dict[str, Record] = {}

    def read(key: str) -> Record:
        if key not in known:
            known[key] = store.read(key)
        return known[key]

    sizes: dict[int | None, dict[str, int]] = {}
    for place in study.places:
        if not store.has(place.score):
            continue
        record = store.read(place.score)
        number = record.job.data.split
        if number not in sizes:
            parts = (study.dataset if number is None else study.dataset.with_split(number)).split.test
            sizes[number] = {mode: len(ids) for mode, ids in parts.items()}
        facts = _facts(place, record, read, store)
        for mode in place.modes:
            if mode not in record.result["accuracy"]:
                continue
            yield Row(
                attack=place.attack,
                defense=place.defense,
                mode=mode,
                repeat=place.repeat,
                victim=place.victim,
                accuracy=record.result["accuracy"][mode],
                changed=record.result["changed"][mode],
                knowledge=place.knowledge,  # type: ignore[arg-type]
                correct=_bits(record.result["correct"].get(mode), sizes[number][mode]),
                facts=facts | ({"nan": silent[mode]} if (silent := record.result.get("nan")) else {}),
                outside=place.outside,
            )


def _facts(place: Place, record: Record, read: Any, store: Store) -> dict[str, Any]:
    """What a reader asks of a cell: which jobs, which seeds, what it took."""
    job = record.job
    victim = read(job.inputs["model"])
    facts: dict[str, Any] = {
        "score": job.key,
        "victim": victim.key,
        "victim_seed": victim.job.seed,
        "victim_seconds": victim.provenance["cpu_seconds"],
        "parameters": victim.result.get("parameters"),
        "threads": job.threads,
        "repeat": place.repeat,
    }
    if job.data.edits:
        attack = read(job.data.edits[-1])
        facts |= {
            "attack": attack.key,
            "attack_seed": attack.job.seed,
            "attack_seconds": attack.result["cpu_seconds"],
            "attack_megabytes": attack.provenance["peak_megabytes"],
            "attack_steps": attack.result["steps"],
            "edit_bytes": attack.objects["edit"]["bytes"],
            "budget": attack.result["budget"],
            "threat": attack.job.extra["threat"],
            "surrogate": place.surrogate,
            "notes": attack.result["notes"],
        }
    return facts


def _bits(text: str | None, count: int) -> np.ndarray[Any, Any] | None:
    return None if text is None else unpack_bits(text, count)


def board(study: Study, store: Store) -> Board:
    """The leaderboard of a study, from whatever the store has of it."""
    recipe = study.recipe
    measured = list(rows(study, store))
    total = sum(len(place.modes) for place in study.places)
    made = build_board(
        measured,
        dataset=study.dataset.name,
        scenario=recipe.scenario,
        modes=recipe.modes,
        paper=paper_table(recipe.paper) if recipe.paper else None,
        meta={
            "title": recipe.title or recipe.name,
            "recipe": recipe.name,
            "synthetic": study.dataset.synthetic,
            "repeats": recipe.repeats,
            "victims": recipe.victims,
            "measured": len(measured),
            "planned": total,
            "fingerprint": study.dataset.fingerprint(),
            **({"cards": {name: card.shown() for name, card in study.cards.items()}} if study.cards else {}),
        },
    )
    return replace(made, flags=(*made.flags, *_silent(measured)))


def _silent(measured: list[Row]) -> Iterator[str]:
    """Which defenses say NaN."""
    worst: dict[str, Row] = {}
    for row in measured:
        if row.facts.get("nan", 0) > (worst[row.defense].facts["nan"] if row.defense in worst else 0):
            worst[row.defense] = row
    for defense, row in worst.items():
        of = "" if row.correct is None else f" of {len(row.correct)}"
        yield f"{defense} gives NaN for up to {row.facts['nan']}{of} targets; they count as wrong"


@cache
def paper_table(dataset: str) -> dict[tuple[str, str, str], tuple[float, float]]:
    """Accuracy and std in per cent of Tables 13 to 17 of the GRB paper by (attack, defense, mode)."""
    text = resources.files("grb").joinpath("presets").joinpath("leaderboards.csv").read_text("utf-8")
    letters = dict(zip("EMHF", ("easy", "medium", "hard", "full"), strict=True))
    lines = (line for line in io.StringIO(text) if not line.startswith("#"))
    table = {
        (row["attack"].lower(), row["defense"].lower(), letters[row["difficulty"]]): (
            float(row["accuracy"]),
            float(row["std"] or 0),
        )
        for row in csv.DictReader(lines)
        if row["dataset"] == dataset and row["difficulty"] in letters
    }
    if not table:
        raise DataError(f"the paper has no leaderboard of '{dataset}'")
    return table
