"""Checks of trainings and attacks against the bytes of their artefacts, without torch."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import Any

from grb.errors import IntegrityError
from grb.pipeline.edit_budget import check_edit, short
from grb.pipeline.job import Job
from grb.pipeline.record import FILE, NOT_COMPUTED, SUBMISSION, Record, read_json, without_clocks

# content of files by name
Artefacts = Mapping[str, bytes]
MAX_HEADER = 2**20


def check_attack(record: Record, artefacts: Artefacts) -> Generator[str, None, int | None]:
    """Yield a sentence for everything that the record of an attack says and its edit contradicts.

    Returns:
        Number of nodes of the graph that the edit is of; None if there is no edit.
    """
    job, result = record.job, record.result
    if set(artefacts) != {"edit"} or record.measurement is not None:
        yield "an attack holds an edit and no measurement"
        return None
    named = f"the edit of record {record.key[:12]}"
    meta, sentences = check_edit(named, artefacts["edit"], job.extra["threat"], result["budget"])
    yield from sentences
    for name in ("loss", "kept"):
        if len(result[name]) > result["steps"]:
            yield f"it has {len(result[name])} values of {name}, but {result['steps']} steps"
    if job.spec.name in NOT_COMPUTED:
        yield from check_sent(record, "edit")
    else:
        yield from check_meta(job, meta, "edit")
    return int(meta["n"])


def check_sent(record: Record, name: str) -> Iterator[str]:
    """A submission or a model file: its job names its bytes, and its card what the job is."""
    job = record.job
    yield from differences("sha256", job.spec.params.get("sha256"), record.objects[name]["sha256"])
    if job.spec.name == FILE:
        return
    card = record.result["card"]
    expected = {
        "name": job.spec.params["name"],
        "kind": "attack" if job.kind == "attack" else "defense",
        "dataset": job.data.dataset,
    }
    if job.kind == "attack":
        expected |= {"mode": job.mode, "knowledge": job.extra["knowledge"], "scenario": job.extra["threat"]["kind"]}
    assert job.spec.name == SUBMISSION
    yield from differences("card", expected, {each: card[each] for each in expected})


def check_meta(job: Job, meta: Mapping[str, Any], what: str) -> Iterator[str]:
    """Yield a sentence if an artefact says that it is of another graph or seed than its job."""
    expected = {"fingerprint": job.data.fingerprint, "seed": job.seed}
    yield from differences(what, expected, {name: meta.get(name) for name in expected})


def safetensors_header(data: bytes) -> dict[str, Any]:
    """Read names, shapes and metadata of the tensors in a safetensors file."""
    size = int.from_bytes(data[:8], "little")
    if size > MAX_HEADER:
        raise IntegrityError(f"its weights have a header of {size} bytes, but at most {MAX_HEADER} are read")
    header = read_json(data[8 : 8 + size])
    if not isinstance(header, dict):
        raise IntegrityError("its weights have no header")
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    if 8 + size + max(ends, default=0) != len(data):
        raise IntegrityError(
            f"its weights end after {8 + size + max(ends, default=0)} bytes, but their file has {len(data)}"
        )
    return header


def differences(what: str, expected: Any, found: Any) -> Iterator[str]:
    """The first place where two plain values differ, as a sentence; nothing is said where nothing is expected."""
    if expected == found or (expected is None and what in ("defense", "attack")):
        return
    # a job that two stores measured keeps one clock when they are merged
    expected, found = without_clocks(expected), without_clocks(found)
    if expected == found:
        return
    path = what
    while isinstance(expected, Mapping) and isinstance(found, Mapping):
        names = [name for name in (*expected, *found) if expected.get(name, short) != found.get(name, short)]
        path = f"{path} {names[0]}".strip()
        expected, found = expected.get(names[0]), found.get(names[0])
    yield f"its {path} is {short(found)}, but what it was made of says {short(expected)}"
