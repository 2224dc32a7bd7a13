"""Records: what a job gave, as one JSON file that is checked whenever it is read."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, fields
from typing import Any

from grb.errors import DataError, IntegrityError
from grb.pipeline.job import SUBMISSION as SUBMISSION
from grb.pipeline.job import Job
from grb.pipeline.json_memory import FREE_MEMORY, check_memory
from grb.pipeline.spec import canonical_json, canonical_parts, digest

FORMAT = 2
# the same for a model whose file a user named
FILE = "file"
NOT_COMPUTED = (SUBMISSION, FILE)
# larger records were not written by grb, and those of ours are a few levels deep
MAX_RECORD = 32 * 2**20
MAX_DEPTH = 32
MAX_VALUES = 1_000_000
# larger records are hashed part by part, because their canonical text would be in memory three times
LARGE = 2**18
# a byte takes at most 209 bytes of memory, so that what is smaller takes less than FREE_MEMORY
SMALL = FREE_MEMORY // 209
# what differs between two runs of one job on one machine
CLOCKS = frozenset({"seconds", "cpu_seconds", "peak_megabytes"})
# the day and which study asked first are no results either
NOT_COMPARED = CLOCKS | {"study", "date"}
SUFFIXES = (".safetensors", ".npz")
_KEY = re.compile(r"[0-9a-f]{64}")
# halves of letters: Python's spelling of bytes in the name of a file that are no text (PEP 383)
_FILE_NAMES = "".join(map(chr, range(0xDC80, 0xDD00)))
# escapes of JSON behind which letters may be that nobody sees
_ESCAPED = re.compile(rb"\\[ubfr]")
# control, format, halves of letters and ends of lines, and letters that are drawn as nothing
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_IGNORED = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)


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
        """Return the record as JSON values, as its file holds them."""
        held = {each.name: getattr(self, each.name) for each in fields(self)}
        return {"format": FORMAT, **held, "job": self.job.to_dict()}

    def to_json(self) -> bytes:
        """Return the content of its file: the values and their sha256."""
        values = self.to_dict()
        data = json_bytes({**values, "sha256": digest(values)})
        try:
            read_json(data)
        except ValueError as error:
            raise DataError(f"record {self.key[:12]} could not be read again: {error}; keep less in it") from None
        return data

    @classmethod
    def from_json(cls, data: bytes, *, key: str, source: object) -> Record:
        """Read back what :meth:`to_json` gave; anything damaged, changed or of another job is refused.

        Args:
            data: Content of the file.
            key: Key that the file's name promises.
            source: Name of the file, for messages.
        """
        try:
            values = read_json(data)
            written = values.pop("sha256", None)
            record = cls(**_parsed(values))
            # the canonical text in two parts, because that of the job is hashed once more; refuses infinite numbers as well
            job = canonical_json(values.pop("job"))
            del values["format"]
            text = canonical_parts(values) if len(data) > LARGE else iter((canonical_json(values),))
            found = _sha256(f'{{"format":{FORMAT},"job":{job},{next(text)[1:]}', text)
            of_key = record.key == key == _sha256(job)
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            reason = " ".join(str(error).split())[:80]
            raise IntegrityError(f"record {source} is damaged ({reason}); remove it and run again") from None
        if not of_key:
            raise IntegrityError(f"record {source} is of another job than its name says; remove it and run again")
        if written is None:
            raise IntegrityError(f"record {source} has no sha256 of its content; remove it and run again")
        if written != found:
            raise IntegrityError(f"record {source} was changed after it was written; remove it and run again")
        vars(record.job)["key"] = key  # the cached property: it need not be hashed again
        return record


def read_json(data: bytes) -> Any:
    """Read JSON that may come from anywhere.

    What holds too many values is refused before they take memory; what is nested too deep, and text with letters that nobody
    sees, afterwards.
    """
    _check_size(data)
    values = _DECODER.decode(data.decode())
    _check_depth(data, values)
    if not data.isascii() or (b"\\" in data and _ESCAPED.search(data)):
        _check_text(values)
    return values


def unseen_letter(text: str, *, allowed: str = "\n\t") -> str:
    """Return the first letter of a text that readers do not see, as in ``U+200B``; empty if there is none.

    >>> unseen_letter("Ada"), unseen_letter("A\u200bda")
    ('', 'U+200B')
    """
    for letter in text if not (text.isascii() and text.isprintable()) else "":
        if letter not in allowed and (unicodedata.category(letter) in _UNSEEN or _IGNORED.match(letter)):
            return f"U+{ord(letter):04X}"
    return ""


def _check_text(values: Any) -> None:
    stack = [values]
    while stack:
        each = stack.pop()
        if isinstance(each, dict):
            stack += [*each, *each.values()]
        elif isinstance(each, list):
            stack += each
        elif isinstance(each, str) and (letter := unseen_letter(each, allowed="\n\t" + _FILE_NAMES)):
            raise ValueError(f"it has the character {letter}, which readers do not see")


def _check_size(data: bytes) -> None:
    if len(data) <= min(SMALL, MAX_VALUES):  # which takes less than is free
        return
    # every value but the first of its list or mapping follows a comma
    if len(data) > MAX_RECORD or data.count(b",") + data.count(b"[") + data.count(b"{") > MAX_VALUES:
        raise ValueError(f"it has more than {MAX_RECORD} bytes or {MAX_VALUES} values")
    check_memory(data)


def _check_depth(data: bytes, values: Any) -> None:
    """Refuse what is nested deeper than any record of ours; level by level, without recursion."""
    if data.count(b"{") + data.count(b"[") <= MAX_DEPTH:  # text is nested no deeper than it has brackets
        return
    level = [values]
    for _ in range(MAX_DEPTH + 1):
        held = [each.values() if isinstance(each, dict) else each for each in level]
        level = [each for inside in held for each in inside if isinstance(each, dict | list | tuple)]
        if not level:
            return
    raise ValueError(f"it is nested more than {MAX_DEPTH} deep")


def _sha256(text: str, more: Iterable[str] = ()) -> str:
    found = hashlib.sha256(text.encode())
    for part in more:
        found.update(part.encode())
    return found.hexdigest()


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
    "job": Job.from_dict,
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
    if not values.keys() <= _NAMES:
        raise ValueError(f"unknown field '{min(values.keys() - _NAMES)[:40]}'")
    return {name: parse(values[name]) for name, parse, required in _FIELDS if required or name in values}


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def without_clocks(value: Any) -> Any:
    """Return a JSON value without what differs from run to run: clocks, memory, the day, and which study asked first."""
    if isinstance(value, dict):
        return {name: without_clocks(item) for name, item in value.items() if name not in NOT_COMPARED}
    if isinstance(value, list | tuple):
        return [without_clocks(item) for item in value]
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
