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
from grb.evaluator.board import Board, Run, board_from_runs
from grb.pipeline.plan import Place, Study
from grb.pipeline.store import Record, Store
from grb.pipeline.worker import unpack_bits


def rows(study: Study, store: Store) -> Iterator[Run]:
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
            sizes[number] = {difficulty: len(ids) for difficulty, ids in parts.items()}
        metadata = _metadata(place, record, read, store)
        for difficulty in place.difficulties:
            if difficulty not in record.result["accuracy"]:
                continue
            yield Run(
                attack=place.attack,
                defense=place.defense,
                difficulty=difficulty,
                repeat=place.repeat,
                victim=place.victim,
                accuracy=record.result["accuracy"][difficulty],
                changed=record.result["changed"][difficulty],
                knowledge=place.knowledge,  # type: ignore[arg-type]
                correct=_bits(record.result["correct"].get(difficulty), sizes[number][difficulty]),
                metadata=metadata | ({"nan": silent[difficulty]} if (silent := record.result.get("nan")) else {}),
                is_submission=place.is_submission,
            )


def _metadata(place: Place, record: Record, read: Any, store: Store) -> dict[str, Any]:
    """What a reader asks of a cell: which jobs, which seeds, what it took."""
    job = record.job
    victim = read(job.inputs["model"])
    metadata: dict[str, Any] = {
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
        metadata |= {
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
    return metadata


def _bits(text: str | None, count: int) -> np.ndarray[Any, Any] | None:
    return None if text is None else unpack_bits(text, count)


def board(study: Study, store: Store) -> Board:
    """The leaderboard of a study, from whatever the store has of it."""
    recipe = study.recipe
    measured = list(rows(study, store))
    total = sum(len(place.difficulties) for place in study.places)
    made = board_from_runs(
        measured,
        dataset=study.dataset.name,
        scenario=recipe.scenario,
        difficulties=recipe.difficulties,
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


def _silent(measured: list[Run]) -> Iterator[str]:
    """Which defenses say NaN."""
    worst: dict[str, Run] = {}
    for row in measured:
        if row.metadata.get("nan", 0) > (worst[row.defense].metadata["nan"] if row.defense in worst else 0):
            worst[row.defense] = row
    for defense, row in worst.items():
        of = "" if row.correct is None else f" of {len(row.correct)}"
        yield f"{defense} gives NaN for up to {row.metadata['nan']}{of} targets; they count as wrong"


@cache
def paper_table(dataset: str) -> dict[tuple[str, str, str], tuple[float, float]]:
    """Accuracy and std in per cent of Tables 13 to 17 of the GRB paper by (attack, defense, difficulty)."""
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
