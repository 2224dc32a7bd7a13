"""Splits by number: those that a dataset comes with, folds, random ones, difficulties; run r of a study has split r."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from grb.dataset.partition import DIFFICULTIES, Split
from grb.dataset.split import difficulty_split
from grb.errors import DataError

# the paper's, so that folds are those of the published results
FOLDS, FOLD_SEED = 10, 123


class Scheme(Protocol):
    """Makes the split of a number; equal numbers, equal splits."""

    @property
    def words(self) -> str:
        """What it does, for people and for a dataset's fingerprint."""

    def about(self, number: int) -> str:
        """Which split a number is, for people."""

    def __call__(self, number: int) -> Split: ...


@dataclass(frozen=True, eq=False)
class Predefined:
    """The splits that a dataset comes with, in turn."""

    splits: Sequence[Split]

    def __post_init__(self) -> None:
        if not self.splits:
            raise DataError("there are no predefined splits to take turns with")

    @property
    def words(self) -> str:
        digest = hashlib.sha256()
        for split in self.splits:
            for ids in split.tensors():
                digest.update(f"{len(ids)};".encode() + ids.numpy().astype("<i8").tobytes())
        return f"predefined, {len(self.splits)} in turn ({digest.hexdigest()[:12]})"

    def about(self, number: int) -> str:
        again, place = divmod(_checked(number), len(self.splits))
        return f"predefined split {place} of 0 to {len(self.splits) - 1}{', once more' if again else ''}"

    def __call__(self, number: int) -> Split:
        return self.splits[_checked(number) % len(self.splits)]


@dataclass(frozen=True, eq=False)
class Folds:
    """Stratified folds: fold ``number`` tests, the next one validates, the others train.

    After all folds have had their turn they are drawn anew, from the next seed.

    Args:
        labels: Class of every item, [items]; rows of several labels are not stratified.
        count: Number of folds.
        seed: Of the first drawing; 123 gives the folds of the published results.
    """

    labels: Tensor
    count: int = FOLDS
    seed: int = FOLD_SEED

    def __post_init__(self) -> None:
        if not 3 <= self.count <= len(self.labels):
            raise DataError(f"{self.count} folds of {len(self.labels)} items cannot be made; 3 to that many can")

    @property
    def words(self) -> str:
        kind = "stratified folds" if self.labels.dim() == 1 else "folds"
        return f"{self.count} {kind}, seed {self.seed}"

    def about(self, number: int) -> str:
        again, fold = divmod(_checked(number), self.count)
        return f"fold {fold} of 0 to {self.count - 1}{f', drawn anew from seed {self.seed + again}' if again else ''}"

    def __call__(self, number: int) -> Split:
        again, fold = divmod(_checked(number), self.count)
        tests = _folds(self.labels.numpy(), self.count, self.seed + again)
        test, val = tests[fold], tests[(fold + 1) % self.count]
        train = np.setdiff1d(np.arange(len(self.labels)), np.concatenate([test, val]))
        return Split.build(train, val, {"full": test}, len(self.labels))


@dataclass(frozen=True)
class Random:
    """A new draw of every number: 80 % train, 10 % validate, 10 % test.

    Args:
        items: How many there are.
        train: Share of training items.
        val: Share of validation items.
    """

    items: int
    train: float = 0.8
    val: float = 0.1

    def __post_init__(self) -> None:
        if min(self._sizes()) < 1:
            raise DataError(f"{self.items} items are too few for a random split; 10 or more are needed")

    @property
    def words(self) -> str:
        return f"random per seed, {self.train:g} / {self.val:g} / {1 - self.train - self.val:g}"

    def _sizes(self) -> tuple[int, int, int]:
        train, val = int(self.train * self.items), int(self.val * self.items)
        return train, val, self.items - train - val

    def about(self, number: int) -> str:
        return f"random split of seed {_checked(number)}"

    def __call__(self, number: int) -> Split:
        order = torch.randperm(self.items, generator=torch.Generator().manual_seed(_checked(number)))
        train, val, test = (part.sort().values for part in order.split(self._sizes()))
        return Split.build(train, val, {"full": test}, self.items)


@dataclass(frozen=True, eq=False)
class ByDegree:
    """The papers' easy, medium and hard test nodes of any graph, drawn anew for every number.

    Args:
        degrees: Neighbours of every node, [n].
        nodes: Those that may be in the split: others have no label.
        seed: Of split 0; split r has this plus r.
    """

    degrees: Tensor
    nodes: Tensor
    seed: int = 0

    @property
    def words(self) -> str:
        return f"easy, medium and hard by degree (60 / 10 / 3 x 10 %), seed {self.seed}"

    def about(self, number: int) -> str:
        return f"easy, medium and hard nodes drawn from seed {self.seed + _checked(number)}"

    def __call__(self, number: int) -> Split:
        generator = np.random.default_rng(self.seed + _checked(number))
        index = difficulty_split(self.degrees[self.nodes].numpy(), generator)
        nodes = self.nodes.numpy()
        bands: dict[str, np.ndarray] = {band: nodes[index[f"index_test_{band}"]] for band in DIFFICULTIES[:3]}  # type: ignore[literal-required]
        return Split.build(nodes[index["index_train"]], nodes[index["index_val"]], bands, len(self.degrees))


def _folds(labels: np.ndarray, count: int, seed: int) -> list[np.ndarray]:
    """Ids of the test items of every fold."""
    import warnings

    from sklearn.model_selection import KFold, StratifiedKFold

    maker = StratifiedKFold if labels.ndim == 1 else KFold
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class with fewer members than folds is missing in some of them
        try:
            return [test for _, test in maker(count, shuffle=True, random_state=seed).split(labels, labels)]
        except ValueError:
            raise DataError(f"no class has {count} items, as many as there are folds; take fewer folds") from None


def _checked(number: int) -> int:
    if number < 0:
        raise DataError(f"the number of a split is {number}, but it must be 0 or more")
    return number
