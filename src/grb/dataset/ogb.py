"""Molecules of the Open Graph Benchmark, read through its own package, which is an extra."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from grb.dataset import pyg
from grb.dataset.pathlengths import quantile_bins
from grb.dataset.raw import Array, Raw
from grb.dataset.sources import Source
from grb.errors import require

# of the subset that the taxonomy paper makes
SUBSET_SEED, SUBSET_SHARE, SUBSET_VAL, SUBSET_BINS = 42, 0.1, 50_000, 20


def read(source: Source, root: Path) -> Raw:
    """A dataset from ``<root>/<name>``, where the package keeps its raw files."""
    loaders = require("ogb.graphproppred", extra="ogb", what="OGB datasets")
    if source.name == "pcqm4m-v2":
        return _subset(require("ogb.lsc", extra="ogb", what="OGB datasets").PygPCQM4Mv2Dataset(root=str(root)))
    dataset = loaders.PygGraphPropPredDataset(name=source.name, root=str(root))
    index = dataset.get_idx_split()
    parts = tuple(np.asarray(index[part]) for part in ("train", "valid", "test"))
    return _collected([dataset[i] for i in range(len(dataset))], parts)


def _subset(dataset: Any) -> Raw:
    """A tenth of the training molecules and 50,000 others of them to validate; the validation molecules test."""
    index = dataset.get_idx_split()
    order = np.random.default_rng(SUBSET_SEED).permutation(np.asarray(index["train"]))
    count = int(SUBSET_SHARE * len(order))
    chosen = [order[:count], order[count : count + SUBSET_VAL], np.asarray(index["valid"])]
    items = [dataset[int(i)] for part in chosen for i in part]
    ids = np.split(np.arange(len(items)), np.cumsum([len(part) for part in chosen])[:-1])
    gaps = np.array([float(item.y) for item in items])
    for item, label in zip(items, quantile_bins(gaps, SUBSET_BINS, fitted_on=ids[0]), strict=True):
        item.y = torch.tensor([int(label)])
    return _collected(items, (ids[0], ids[1], ids[2]))


def _collected(items: list[Any], parts: tuple[Array, ...]) -> Raw:
    features = require("ogb.utils.features", extra="ogb", what="OGB datasets")
    sizes = features.get_atom_feature_dims()
    for item in items:
        item.x = one_hot(item.x, sizes)
    return pyg.collection(items, "graph", [(parts[0], parts[1], parts[2])])


def one_hot(codes: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    """Several categories of every node as one-hot columns of fixed width, [n, sum of sizes].

    >>> one_hot(torch.tensor([[1, 0]]), [2, 3]).tolist()
    [[0.0, 1.0, 1.0, 0.0, 0.0]]
    """
    starts = torch.tensor([0, *np.cumsum(sizes)[:-1].tolist()])
    wide = torch.zeros(len(codes), sum(sizes))
    return wide.scatter_(1, codes.long() + starts, 1.0)
