"""Frozen dataclasses as JSON values and back: one strict reader for everything that a file may hold."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from grb.errors import DataError

Value = TypeVar("Value")
Reader = Callable[[Any], Any]


@dataclass(frozen=True)
class Range:
    """Bounds of a number, both included; for ``Annotated[int, Range(0)]``."""

    low: float
    high: float = math.inf


# what numpy and C take; Python's own whole numbers have no end
LARGEST = 2**63 - 1
Count = Annotated[int, Range(0)]
Fraction = Annotated[float, Range(0, 1)]


def to_dict(value: Any) -> Any:
    """A value as JSON holds it: dataclasses and mappings become dicts, sequences lists.

    Fields that a dataclass names in ``OMITTED`` are left out where they are None, as in files from before they were there.
    """
    if is_dataclass(value) and not isinstance(value, type):
        omitted = getattr(value, "OMITTED", ())
        return {
            name: to_dict(own)
            for name in value.__dataclass_fields__
            if (own := getattr(value, name)) is not None or name not in omitted
        }
    if isinstance(value, Mapping):
        return {str(key): to_dict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_dict(item) for item in value]
    return value


def from_dict(cls: type[Value], values: Any, what: str) -> Value:
    """Back from :func:`to_dict`; a missing or unknown field, another type, NaN or a number out of bounds is refused.

    Args:
        cls: A frozen dataclass whose fields are texts, numbers, booleans, literals, mappings, tuples or such dataclasses.
        values: What a file holds.
        what: What it should be, for the refusal.

    >>> @dataclass(frozen=True)
    ... class Point:
    ...     x: float
    ...     name: str = ""
    >>> from_dict(Point, {"x": 1.5, "name": "a"}, "a point")
    Point(x=1.5, name='a')
    """
    try:
        kind: Any = cls
        found: Value = _reader(kind)(values)
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"this is not {what} ({' '.join(str(error).split())[:100]})") from None
    return found


def to_versioned(value: Any, version: int) -> dict[str, Any]:
    """As :func:`to_dict`, with the version of the format in front."""
    return {"format": version, **to_dict(value)}


def from_versioned(cls: type[Value], values: Any, version: int, what: str) -> Value:
    """Back from :func:`to_versioned`; another version is refused."""
    given = dict(values) if isinstance(values, Mapping) else {}
    if given.pop("format", None) != version:
        raise DataError(f"this is not {what} of format {version}")
    return from_dict(cls, given, f"{what} of format {version}")


@cache
def _reader(kind: Any) -> Reader:
    """The function that reads values of one type; made once per type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return lambda value: value
    if origin is Annotated:
        return _bounded(_reader(arguments[0]), arguments[1])
    if origin is Literal:
        return _literal(arguments)
    if origin in (Union, types.UnionType):
        (inner,) = [each for each in arguments if each is not types.NoneType]
        read = _reader(inner)
        return lambda value: None if value is None else read(value)
    if origin is tuple:
        return _tuple(arguments)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(_reader(arguments[0]), _reader(arguments[1]))
    if is_dataclass(kind):
        return _dataclass(kind)
    return _scalar(kind)


def _scalar(kind: Any) -> Reader:
    def read(value: Any) -> Any:
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
            raise TypeError(f"{kind.__name__} expected, got {type(value).__name__}")
        if kind is float and not math.isfinite(value):
            raise ValueError(f"a finite number expected, got {value}")
        if kind is int and not -LARGEST <= value <= LARGEST:
            raise ValueError(f"a whole number of at most 63 bits expected, got one of {value.bit_length()}")
        return value

    return read


def _bounded(read: Reader, bounds: Range) -> Reader:
    def bounded(value: Any) -> Any:
        number = read(value)
        if not bounds.low <= number <= bounds.high:
            raise ValueError(f"a number from {bounds.low:g} to {bounds.high:g} expected, got {str(number)[:40]}")
        return number

    return bounded


def _literal(allowed: Sequence[str]) -> Reader:
    def read(value: Any) -> Any:
        if value not in allowed:
            raise ValueError(f"{str(value)[:40]} is none of {', '.join(allowed)}")
        return value

    return read


def _tuple(kinds: Sequence[Any]) -> Reader:
    repeated = len(kinds) == 2 and kinds[1] is Ellipsis
    readers = [_reader(kind) for kind in (kinds[:1] if repeated else kinds)]

    def read(value: Any) -> Any:
        if not isinstance(value, list | tuple) or (not repeated and len(value) != len(readers)):
            raise TypeError(f"a list expected, got {str(value)[:40]}")
        return tuple(readers[0 if repeated else number](item) for number, item in enumerate(value))

    return read


def _mapping(read_key: Reader, read_value: Reader) -> Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise TypeError(f"a mapping expected, got {type(value).__name__}")
        return {read_key(key): read_value(item) for key, item in value.items()}

    return read


def _dataclass(kind: Any) -> Reader:
    hints = get_type_hints(kind, include_extras=True)
    readers = {each.name: _reader(hints[each.name]) for each in fields(kind)}
    required = [each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING]

    def read(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise TypeError(f"a mapping expected, got {type(value).__name__}")
        if unknown := value.keys() - readers.keys():
            raise ValueError(f"unknown field '{min(map(str, unknown))[:40]}'")
        if missing := [name for name in required if name not in value]:
            raise ValueError(f"no field '{missing[0]}'")
        made: dict[str, Any] = {}
        for name, item in value.items():
            try:
                made[name] = readers[name](item)
            except (TypeError, ValueError) as error:
                raise ValueError(f"{name}: {error}") from None
        return kind(**made)

    return read
