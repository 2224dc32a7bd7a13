"""Names that nodes, classes and features have in the user's own files, kept beside the numbers that models see."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grb.errors import DataError, UnknownName
from grb.metric.names import ALIASES, METRICS

Array = np.ndarray[Any, Any]
KINDS = ("nodes", "classes", "features")


@dataclass(frozen=True, eq=False)
class OriginalNames:
    """Names by position; None where they are just the numbers.

    Args:
        nodes: Names of the nodes, [n].
        classes: Names of the classes.
        features: Names of the feature columns.
    """

    nodes: Sequence[str] | None = None
    classes: Sequence[str] | None = None
    features: Sequence[str] | None = None

    def of_nodes(self, ids: Iterable[int]) -> list[str | int]:
        """The original ids of nodes; those without a name keep their number.

        >>> OriginalNames(nodes=["a", "b"]).of_nodes([1, 0, 2])
        ['b', 'a', 2]
        """
        known = self.nodes
        if known is None:
            return [int(each) for each in ids]
        return [known[int(each)] if int(each) < len(known) else int(each) for each in ids]

    def of_class(self, number: int) -> str:
        """The name of a class, or its number."""
        known = self.classes
        return str(number) if known is None or number >= len(known) else str(known[number])

    def in_metrics(self, given: Any) -> Any:
        """Metrics whose class is named, as in ``recall:fraud``, with its number, as in ``recall:1``; others as they are.

        >>> OriginalNames(classes=["honest", "fraud"]).in_metrics("recall:fraud,accuracy")
        'recall:1,accuracy'
        """
        if self.classes is None or callable(given) or not isinstance(given, Iterable):
            return given
        if isinstance(given, str):
            return ",".join(self._in_metric(part) for part in given.split(","))
        return [self._in_metric(each) if isinstance(each, str) else each for each in given]

    def _in_metric(self, text: str) -> str:
        head, _, name = text.partition(":")
        own = head.strip().lower().replace("_", "-")
        name = name.strip()
        if ALIASES.get(own, own) not in METRICS or not name or name.isdigit():
            return text
        known = [str(each) for each in self.classes or ()]
        if name not in known:
            raise UnknownName(
                "class", name, known, advice=f"Allowed: {', '.join(known[:12])}, or their numbers from 0."
            )
        return f"{head}:{known.index(name)}"

    def of_feature(self, column: int) -> str:
        """The name of a feature, or the number of its column."""
        known = self.features
        return str(column) if known is None or column >= len(known) else str(known[column])

    def find_nodes(self, names: Iterable[str | int], n: int) -> Tensor:
        """Numbers of nodes from their original ids, [m]; an unknown one is refused."""
        if self.nodes is None:
            found = [int(name) if str(name).strip().lstrip("-").isdigit() else -1 for name in names]
            known = f"0 to {n - 1}"
        else:
            where = {str(name): index for index, name in enumerate(self.nodes)}
            found = [where.get(str(name).strip(), -1) for name in names]
            known = ", ".join(map(str, self.nodes[:3])) + ", ..."
        for name, index in zip(names, found):
            if not 0 <= index < n:
                raise DataError(f"there is no node '{name}'; the dataset has the nodes {known}")
        return torch.tensor(found, dtype=torch.int64)

    def subset(self, kept: Array | Tensor) -> OriginalNames:
        """The same with some of the nodes alone."""
        if self.nodes is None:
            return OriginalNames([str(each) for each in kept.tolist()], self.classes, self.features)
        return OriginalNames([self.nodes[each] for each in kept.tolist()], self.classes, self.features)

    @property
    def is_empty(self) -> bool:
        """Whether all names are just numbers."""
        return all(getattr(self, kind) is None for kind in KINDS)

    def to_arrays(self) -> dict[str, Array]:
        """Arrays of an npz file: JSON text as bytes, no objects."""
        given = {kind: getattr(self, kind) for kind in KINDS if getattr(self, kind) is not None}
        return {
            kind: np.frombuffer(json.dumps(list(map(str, names))).encode(), dtype=np.uint8)
            for kind, names in given.items()
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, Array], sizes: dict[str, int], where: object) -> OriginalNames:
        """Back from :meth:`to_arrays`; names that do not fit the sizes are refused."""
        found: dict[str, list[str]] = {}
        for kind, stored in arrays.items():
            try:
                names = json.loads(stored.astype(np.uint8).tobytes())
            except (ValueError, RecursionError):
                names = None
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise DataError(f"'{kind}' of {where} is no list of names; get the dataset again")
            # a class may have a name and no member
            if len(names) != sizes[kind] and not (kind == "classes" and len(names) > sizes[kind]):
                raise DataError(f"{where} names {len(names)} {kind}, but the dataset has {sizes[kind]}")
            found[kind] = names
        return cls(**found)
