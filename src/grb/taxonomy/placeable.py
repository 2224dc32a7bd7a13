"""Whether a dataset can be compared with the published ones at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from grb.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor

    from grb.graph import CSR, Graph

# labelled examples that two classes need at least, in all and each: training, validation and test need one of both
EXAMPLES, PER_CLASS = 20, 3


def check_placeable(graph: Graph) -> list[str]:
    """Refuse a dataset that cannot be compared with graph datasets; return notes on what limits the comparison.

    Args:
        graph: Graph with its labels: one per graph of a collection, one per node, or a 0/1 matrix of either.
    """
    if graph.y is None:
        raise DataError("the dataset has no labels, so no AUROC can be measured; give it labels")
    if graph.y.dim() == 1 and graph.y.is_floating_point():
        raise DataError(
            "the labels are values to predict, but the published results are of classes, and tasks are not mixed; "
            "compare profiles of regressions with each other"
        )
    if graph.num_edges == 0:
        raise DataError(
            "the dataset has no edges, so no perturbation of its structure can change anything: it is a table, not a graph"
        )
    _check_labels(graph.y.detach().cpu().numpy())
    notes = []
    if graph.num_features == 0 or _constant(graph.x):
        notes.append(
            "all nodes have the same features, so NoNodeFtrs and the band passes can take nothing away; "
            "compare it only with datasets without node features"
        )
    return notes


def _check_labels(labels: Any) -> None:
    if labels.ndim == 2:
        known = [column[np.isfinite(column) & (column >= 0)].astype(np.int64) for column in labels.T]
        if not any((np.bincount(column, minlength=2) >= PER_CLASS).all() for column in known):
            raise DataError(
                f"no label has {PER_CLASS} positive and {PER_CLASS} negative examples, so no AUROC can be measured"
            )
        return
    counts = np.bincount(labels[labels >= 0].astype(np.int64))
    if np.count_nonzero(counts) < 2:
        raise DataError("all labelled examples are of one class, but an AUROC needs at least two classes")
    large = int(np.count_nonzero(counts >= PER_CLASS))
    if counts.sum() < EXAMPLES or large < 2:
        raise DataError(
            f"the dataset is too small: it has {int(counts.sum())} labelled examples and {large} classes with at least "
            f"{PER_CLASS} of them, but {EXAMPLES} and 2 are needed for training, validation and test"
        )


def _constant(x: Tensor | CSR) -> bool:
    """Whether all rows are equal; of sparse features the first thousand are compared."""
    import torch

    if not isinstance(x, torch.Tensor):
        x = x.rows(torch.arange(min(x.shape[0], 1000))) @ torch.eye(x.shape[1])
    return bool((x == x[:1]).all())


def reference_for(graph: Graph) -> str:
    """Return which published taxonomy a dataset is compared with: single graphs with single graphs."""
    return "transductive" if graph.ptr is None else "inductive"
