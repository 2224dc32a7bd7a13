"""Records: what a job gave, as one JSON file that is checked whenever it is read."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import Any

from grb.errors import DataError, IntegrityError
from grb.pipeline.job import Job
from grb.pipeline.spec import canonical_json, digest

FORMAT = 2
# name of the spec of a job that nobody computed: its artefact was submitted
SUBMISSION = "submission"
# the same for a model whose file a user named
FILE = "file"
NOT_COMPUTED = (SUBMISSION, FILE)
# larger records were not written by grb
MAX_RECORD = 64 * 2**20
# what differs between two runs of one job on one machine
CLOCKS = frozenset({"seconds", "cpu_seconds", "peak_megabytes"})
# which study asked first is no result either
NOT_COMPARED = CLOCKS | {"study"}
SUFFIXES = (".safetensors", ".npz")
_KEY = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Record:
    """What a job gave: its result, its artefacts, where it comes from and, for a score, the measurement that says it all.

    Every field is part of the record's JSON and of its sha256; a field with a default may be absent from a file.
    """

    key: str
    job: Job
    result: dict[str, Any]
    objects: dict[str, dict[str, Any]]
    provenance: dict[str, Any]
    measurement: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values, as its file holds them."""
        held = {each.name: getattr(self, each.name) for each in fields(self)}
        return {"format": FORMAT, **held, "job": self.job.plain()}

    def to_json(self) -> bytes:
        """Return the content of its file: the values and their sha256."""
        values = self.to_dict()
        return json_bytes({**values, "sha256": digest(values)})

    @classmethod
    def from_json(cls, data: bytes, *, key: str, source: object) -> Record:
        """Read back what :meth:`to_json` gave; anything damaged, changed or of another job is refused.

        Args:
            data: Content of the file.
            key: Key that the file's name promises.
            source: Name of the file, for messages.
        """
        try:
            values = _DECODER.decode(data.decode())
            written = values.pop("sha256", None)
            # the canonical text in three parts, because that of the job is hashed once more; refuses infinite numbers as well
            job = canonical_json(values["job"])
            before = canonical_json({name: value for name, value in values.items() if name < "job"})
            after = canonical_json({name: value for name, value in values.items() if name > "job"})
            found = _sha256(f'{before[:-1]},"job":{job},{after[1:]}')
            record = cls(**_parsed(values))
            of_key = record.key == key == _sha256(job)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise IntegrityError(f"record {source} is damaged ({str(error)[:80]}); remove it and run again") from None
        if not of_key:
            raise IntegrityError(f"record {source} is of another job than its name says; remove it and run again")
        if written is None:
            raise IntegrityError(f"record {source} has no sha256 of its content; remove it and run again")
        if written != found:
            raise IntegrityError(f"record {source} was changed after it was written; remove it and run again")
        vars(record.job)["key"] = key  # the cached property: it need not be hashed again
        return record


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _objects(values: Any) -> dict[str, dict[str, Any]]:
    for entry in values.values():
        if not (is_key(entry["sha256"]) and entry["suffix"] in SUFFIXES and entry["bytes"] >= 0):
            raise ValueError(f"no artefact {str(entry)[:40]}")
    return {name: dict(entry) for name, entry in values.items()}


def _mapping(values: Any) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise TypeError(f"{str(values)[:40]} is no mapping")
    return values


def _optional_mapping(values: Any) -> dict[str, Any] | None:
    return None if values is None else _mapping(values)


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "key": str,
    "job": Job.from_plain,
    "objects": _objects,
    "measurement": _optional_mapping,
}
# name, parser, whether a file must have it
_FIELDS: list[tuple[str, Callable[[Any], Any], bool]] = [
    (each.name, _PARSERS.get(each.name, _mapping), each.default is MISSING and each.default_factory is MISSING)
    for each in fields(Record)
]
_NAMES = {"format", *(name for name, _, _ in _FIELDS)}


def _parsed(values: dict[str, Any]) -> dict[str, Any]:
    if values["format"] != FORMAT:
        raise ValueError(f"format {str(values['format'])[:20]}, but this version reads {FORMAT}")
    unknown = values.keys() - _NAMES
    if unknown:
        raise ValueError(f"unknown field '{min(unknown)[:40]}'")
    return {name: parse(values[name]) for name, parse, required in _FIELDS if required or name in values}


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def without_clocks(value: Any) -> Any:
    """Return a plain value without what differs from run to run: clocks, memory counters, and which study asked first."""
    if isinstance(value, dict):
        return {name: without_clocks(item) for name, item in value.items() if name not in NOT_COMPARED}
    return value


def is_key(value: Any) -> bool:
    """Whether a value is a key: 64 hexadecimal digits."""
    return isinstance(value, str) and _KEY.fullmatch(value) is not None


def checked_key(key: Any) -> str:
    """Return a key, or refuse what is none, so that no name leads out of the store."""
    if not is_key(key):
        raise DataError(f"'{str(key)[:70]}' is no key; keys are 64 hexadecimal digits")
    return str(key)


def json_bytes(value: Any) -> bytes:
    """Return a value as readable JSON with sorted keys, the same bytes for the same value."""
    return (json.dumps(value, sort_keys=True, indent=1, allow_nan=False) + "\n").encode()
