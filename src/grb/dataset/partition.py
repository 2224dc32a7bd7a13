"""Which nodes train, validate and test: a checked split, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from grb.dataset.split import difficulty_split
from grb.errors import DataError, UnknownName
from grb.graph import Graph
from grb.graph.validate import check_ids

Difficulty = Literal["easy", "medium", "hard", "full"]
DIFFICULTIES: tuple[Difficulty, ...] = ("easy", "medium", "hard", "full")


@dataclass(frozen=True, eq=False)
class Split:
    """Disjoint ids of training, validation and test nodes; the test nodes by difficulty, ``full`` being all of them."""

    train: Tensor
    val: Tensor
    test: Mapping[str, Tensor]

    @classmethod
    def build(cls, train: Any, val: Any, test: Mapping[str, Any], n: int) -> Split:
        """A checked split; without ``full`` the union of the other test sets becomes it."""
        unknown = set(test) - set(DIFFICULTIES)
        if unknown:
            raise UnknownName(
                "difficulty", sorted(unknown)[0], DIFFICULTIES, advice=f"Allowed: {', '.join(DIFFICULTIES)}."
            )
        parts = {name: check_ids(ids, n, f"test set '{name}'") for name, ids in test.items()}
        bands = [ids for name, ids in parts.items() if name != "full"]
        if "full" not in parts:
            parts["full"] = torch.cat(bands).sort().values if bands else torch.empty(0, dtype=torch.int64)
        elif bands and not torch.isin(torch.cat(bands), parts["full"]).all():
            raise DataError("a test set holds nodes that are not in the full test set")
        checked = cls(check_ids(train, n, "the training set"), check_ids(val, n, "the validation set"), parts)
        together = torch.cat([checked.train, checked.val, parts["full"]])
        if len(together.unique()) != len(together):
            raise DataError("training, validation and test sets overlap, but must be disjoint")
        if not len(checked.train):
            raise DataError("the training set is empty, but at least one training node is needed")
        return checked

    def tensors(self) -> list[Tensor]:
        return [self.train, self.val, *(self.test[name] for name in sorted(self.test))]


def difficulty(mode: str) -> Difficulty:
    """The name of a difficulty; any other is refused."""
    if mode not in DIFFICULTIES:
        raise UnknownName("difficulty", str(mode), DIFFICULTIES, advice=f"Allowed: {', '.join(DIFFICULTIES)}.")
    return mode


def by_degree(graph: Graph, seed: int) -> Split:
    """The paper's splitting scheme."""
    index = difficulty_split(graph.adj.degrees.numpy(), np.random.default_rng(seed))
    bands: dict[str, Any] = {band: index[f"index_test_{band}"] for band in DIFFICULTIES[:3]}  # type: ignore[literal-required]
    return Split.build(index["index_train"], index["index_val"], bands, graph.n)


def given_parts(split: Mapping[str, Any], n: int) -> Split:
    """A split from named ids or boolean masks."""
    allowed = {"train", "val", "test", *DIFFICULTIES}
    unknown = sorted(set(split) - allowed)
    if unknown:
        raise UnknownName("part of a split", unknown[0], allowed, advice=f"Allowed: {', '.join(sorted(allowed))}.")
    if "train" not in split:
        raise DataError("a split needs 'train'")
    if "test" in split and "full" in split:
        raise DataError("a split has 'test' and 'full', which are two names of the same set; give one")
    parts = {name: _ids(ids, n, name) for name, ids in split.items()}
    test = {("full" if name == "test" else name): ids for name, ids in parts.items() if name not in ("train", "val")}
    return Split.build(parts["train"], parts.get("val", []), test, n)


def _ids(given: Any, n: int, name: str) -> Any:
    array = given.detach().cpu().numpy() if isinstance(given, Tensor) else np.asarray(given)
    if array.dtype != np.bool_:
        return array
    if array.shape != (n,):
        raise DataError(f"mask '{name}' has shape {list(array.shape)}, but [{n}] is needed")
    return np.flatnonzero(array)
