"""Poisoning: the edit comes before the training."""

from __future__ import annotations

from grb.dataset import Dataset
from grb.errors import DataError
from grb.graph import GraphEdit


def poisoned(dataset: Dataset, edit: GraphEdit) -> Dataset:
    """The dataset as a defender gets it after an attack on its graph: every view shows the edited edges and features.

    Labels and split stay as they are; injected nodes belong to no part of the split and have no label. Train on the
    result, and evaluate on it: ``grb.train("gcn", poisoned(dataset, result.edit))``.

    Args:
        dataset: Before the attack.
        edit: An edit of its whole graph.
    """
    if edit.cut:
        raise DataError(f"the edit removes {edit.cut} nodes, but a poisoned dataset keeps them all")
    other = Dataset.__new__(type(dataset))
    # the scipy matrix is remembered by the dataset it was made for
    other.__dict__.update({key: value for key, value in dataset.__dict__.items() if key != "adj"})
    other.__dict__["graph"] = dataset.graph.apply(edit)
    changes = edit.add.shape[1] + edit.drop.shape[1]
    other.__dict__["notes"] = (*dataset.notes, f"poisoned: {changes} edges changed, {edit.num_new} nodes injected")
    return other
