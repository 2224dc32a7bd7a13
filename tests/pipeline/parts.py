"""What the tests of the pipeline share: the smallest recipes, and a study that was run once."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import settings

from grb.evaluator.board import CLEAN, Board
from grb.evaluator.measurement import MethodInfo
from grb.pipeline import DataRef, Job, Recipe, Record, Spec, Store, Study, build_board
from grb.pipeline.recipe import parse_recipe
from grb.pipeline.record import json_bytes
from grb.pipeline.spec import digest

TESTS = Path(__file__).parents[1]
# values of many parts are slow to draw; `make stress` takes more of them
FEW = settings() if os.environ.get("HYPOTHESIS_PROFILE") == "stress" else settings(max_examples=60)
TINY = """
dataset: synth-tiny
attacks: [rnd, fgsm]
white_box: [fgsm]
modes: [easy, full]
repeats: 2
iterations: 2
training: {epochs: 3}
memory: false
"""
# one training and nothing but cheap attacks without a model
BARE = """
dataset: synth-tiny
modes: [full]
repeats: 1
training: {epochs: 1}
memory: false
"""


def recipe(text: str = TINY, *, name: str = "tiny", **changes: object) -> Recipe:
    return parse_recipe(text, name=name).changed(**changes)


def bare(*attacks: object, **changes: object) -> Recipe:
    """A recipe of these attacks, the plug-ins of this directory under their short names."""
    listed = [_plugin(attack) for attack in attacks]
    return recipe(BARE, attacks=listed, **changes)


def _plugin(attack: object) -> dict[str, object]:
    given = dict(attack) if isinstance(attack, dict) else {"name": attack}
    return {**given, "name": f"pipeline.plugins:{given['name']}"}


def copied(store: Store, path: Path) -> Store:
    """The same records elsewhere, for a test that spoils them."""
    shutil.copytree(store.path, path)
    return Store(path)


def small_job(number: int = 0) -> Job:
    return Job("fit", Spec("gcn"), DataRef("synth-tiny", "a" * 64), seed=number)


def small_record(number: int = 0, **objects: dict[str, Any]) -> Record:
    """A record that can be read, of a training that never happened."""
    own = small_job(number)
    return Record(own.key, own, {"parameters": 1, "val_score": 0.5}, objects, {"seconds": 0.1})


def forge(store: Store, values: dict[str, Any]) -> str:
    """Put values into a store as a record with a right key and checksum, past every check; its key."""
    values = {name: value for name, value in values.items() if name != "sha256"}
    key = values["key"] = digest(values["job"])
    path = store.record_path(key)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(json_bytes({**values, "sha256": digest(values)}))
    return key


def claimed_by(store: Store, words: str, age: float = 0.0) -> Path:
    """A claim of :func:`small_job` with these words in it, made some seconds ago."""
    path = store.path / "claims" / small_job().key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(words)
    os.utime(path, (time.time() - age, time.time() - age))
    return path


def of_kind(study: Study, *kinds: str) -> list[Job]:
    return [job for job in study.jobs.values() if job.kind in kinds]


@dataclass(frozen=True)
class Planned:
    """What a score of a study will measure, as its jobs say it."""

    score: str
    attack: str
    defense: str
    repeat: int
    victim: int
    knowledge: str
    modes: tuple[str, ...]


def planned(study: Study) -> list[Planned]:
    """Every score of a study, in the order of its targets."""
    return [_planned(study, key) for key in study.targets]


def _planned(study: Study, key: str) -> Planned:
    assert study.info is not None
    job = study.jobs[key]
    victim = study.jobs[job.inputs["model"]]
    defense = MethodInfo(victim.spec.name, victim.spec.params).label(study.info.training)
    modes = (job.mode,) if job.mode else study.info.difficulties
    if job.data.perturbations:
        attack, repeat, knowledge = job.data.perturbations[0].name, job.seed, "none"
    elif job.data.edits:
        edit = study.jobs[job.data.edits[-1]]
        attack, repeat = MethodInfo(edit.spec.name, edit.spec.params).label(study.info.attack), edit.seed
        knowledge = "white-box" if edit.extra["knowledge"] == "white-box" else "transfer"
    else:
        attack, repeat, knowledge = CLEAN, 0, "none"
    split = job.data.split
    return Planned(key, attack, defense, repeat, victim.seed if split is None else split, knowledge, modes)


def board_of(study: Study, store: Store) -> Board:
    """The only board of a study that varies no limit."""
    (made,) = build_board(study, store)
    return made


def bits(store: Store, keys: Iterable[str]) -> dict[str, object]:
    """All of the records but what clocks say."""
    clocks = ("seconds", "cpu_seconds", "peak_megabytes")

    def timeless(value: object) -> object:
        if isinstance(value, dict):
            return {name: timeless(item) for name, item in value.items() if name not in clocks}
        return value

    return {
        key: (
            timeless(record.result),
            timeless(record.measurement),
            {name: entry["sha256"] for name, entry in record.objects.items()},
        )
        for key in keys
        for record in [store.read(key)]
    }


def alive(pid: str) -> bool:
    """Whether there is such a process, and no zombie; only where /proc is."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
