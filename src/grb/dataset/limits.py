"""What an attacker may do to a dataset, in the names and units of the user's own files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from grb.constraints import EVERYBODY, TARGETS, Constraints
from grb.dataset.dataset import Dataset
from grb.dataset.targets import describe_nodes
from grb.errors import DataError, UnknownName


def constraints_of(
    dataset: Dataset,
    *,
    ranges: Mapping[str | int, Sequence[float]] | None = None,
    fixed: Sequence[str | int] = (),
    integer: Sequence[str | int] = (),
    binary: Sequence[str | int] = (),
    one_hot: Sequence[Sequence[str | int]] = (),
    connect: str | Sequence[Any] = EVERYBODY,
    **others: Any,
) -> Constraints:
    """Constraints in the names and units of the user's own files, for the features that models see.

    Args:
        dataset: With the names of its columns and its normalisation; arctan and tanh take ranges, but no grids.
        ranges: Lowest and highest raw value by column.
        fixed: Columns that nobody may change.
        integer: Columns of whole numbers.
        binary: Columns of 0 and 1.
        one_hot: Groups of columns of which exactly one is 1; ``country`` stands for ``country=DE``, ``country=FR``, ...
        connect: ``everybody``, ``targets``, original ids, or what ``targets`` takes (``class=NAME``, a column).
        others: ``max_degree``, ``node_cost``, ``edge_cost``, ``feature_cost``, ``cost``.
    """
    scale = dataset.feature_scale

    def column(name: str | int) -> int:
        if isinstance(name, int):
            if not 0 <= name < dataset.num_features:
                raise DataError(
                    f"there is no column {name}; the dataset has the columns 0 to {dataset.num_features - 1}"
                )
            return name
        names = list(dataset.names.features or ())
        if name not in names:
            raise UnknownName(
                "column", name, names, advice=f"Allowed: {', '.join(names[:12]) or 'numbers of columns'}."
            )
        return names.index(name)

    def seen(at: int, value: float) -> float:
        row = torch.zeros(1, dataset.num_features)
        row[0, at] = value
        return float(scale.apply(row)[0, at])

    if integer and scale.kind in ("arctan", "tanh"):
        raise DataError(
            f"whole numbers are no grid after feat_norm='{scale.kind}'; use 'standardise', 'linear' or None"
        )
    groups = []
    for group in one_hot:
        listed = [column(each) for each in _members(group, dataset)]
        groups.append((tuple(listed), tuple(seen(at, 0.0) for at in listed), tuple(seen(at, 1.0) for at in listed)))
    chosen: str | tuple[int, ...]
    if isinstance(connect, str) and connect in (EVERYBODY, TARGETS):
        chosen = connect
    elif isinstance(connect, str):
        chosen = tuple(describe_nodes(dataset, connect).nonzero().flatten().tolist())
    else:
        chosen = tuple(dataset.names.find_nodes([str(each) for each in connect], dataset.num_nodes).tolist())
    numbers = [column(each) for each in integer]
    return Constraints(
        ranges=tuple(
            (at, seen(at, low), seen(at, high))
            for at, (low, high) in ((column(k), v) for k, v in (ranges or {}).items())
        ),
        fixed=tuple(column(each) for each in fixed),
        grids=tuple((at, seen(at, 0.0), seen(at, 1.0) - seen(at, 0.0)) for at in numbers),
        choices=tuple((float(at), seen(at, 0.0), seen(at, 1.0)) for at in (column(each) for each in binary)),
        groups=tuple(groups),
        connect=chosen,
        **others,
    )


def _members(group: Sequence[str | int] | str, dataset: Dataset) -> Sequence[str | int]:
    if not isinstance(group, str):
        return group
    found = [name for name in dataset.names.features or () if name.startswith(f"{group}=")]
    if not found:
        raise DataError(f"no columns are called '{group}=...', so that '{group}' is no one-hot group")
    return found
