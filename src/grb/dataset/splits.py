"""Splits: which nodes or graphs train, validate and test, GRB's difficulty split, and schemes that number splits.

Run r of a study has split r of a scheme: those that a dataset comes with, folds, random ones, or difficulties.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from grb.dataset.registry import DIFFICULTIES
from grb.errors import DataError, UnknownName
from grb.graph.validate import check_ids

Index = NDArray[np.int64]
# the paper's, so that folds are those of the published results
FOLDS, FOLD_SEED = 10, 123


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

    def check_labelled(self, labels: Tensor, what: str = "node") -> None:
        """Refuse a hidden label (-1) in any part; ``what`` says in the sentence what is classified."""
        used = torch.cat([self.train, self.val, self.test["full"]])
        classes = labels.dim() == 1 and not labels.is_floating_point()
        hidden = used[labels[used] < 0] if classes else used[:0]
        if len(hidden):
            raise DataError(
                f"{what} {int(hidden[0])} is in the split, but its label is hidden (-1); leave it out or give its label"
            )

    def tensors(self) -> list[Tensor]:
        """The ids of all parts in a fixed order."""
        return [self.train, self.val, *(self.test[name] for name in sorted(self.test))]


def split_from_parts(split: Mapping[str, Any], n: int) -> Split:
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


def difficulty_split(
    degrees: NDArray[Any],
    generator: np.random.Generator,
    *,
    train: float = 0.6,
    test: float = 0.1,
    cut: float = 0.05,
) -> dict[str, Index]:
    r"""Split the nodes of any graph into train, validation and easy, medium and hard test nodes.

    All nodes are ranked by degree. The ``cut`` lowest and ``cut`` highest are set aside, the rest forms three equal
    bands, and :math:`\lfloor \text{test} \cdot n \rfloor` nodes are drawn from each band. Of all nodes left over, those
    set aside included, :math:`\lfloor \text{train} \cdot n \rfloor` are train nodes and the others validation nodes.
    With the defaults the sizes are those of the shipped datasets: 1608, 268 and 3 x 268 for the 2680 nodes of grb-cora,
    1914, 320 and 3 x 319 for the 3191 nodes of grb-citeseer.

    Args:
        degrees: Number of neighbours of every node, [n].
        generator: Breaks ties between equal degrees and draws the samples; equal state, equal split.
        train: Fraction of all nodes to train on.
        test: Fraction of all nodes in *each* of the three test sets.
        cut: Fraction of all nodes set aside at each end of the ranking.

    Returns:
        Disjoint sorted ids that together hold every node once, under ``index_train``, ``index_val``,
        ``index_test_easy``, ``index_test_medium`` and ``index_test_hard``.

    Raises:
        DataError: If degrees are not a vector of finite numbers >= 0, or if a part would be empty (n < 10 by default).

    References:
        Zheng et al., *Graph Robustness Benchmark: Benchmarking the Adversarial Robustness of Graph Machine Learning*,
        NeurIPS Datasets and Benchmarks 2021, section 4.2.

    >>> split = difficulty_split(np.arange(10), np.random.default_rng(0))
    >>> [len(part) for part in split.values()]
    [6, 1, 1, 1, 1]
    """
    degrees = _checked_degrees(degrees)
    n = len(degrees)
    n_train, n_test, n_cut = (_whole(fraction, n) for fraction in (train, test, cut))
    bounds = [n_cut + band * (n - 2 * n_cut) // 3 for band in range(4)]
    _check_sizes(n, n_train, n_test, narrowest=int(min(np.diff(bounds))))

    ranked = _shuffled(np.arange(n, dtype=np.int64), generator)
    ranked = ranked[np.argsort(degrees[ranked], kind="stable")]
    easy, medium, hard = (_shuffled(ranked[lo:hi], generator)[:n_test] for lo, hi in itertools.pairwise(bounds))
    rest = _shuffled(np.setdiff1d(ranked, np.concatenate([easy, medium, hard])), generator)
    return {
        "index_train": np.sort(rest[:n_train]),
        "index_val": np.sort(rest[n_train:]),
        "index_test_easy": np.sort(easy),
        "index_test_medium": np.sort(medium),
        "index_test_hard": np.sort(hard),
    }


def _whole(fraction: float, n: int) -> int:
    if not 0 <= fraction <= 1:
        raise DataError(f"train, test and cut are fractions of all nodes between 0 and 1, got {fraction}")
    # the small term makes 0.29 of 100 nodes 29, though the product is 28.999999999999996
    return math.floor(fraction * n + 1e-9)


def _shuffled(ids: Index, generator: np.random.Generator) -> Index:
    # Sorting uniform numbers instead of generator.permutation: numpy may change the latter's stream between releases.
    return ids[np.argsort(generator.random(len(ids)), kind="stable")]


def _checked_degrees(degrees: NDArray[Any]) -> NDArray[Any]:
    degrees = np.asarray(degrees)
    if degrees.ndim != 1:
        raise DataError(f"degrees must be a vector [n], got shape {degrees.shape}")
    if degrees.dtype.kind not in "iuf":
        raise DataError(f"degrees must be numbers, got dtype {degrees.dtype}")
    if degrees.size and not (np.isfinite(degrees).all() and degrees.min() >= 0):
        raise DataError("degrees must be finite and >= 0; count the neighbours of every node, e.g. np.diff(indptr)")
    return degrees


def _check_sizes(n: int, n_train: int, n_test: int, narrowest: int) -> None:
    n_val = n - n_train - 3 * n_test
    if min(n_train, n_test, n_val) < 1:
        raise DataError(
            f"cannot split {n} nodes into train {n_train}, validation {n_val} and three test sets of {n_test}, "
            "because none may be empty; the default fractions need 10 nodes, use a larger graph or other fractions"
        )
    if n_test > narrowest:
        raise DataError(
            f"each test set takes {n_test} nodes, but a band of the degree ranking has {narrowest}; lower test or cut"
        )


class Scheme(Protocol):
    """A source of numbered splits."""

    @property
    def description(self) -> str:
        """What it does, in a few words; part of a dataset's fingerprint."""

    @property
    def num_splits(self) -> int | None:
        """Number of different splits before they repeat or are drawn anew; None without an end."""

    def about(self, number: int) -> str:
        """Which split a number is, in a few words."""

    def __call__(self, number: int) -> Split:
        """The split of a number; equal numbers, equal splits."""


