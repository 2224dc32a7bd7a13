"""Which columns of a table mean what: given by name, or recognised by the names that people use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from grb.errors import DataError, UnknownName

SOURCE = ("source", "src", "from", "u", "head", "start", "node1", "id_1", "citing")
TARGET = ("target", "dst", "to", "v", "tail", "end", "node2", "id_2", "cited")
WEIGHT = ("weight", "w", "value", "edge_weight")
ID = ("id", "node", "node_id", "name", "key")
LABEL = ("label", "labels", "y", "class", "category")
SPLIT = ("split", "part", "set")
# account_id, userId, customer-id, uuid: an identifier, whatever it identifies
_IDENTIFIER = re.compile(r".*[_\- .]id|.*(uuid|guid)|(account|user|customer|client|entity|item|person|paper|device)id?")


@dataclass(frozen=True)
class Columns:
    """Names of the columns that are no features; None for those to be recognised.

    Args:
        id: Name of the node.
        label: Its class.
        split: Its part: train, val, test, easy, medium or hard.
        time: A number or a date: the earliest nodes train, the latest test.
        source: One end of an edge.
        target: The other end.
        weight: Weight of an edge.
    """

    id: str | None = None
    label: str | None = None
    split: str | None = None
    time: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, str | None] | Columns | None) -> Columns:
        """From a mapping such as ``{"id": "account", "label": "fraud"}``; unknown roles are refused."""
        if given is None or isinstance(given, Columns):
            return given or cls()
        roles = [each.name for each in fields(cls)]
        for role in given:
            if role not in roles:
                raise UnknownName("role of a column", str(role), roles, advice=f"Allowed: {', '.join(roles)}.")
        return cls(**given)

    def find(self, role: str, header: Sequence[str] | None, where: object) -> int | None:
        """Place of the column that the user named for a role; None if none was named, refused if there is no such column."""
        name = getattr(self, role)
        if name is None:
            return None
        wanted = [str(each).strip().lower() for each in header or ()]
        if name.strip().lower() not in wanted:
            shown = ", ".join(wanted[:12]) or "no header"
            raise DataError(f"{where} has no column '{name}' for the {role}; it has {shown}")
        return wanted.index(name.strip().lower())


def identifiers(header: Iterable[str]) -> list[int]:
    """Places of columns whose names say that they identify something.

    >>> identifiers(["amount", "account_id", "paid", "deviceid"])
    [1, 3]
    """
    return [at for at, name in enumerate(header) if _IDENTIFIER.fullmatch(str(name).strip().lower())]
