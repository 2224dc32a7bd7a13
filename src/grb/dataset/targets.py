"""Which test nodes are attacked and scored: by id, mask, class, or a feature column; all of them by default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from grb.errors import DataError, UnknownName
from grb.graph import CSR

if TYPE_CHECKING:
    from grb.dataset.dataset import Dataset

Targets = str | Sequence[Any] | Tensor | np.ndarray[Any, Any]


def select_targets(dataset: Dataset, given: Targets, mode: str | None = None) -> Tensor:
    """Ids of the chosen test nodes of a difficulty, ascending, [t]; refuses a choice without any.

    Args:
        dataset: With one graph of nodes to classify.
        given: Original ids of nodes (or their numbers), a boolean mask [n], ``class=NAME``, or the name of a feature column
            whose value is not zero, also as ``column=value``. Ids must be test nodes; the others choose among these.
        mode: Difficulty; the dataset's own if None.
    """
    if dataset.graph.ptr is not None:
        raise DataError(f"targets are nodes of one graph, but '{dataset.name}' is a collection; leave targets out")
    among = dataset.test_ids(mode or dataset.mode)
    if isinstance(given, str):
        chosen = describe_nodes(dataset, given)
    else:
        array = given.detach().cpu().numpy() if isinstance(given, Tensor) else np.asarray(given)
        if array.dtype == np.bool_:
            if array.shape != (dataset.num_nodes,):
                raise DataError(
                    f"the mask of targets has shape {list(array.shape)}, but [{dataset.num_nodes}] is needed"
                )
            chosen = torch.from_numpy(array.copy())
        else:
            return _listed(dataset, array, among)
    found = among[chosen[among]].sort().values
    if not len(found):
        raise DataError(f"targets {_shown(given)} choose none of the {len(among)} test nodes of '{dataset.name}'")
    return found


def _listed(dataset: Dataset, array: Any, among: Tensor) -> Tensor:
    if array.ndim != 1 or not len(array):
        raise DataError(f"targets have shape {list(array.shape)}, but a list of ids, not empty, is needed")
    if array.dtype.kind in "iu":
        ids = torch.from_numpy(array.astype(np.int64))
        bad = ids[(ids < 0) | (ids >= dataset.num_nodes)]
        if len(bad):
            raise DataError(f"targets name node {int(bad[0])}, but there are nodes 0 to {dataset.num_nodes - 1}")
    else:
        ids = dataset.names.find_nodes([str(each) for each in array.tolist()], dataset.num_nodes)
    outside = ids[~torch.isin(ids, among)]
    if len(outside):
        name = dataset.names.of_nodes([int(outside[0])])[0]
        raise DataError(
            f"node {name} is a target and no test node: {len(outside)} of {len(ids)} targets were trained on or are in no "
            "part; choose among test nodes"
        )
    return ids.unique()


def describe_nodes(dataset: Dataset, text: str) -> Tensor:
    """Nodes that a text such as ``class=fraud``, ``vip`` or ``country=DE`` describes, [n] booleans."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if name.lower() == "class" and equals:
        if dataset.labels.dim() != 1:
            raise DataError(f"targets are '{text}', but nodes of '{dataset.name}' have several labels; give ids")
        names = [dataset.names.of_class(number) for number in range(dataset.num_classes)]
        numbers = [str(number) for number in range(dataset.num_classes)]
        known = names if value in names else numbers
        if value not in known:
            raise UnknownName("class", value, names, advice=f"Allowed: {', '.join(names[:20])}.")
        return dataset.labels == known.index(value)
    columns = list(dataset.names.features or ())
    if text.strip() in columns:  # a column of 0 and 1 such as country=DE
        return _column(dataset, columns.index(text.strip())) != 0
    if name not in columns:
        advice = f"Give class=NAME, a mask, ids, or a column: {', '.join(columns[:10]) or 'this dataset has no names'}."
        raise UnknownName("column for targets", name, columns, advice=advice)
    column = _column(dataset, columns.index(name))
    if not equals:
        return column != 0
    try:
        return (column - float(value)).abs() <= 1e-6 * max(1.0, abs(float(value)))
    except ValueError:
        raise DataError(f"targets are '{text}', but column '{name}' holds numbers; give one as in {name}=1") from None


def _column(dataset: Dataset, number: int) -> Tensor:
    x = dataset.graph.x
    if isinstance(x, CSR):
        unit = torch.zeros(x.shape[1], 1)
        unit[number] = 1
        return (x @ unit).flatten()
    return x[:, number]


def _shown(given: Any) -> str:
    return f"'{given}'" if isinstance(given, str) else f"({type(given).__name__})"