@dataclass(frozen=True, eq=False)
class Predefined:
    """The splits that a dataset comes with, in turn."""

    splits: Sequence[Split]

    def __post_init__(self) -> None:
        if not self.splits:
            raise DataError("there are no predefined splits, but at least one is needed")

    @property
    def num_splits(self) -> int:
        """Number of predefined splits."""
        return len(self.splits)

    @property
    def description(self) -> str:
        """The number of splits and a digest of their ids."""
        digest = hashlib.sha256()
        for split in self.splits:
            for ids in split.tensors():
                digest.update(f"{len(ids)};".encode() + ids.numpy().astype("<i8").tobytes())
        return f"predefined, {len(self.splits)} in turn ({digest.hexdigest()[:12]})"

    def about(self, number: int) -> str:
        """Which split a number is, in a few words."""
        again, index = divmod(_checked(number), len(self.splits))
        return f"predefined split {index} of 0 to {len(self.splits) - 1}{', once more' if again else ''}"

    def __call__(self, number: int) -> Split:
        """The split of a number."""
        return self.splits[_checked(number) % len(self.splits)]


@dataclass(frozen=True, eq=False)
class Folds:
    """Stratified folds: fold ``number`` tests, the next one validates, the others train.

    After all folds have had their turn they are drawn anew, from the next seed.

    Args:
        labels: Class of every item, [items]; rows of several labels and values to predict are not stratified.
        count: Number of folds.
        seed: Random seed of the first drawing; 123 gives the folds of the published results.
    """

    labels: Tensor
    count: int = FOLDS
    seed: int = FOLD_SEED

    def __post_init__(self) -> None:
        if not 3 <= self.count <= len(self.labels):
            raise DataError(f"{self.count} folds of {len(self.labels)} items cannot be made; 3 to that many can")

    @property
    def _stratified(self) -> bool:
        return self.labels.dim() == 1 and not self.labels.is_floating_point()

    @property
    def num_splits(self) -> int:
        """Number of folds."""
        return self.count

    @property
    def description(self) -> str:
        """The number of folds and their random seed."""
        kind = "stratified folds" if self._stratified else "folds"
        return f"{self.count} {kind}, seed {self.seed}"

    def about(self, number: int) -> str:
        """Which split a number is, in a few words."""
        again, fold = divmod(_checked(number), self.count)
        return f"fold {fold} of 0 to {self.count - 1}{f', drawn anew from seed {self.seed + again}' if again else ''}"

    def __call__(self, number: int) -> Split:
        """The split of a number."""
        again, fold = divmod(_checked(number), self.count)
        tests = _folds(self.labels.numpy(), self.count, self.seed + again)
        test, val = tests[fold], tests[(fold + 1) % self.count]
        train = np.setdiff1d(np.arange(len(self.labels)), np.concatenate([test, val]))
        return Split.build(train, val, {"full": test}, len(self.labels))


