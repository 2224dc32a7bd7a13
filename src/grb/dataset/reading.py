"""Where a dataset's parts come from: embedded recipes, or a directory with the four npz files of GRB; and checks of both."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from grb.catalogue import preset
from grb.dataset import registry, storage
from grb.dataset.partition import DIFFICULTIES, Split
from grb.errors import DataError, MissingDataset
from grb.graph import Graph, adjacency_from_csr


def check_labelled(graph: Graph, split: Split) -> None:
    """Labels may be hidden (-1) where no part of the split needs them."""
    labels = cast(Tensor, graph.y)
    if graph.ptr is not None and len(labels) != graph.num_graphs:
        return  # the split names graphs, the labels belong to nodes, and a hidden one is left out of every loss
    used = torch.cat([split.train, split.val, split.test["full"]])
    if labels.dim() == 1 and (labels[used] < 0).any():
        node = int(used[labels[used] < 0][0])
        what = "node" if graph.ptr is None else "graph"
        raise DataError(f"{what} {node} is in the split, but its label is hidden (-1); leave it out or give its label")


def embedded(name: str) -> tuple[Graph, Split, list[str]]:
    from grb.dataset.synthetic import generate

    arrays = generate(name)
    n = len(arrays.labels)
    adj, notes = adjacency_from_csr(arrays.indptr, arrays.indices, None, (n, n))
    graph = Graph.build(adj, arrays.features, arrays.labels)[0]
    test: dict[str, Any] = {band: getattr(arrays, f"index_test_{band}") for band in DIFFICULTIES[:3]}
    return graph, Split.build(arrays.index_train, arrays.index_val, test, n), notes


def located(name: str, data_dir: str | os.PathLike[str] | None) -> Path:
    """The directory of a dataset; if it is nowhere on this machine, it is downloaded unless ``$GRB_OFFLINE`` is set."""
    try:
        return registry.find(name, data_dir)
    except MissingDataset as missing:
        from grb.dataset import download

        return download.obtain(name, missing)


def read_directory(directory: Path) -> tuple[Graph, Split, list[str]]:
    stored = storage.read_structure(directory)
    graph = Graph(stored.adj, storage.read_features(directory, stored.adj.n), stored.labels)
    test = {part: ids for part, ids in stored.index.items() if part not in ("train", "val")}
    return graph, Split.build(stored.index["train"], stored.index["val"], test, graph.n), stored.notes


def check_directory(name: str, directory: Path) -> None:
    """Refuse a directory whose files are broken, or are not those of the paper's dataset of that name."""
    graph, split, _ = read_directory(directory)
    check_labelled(graph, split)
    check_statistics(name, graph)


def check_statistics(name: str, graph: Graph) -> None:
    facts = preset("datasets").get(name)
    if facts is None:
        return
    seen = {"nodes": graph.n, "edges": graph.num_edges, "features": graph.num_features, "classes": classes(graph)}
    for key, value in seen.items():
        if facts[key] != value:
            raise DataError(
                f"the files of '{name}' have {value} {key}, but the paper's dataset has {facts[key]}; get it again"
            )


def classes(graph: Graph) -> int:
    labels = cast(Tensor, graph.y)
    return int(labels.max()) + 1 if labels.dim() == 1 else int(labels.shape[1])
