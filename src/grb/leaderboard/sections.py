"""Any JSON-able analysis as sections of facts, tables and matrices: the taxonomy's tab of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grb.leaderboard import palette
from grb.leaderboard.text import MESSAGE_LENGTH, sanitize

MAX_ROWS, MAX_COLUMNS, MAX_SECTIONS, MAX_DEPTH = 300, 60, 80, 4
# shares, correlations and logarithms of ratios get colours; larger numbers are counts, each in a unit of its own
MAX_COLOURED = 20.0
MAX_NUMBER = 1e300

Names = tuple[str, ...]


@dataclass(frozen=True)
class Field:
    """One cell of a section: its text, what it sorts by, and its colour in a matrix."""

    text: str
    number: float | None = None
    look: str = ""


@dataclass(frozen=True)
class Section:
    """A titled table; a matrix has a scale of colours."""

    title: str
    headers: Names
    rows: tuple[tuple[Field, ...], ...]
    level: int = 0
    note: str = ""


def sections(analysis: Mapping[str, Any]) -> list[Section]:
    """The parts of an analysis: JSON values as one table of facts, then every list, matrix and mapping under its name.

    Numbers get their names from lists of names beside them that have the same length, so that
    ``{"datasets": [...], "perturbations": [...], "log2_ratio": [[...], ...]}`` is one matrix with named sides.
    """
    return _parts(analysis, "", 0)[:MAX_SECTIONS]


def _parts(values: Mapping[str, Any], title: str, level: int) -> list[Section]:
    lists = {str(key): tuple(value) for key, value in values.items() if _is_names(value)}
    scope = tuple(lists.values())
    facts, found = [], []
    used: set[Names] = set()
    for key, value in values.items():
        name = f"{title}: {_label(key)}" if title else _title(key)
        if _is_scalar(value):
            facts.append((Field(_label(key)), _field(value)))
        elif str(key) not in lists:
            found += _part(name, value, level, scope, used)
    for key, names in lists.items():
        if names not in used:
            found.append(
                Section(f"{title}: {_label(key)}" if title else _title(key), ("value",), _column(names), level)
            )
    if facts:
        found.insert(0, Section(title or "Facts", ("what", "value"), tuple(facts[:MAX_ROWS]), level))
    return found


def _part(name: str, value: Any, level: int, scope: tuple[Names, ...], used: set[Names]) -> list[Section]:
    if isinstance(value, Mapping):
        if value and all(isinstance(row, Mapping) and _are_numbers(row.values()) for row in value.values()):
            columns = tuple(dict.fromkeys(str(key) for row in value.values() for key in row))
            body = [[row.get(column) for column in columns] for row in value.values()]
            return [_matrix(name, tuple(map(str, value)), columns, body, level)]
        if (
            value
            and all(_is_scalar(item) or _is_scalar_list(item) for item in value.values())
            and not _holds_axes(value)
        ):
            rows = tuple((Field(sanitize(key)), _field(item)) for key, item in list(value.items())[:MAX_ROWS])
            return [Section(name, ("name", "value"), rows, level)]
        if level < MAX_DEPTH:
            return _parts(value, name, level + 1)
        return [Section(name, ("value",), ((_field(value),),), level)]
    if not isinstance(value, Sequence) or not value:
        return []
    return [_listed(name, value, level, scope, used)]


def _holds_axes(value: Mapping[str, Any]) -> bool:
    """Whether a list of names in it names the numbers of another list."""
    lengths = {len(item) for item in value.values() if _is_names(item)}
    return any(not _is_scalar(item) and _are_numbers(item) and len(item) in lengths for item in value.values())


def _listed(name: str, value: Sequence[Any], level: int, scope: tuple[Names, ...], used: set[Names]) -> Section:
    rows = list(value)[:MAX_ROWS]
    if all(isinstance(row, Mapping) for row in rows):
        headers = list(dict.fromkeys(str(key) for row in rows for key in row))[:MAX_COLUMNS]
        cells = tuple(tuple(_field(row.get(header)) for header in headers) for row in rows)
        return Section(name, tuple(_label(header) for header in headers), cells, level)
    if all(isinstance(row, Sequence) and not isinstance(row, str) for row in rows):
        widths = {len(row) for row in rows}
        left = next((names for names in scope if len(names) == len(value)), None)
        above = next((names for names in scope if widths == {len(names)} and names is not left), None)
        if above is None and left is not None and widths == {len(left)}:
            above = left
        if above is not None and all(_are_numbers(row) for row in rows):
            used.update(names for names in (left, above) if names is not None)
            left = left or tuple(str(place + 1) for place in range(len(rows)))
            return _matrix(name, left, above, rows, level)
        width = min(max(widths), MAX_COLUMNS)
        cells = tuple(tuple(_field(row[place] if place < len(row) else None) for place in range(width)) for row in rows)
        return Section(name, tuple(str(place + 1) for place in range(width)), cells, level)
    beside = next((names for names in scope if len(names) == len(value)), None)
    if beside is not None and _are_numbers(value):
        used.add(beside)
        cells = tuple((Field(sanitize(label)), _field(item)) for label, item in zip(beside, rows))
        return Section(name, ("name", "value"), cells, level)
    numbered = ((Field(str(place + 1), place + 1.0), _field(row)) for place, row in enumerate(rows))
    return Section(name, ("", "value"), tuple(numbered), level)


def _column(names: Names) -> tuple[tuple[Field, ...], ...]:
    return tuple((Field(sanitize(name, MESSAGE_LENGTH)),) for name in names[:MAX_ROWS])


def _matrix(name: str, rows: Names, columns: Names, body: Sequence[Sequence[Any]], level: int) -> Section:
    numbers = [field.number for row in body for field in map(_field, row) if field.number is not None]
    low, high = (min(numbers), max(numbers)) if numbers else (0.0, 0.0)
    coloured = bool(numbers) and max(-low, high) <= MAX_COLOURED
    cells = tuple(
        (Field(sanitize(row)), *(_entry(item, low, high, coloured) for item in list(values)[:MAX_COLUMNS]))
        for row, values in list(zip(rows, body))[:MAX_ROWS]
    )
    note = f"Colours from {low:.3g} to {high:.3g}." if coloured else ""
    return Section(name, ("name", *(sanitize(column) for column in columns[:MAX_COLUMNS])), cells, level, note)


def _entry(item: Any, low: float, high: float, coloured: bool) -> Field:
    field = _field(item)
    if not coloured or field.number is None:
        return field
    return Field(f"{item:.3f}", field.number, _look(field.number, low, high))


def _look(item: float, low: float, high: float) -> str:
    top = palette.STEPS - 1
    if low < 0 < high:
        reach = max(-low, high)
        return f"d{round((item + reach) / (2 * reach) * top)}"
    return f"s{round((item - low) / (high - low) * top) if high > low else top // 2}"


def _field(value: Any) -> Field:
    if isinstance(value, bool):
        return Field("yes" if value else "no", float(value))
    if isinstance(value, int | float):
        if abs(value) > MAX_NUMBER or value != value:
            return Field(sanitize(value) if isinstance(value, int) else "-")
        return Field(str(value) if isinstance(value, int) else f"{value:.4g}", float(value))
    if value is None:
        return Field("-")
    if isinstance(value, list | tuple):
        return Field(sanitize(", ".join(_field(item).text for item in value[:100]), MESSAGE_LENGTH))
    if isinstance(value, Mapping):
        pairs = list(value.items())[:100]
        return Field(sanitize(", ".join(f"{key}: {_field(item).text}" for key, item in pairs), MESSAGE_LENGTH))
    return Field(sanitize(value, MESSAGE_LENGTH))


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _is_scalar_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(_is_scalar(item) for item in value)


def _is_names(value: Any) -> bool:
    """A list of different names."""
    return (
        isinstance(value, list | tuple)
        and len(value) > 1
        and all(isinstance(item, str) for item in value)
        and len(set(value)) == len(value)
    )


def _are_numbers(values: Any) -> bool:
    listed = list(values)
    return bool(listed) and all(
        item is None or (isinstance(item, int | float) and not isinstance(item, bool)) for item in listed
    )


def _label(key: Any) -> str:
    return sanitize(str(key).replace("_", " "))


def _title(key: Any) -> str:
    label = _label(key)
    return label[:1].upper() + label[1:]
