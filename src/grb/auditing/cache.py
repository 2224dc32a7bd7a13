"""What an audit has done already: one JSON file, and one edit, per step; running again goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from grb.atomic import write_atomic
from grb.errors import DataError, GRBError
from grb.graph import GraphEdit

FORMAT = 1


class Cache:
    """Steps of audits by the hash of all that they depend on; in a directory, or in memory without one.

    Args:
        place: The directory; it is made if it is missing.
    """

    def __init__(self, place: str | os.PathLike[str] | None = None) -> None:
        self.place = None if place is None else Path(place)
        self.memory: dict[str, tuple[Any, GraphEdit | None]] = {}
        self.hits = 0
        if self.place is not None and self.place.exists() and not self.place.is_dir():
            raise DataError(f"{self.place} is a file, but a directory for the steps of audits is needed")

    def step(
        self, parts: Mapping[str, Any], make: Callable[[], tuple[Any, GraphEdit | None]]
    ) -> tuple[Any, GraphEdit | None]:
        """The JSON value and the edit of a step, made if they are not there; a broken file is made again.

        Args:
            parts: JSON values that the step depends on.
            make: Makes them.
        """
        text = json.dumps({"format": FORMAT, **parts}, sort_keys=True, allow_nan=False)
        key = hashlib.sha256(text.encode()).hexdigest()
        found = self.memory.get(key) or self._read(key)
        if found is not None:
            self.hits += 1
            self.memory[key] = found
            return found
        value, edit = make()
        self.memory[key] = (value, edit)
        if self.place is not None:
            if edit is not None:
                edit.save(self.place / f"{key}.npz")
            # the value last: a step is done when it is there
            content = json.dumps({"value": value, "edit": edit is not None}, sort_keys=True, allow_nan=False)
            write_atomic(self.place / f"{key}.json", content.encode())
        return value, edit

    def _read(self, key: str) -> tuple[Any, GraphEdit | None] | None:
        if self.place is None or not (self.place / f"{key}.json").is_file():
            return None
        try:
            stored = json.loads((self.place / f"{key}.json").read_text(encoding="utf-8"))
            edit = GraphEdit.load(self.place / f"{key}.npz") if stored["edit"] else None
            return stored["value"], edit
        except (OSError, ValueError, KeyError, TypeError, GRBError):
            return None