@dataclass(frozen=True)
class Random:
    """A new draw of every number: 80 % train, 10 % validate, 10 % test.

    Args:
        items: Number of items.
        train: Fraction of training items.
        val: Fraction of validation items.
    """

    items: int
    train: float = 0.8
    val: float = 0.1

    def __post_init__(self) -> None:
        if min(self._sizes()) < 1:
            raise DataError(f"{self.items} items are too few for a random split; 10 or more are needed")

    num_splits = None

    @property
    def description(self) -> str:
        """The fractions of the three parts."""
        return f"random per seed, {self.train:g} / {self.val:g} / {1 - self.train - self.val:g}"

    def _sizes(self) -> tuple[int, int, int]:
        train, val = int(self.train * self.items), int(self.val * self.items)
        return train, val, self.items - train - val

    def about(self, number: int) -> str:
        """Which split a number is, in a few words."""
        return f"random split of seed {_checked(number)}"

    def __call__(self, number: int) -> Split:
        """The split of a number."""
        order = torch.randperm(self.items, generator=torch.Generator().manual_seed(_checked(number)))
        train, val, test = (part.sort().values for part in order.split(self._sizes()))
        return Split.build(train, val, {"full": test}, self.items)


@dataclass(frozen=True, eq=False)
class ByDegree:
    """The papers' easy, medium and hard test nodes of any graph, drawn anew for every number.

    Args:
        degrees: Number of neighbours of every node, [n].
        nodes: Ids of the nodes that may be in the split: others have no label.
        seed: Random seed of split 0; split r has this plus r.
    """

    degrees: Tensor
    nodes: Tensor
    seed: int = 0

    num_splits = None

    @property
    def description(self) -> str:
        """The fractions of the parts and the random seed."""
        return f"easy, medium and hard by degree (60 / 10 / 3 x 10 %), seed {self.seed}"

    def about(self, number: int) -> str:
        """Which split a number is, in a few words."""
        return f"easy, medium and hard nodes drawn from seed {self.seed + _checked(number)}"

    def __call__(self, number: int) -> Split:
        """The split of a number."""
        generator = np.random.default_rng(self.seed + _checked(number))
        index = difficulty_split(self.degrees[self.nodes].numpy(), generator)
        parts = {key: self.nodes.numpy()[ids] for key, ids in index.items()}
        bands: dict[str, Index] = {band: parts[f"index_test_{band}"] for band in DIFFICULTIES[:3]}
        return Split.build(parts["index_train"], parts["index_val"], bands, len(self.degrees))


def _folds(labels: np.ndarray, count: int, seed: int) -> list[np.ndarray]:
    """Ids of the test items of every fold."""
    import warnings

    from sklearn.model_selection import KFold, StratifiedKFold

    maker = StratifiedKFold if labels.ndim == 1 and labels.dtype.kind != "f" else KFold
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
