"""Parts of the long studies: results as JSON lines that a killed run can take up again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


class Results:
    """One JSON object per line; a cell that is there already is not computed again."""

    def __init__(self, path: str | Path, key: Iterable[str]) -> None:
        folder = os.environ.get("GRB_BENCH_RESULTS")  # `make bench` leaves the rows of docs/results as they are
        self.path = Path(path) if folder is None else Path(folder) / Path(path).name
        self.key = tuple(key)
        self.rows: list[dict[str, Any]] = []
        if self.path.exists():
            lines = self.path.read_text().splitlines()
            self.rows = [json.loads(line) for line in lines if line.endswith("}")]

    def has(self, **cell: Any) -> bool:
        return any(all(row[name] == cell[name] for name in self.key) for row in self.rows)

    def add(self, **row: Any) -> None:
        self.rows.append(row)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as stream:
            stream.write(json.dumps(row, sort_keys=True, allow_nan=False) + "\n")
            stream.flush()
            os.fsync(stream.fileno())

    def select(self, **cell: Any) -> Iterator[dict[str, Any]]:
        return (row for row in self.rows if all(row[name] == value for name, value in cell.items()))
