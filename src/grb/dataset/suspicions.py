"""What makes scores look better than they are: uneven classes, features that give the label away, the same node twice."""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from torch import Tensor

from grb.dataset.dataset import Dataset
from grb.graph import CSR

# largest class from which on accuracy hides the others
UNEVEN = 0.8
# features beyond this many are looked at in part, for each is sorted
MOST_FEATURES = 256
# of the nodes that a single threshold on one feature puts into their class
GIVEN_AWAY = 0.999


def suspicions(dataset: Dataset) -> list[str]:
    """Sentences about a dataset of one graph with one label per node; none if nothing is suspicious."""
    if dataset.graph.ptr is not None or dataset.labels.dim() != 1 or dataset.num_classes < 2:
        return []
    return [*_uneven(dataset), *_leaks(dataset), *_duplicates(dataset)]


def _uneven(dataset: Dataset) -> list[str]:
    known = dataset.labels[dataset.labels >= 0]
    counts = torch.bincount(known, minlength=dataset.num_classes)
    share = float(counts.max() / max(1, len(known)))
    if share < UNEVEN:
        return []
    top, rare = int(counts.argmax()), int(torch.where(counts > 0, counts, counts.max() + 1).argmin())
    return [
        f"class '{dataset.names.of_class(top)}' has {100 * share:.1f} % of the nodes, so that always answering it scores as "
        f"much: look at recall:{rare} or balanced-accuracy, and train with class_weights='balanced'"
    ]


def _leaks(dataset: Dataset) -> list[str]:
    """Features from which one threshold, or one value, tells a class from the rest."""
    x, y = dataset.graph.x, dataset.labels
    known = (y >= 0).nonzero().flatten()
    if isinstance(x, CSR) or len(known) < 20:
        return []
    found = []
    labels = y[known].numpy()
    for column in range(min(x.shape[1], MOST_FEATURES)):
        values = x[known, column].numpy()
        label = _given_away(values, labels, dataset.num_classes)
        if label is not None:
            found.append(f"'{dataset.names.of_feature(column)}' (class '{dataset.names.of_class(label)}')")
    if not found:
        return []
    return [f"feature {', '.join(found[:5])} tells the class alone: it may have been made from the label (leakage)"]


def _given_away(values: np.ndarray, labels: np.ndarray, classes: int) -> int | None:
    """The class whose members one threshold tells from all others, in both directions; None if there is none."""
    low = np.full(classes, np.inf)
    high = np.full(classes, -np.inf)
    np.minimum.at(low, labels, values)
    np.maximum.at(high, labels, values)
    for label in range(classes):
        own = labels == label
        if not own.any() or own.all():
            continue
        other = values[~own]
        best = max(float((other < low[label]).mean()), float((other > high[label]).mean()))
        if best >= GIVEN_AWAY:
            return label
    return None


def _duplicates(dataset: Dataset) -> list[str]:
    """Test nodes with the features and the neighbours of a training node."""
    keys = _keys(dataset)
    train = set(keys[dataset.index_train.numpy()].tolist())
    twice = [node for node in dataset.index_test.tolist() if keys[node] in train]
    if not twice:
        return []
    name = dataset.names.of_nodes(twice[:1])[0]
    return [
        f"{len(twice)} test nodes have features and neighbours of a training node, for instance {name}: the same thing may be "
        "listed twice, on both sides of the split"
    ]


def _keys(dataset: Dataset) -> np.ndarray:
    """A number per node that is equal for equal features and equal neighbours, [n]; nodes without neighbours are unlike all."""
    generator = torch.Generator().manual_seed(int(hashlib.sha256(b"duplicates").hexdigest()[:8], 16))
    weights = torch.randn(dataset.num_features, 1, generator=generator, dtype=torch.float32)
    x = dataset.graph.x
    own: Tensor = (x @ weights).flatten().double()
    names = torch.randint(2**40, (dataset.num_nodes,), generator=generator)
    adj = dataset.graph.adj
    around = torch.zeros(dataset.num_nodes, dtype=torch.int64)
    around.index_add_(0, adj.pattern.row_ids.long(), names[adj.pattern.indices.long()])
    keys = around * 31 + own.view(torch.int64) // 2**20
    alone = adj.degrees == 0
    keys[alone] = -torch.arange(1, int(alone.sum()) + 1)
    return keys.numpy()
