"""The name under which the GRB authors' package takes a graph of one's own."""

from __future__ import annotations

from typing import Any

from grb.dataset.dataset import Dataset
from grb.errors import DataError
from grb.graph import Graph


class CustomDataset(Dataset):
    """A graph of your own under the spelling of the GRB authors' package; :meth:`Dataset.from_arrays` does the same.

    Args:
        adj: A scipy sparse matrix; directed edges, self-loops and duplicates are repaired and noted in ``notes``.
        features: [n, d].
        labels: Classes [n], or a 0/1 matrix [n, labels].
        train_mask: Boolean mask [n] or ids; with ``val_mask`` and ``test_mask``, or none of the three: then the papers'
            difficulties are drawn.
        val_mask: As ``train_mask``.
        test_mask: As ``train_mask``.
        name: Shown in tables.
        mode: As in :class:`Dataset`.
        feat_norm: As in :class:`Dataset`.
        seed: Of the difficulties.

    >>> from scipy.sparse import eye_array
    >>> CustomDataset(eye_array(10, k=1), [[1.0]] * 10, [0, 1] * 5, name="path").num_test
    3
    """

    def __init__(
        self,
        adj: Any,
        features: Any,
        labels: Any,
        train_mask: Any = None,
        val_mask: Any = None,
        test_mask: Any = None,
        name: str = "custom",
        mode: str = "full",
        feat_norm: str | None = None,
        seed: int = 0,
    ) -> None:
        masks = {"train": train_mask, "val": val_mask, "test": test_mask}
        given = {part: mask for part, mask in masks.items() if mask is not None}
        if given and len(given) < len(masks):
            absent = [f"{part}_mask" for part in masks if part not in given]
            raise DataError(f"{absent[0]} is missing; give train_mask, val_mask and test_mask, or none of them")
        graph, notes = Graph.build(adj, features, labels, mode="canonicalise")
        made = Dataset._make(graph, given or None, notes, name=name, mode=mode, feat_norm=feat_norm, seed=seed)
        self.__dict__.update(made.__dict__)
