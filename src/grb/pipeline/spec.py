"""Specs: a method's name and parameters as JSON values, and any frozen value of ours as canonical JSON."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
import math
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from grb.errors import DataError

# what a built method carries for its user and not for its result
NOT_HASHED = frozenset({"on_epoch", "on_step", "device"})
# JSON values hold no cycles: they are JSON already, or what :func:`jsonable` made
_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False, check_circular=False
)


@dataclass(frozen=True)
class Spec:
    """A catalogue name (or ``package.module:Class``) and what is changed of its preset.

    >>> Spec.of({"name": "pgd", "iterations": 100}).params
    {'iterations': 100}
    """

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Any) -> Spec:
        """From a name, or from a mapping with ``name`` (of code of others also ``module``) and parameters beside it."""
        if isinstance(given, Spec):
            return given
        if isinstance(given, str):
            return cls(given)
        if isinstance(given, Mapping) and isinstance(given.get("module"), str) and "name" not in given:
            given = {"name": given["module"], **{key: value for key, value in given.items() if key != "module"}}
        if not isinstance(given, Mapping) or not isinstance(given.get("name"), str):
            raise DataError(f"a method is a name, or a name with parameters as in {{name: pgd}}; got {given!r}")
        params = {str(key): value for key, value in given.items() if key != "name"}
        jsonable(params)
        return cls(given["name"], params)

    @property
    def label(self) -> str:
        """Short and unique within one study: the name, and whatever differs from the preset."""
        if not self.params:
            return self.name
        return f"{self.name}({', '.join(f'{key}={value}' for key, value in sorted(self.params.items()))})"

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {"name": self.name, "params": jsonable(self.params)}


def jsonable(value: Any) -> Any:
    """A value as JSON would hold it; frozen dataclasses become their class and fields, functions their import path."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise DataError(f"a parameter is {value}, but only finite numbers can be part of a job")
        return value
    if isinstance(value, enum.Enum):
        return jsonable(value.value)
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(jsonable(item) for item in value)
    if isinstance(value, Sequence):
        return [jsonable(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        own = {each.name: getattr(value, each.name) for each in dataclasses.fields(value) if _counts(each, value)}
        return {"type": path_of(type(value)), **{name: jsonable(item) for name, item in own.items()}}
    if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType | types.MethodType):
        return path_of(value)
    held = getattr(value, "params", None)
    if isinstance(held, Mapping):
        return {"type": path_of(type(value)), **jsonable(held)}
    raise DataError(f"a {type(value).__name__} cannot be part of a job; use JSON values, or a frozen dataclass")


def _counts(field: dataclasses.Field[Any], value: Any) -> bool:
    """Fields at their default are left out, so that a new option whose default changes nothing keeps every key."""
    if field.name in NOT_HASHED:
        return False
    if field.default is not dataclasses.MISSING:
        default = field.default
    elif field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    else:
        return True
    return bool(getattr(value, field.name) != default)


def path_of(thing: Any) -> str:
    """``package.module:Name`` of a class or function."""
    return f"{thing.__module__}:{thing.__qualname__}"


def canonical_json(value: Any) -> str:
    """One text for one value: keys sorted, no spaces, no NaN."""
    return _ENCODER.encode(value)


def canonical_parts(value: Any) -> Iterator[str]:
    """Iterate over the parts of the canonical text, slower and without holding it."""
    return _ENCODER.iterencode(value)


def digest(value: Any) -> str:
    """sha256 of a JSON value, as hex."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()
