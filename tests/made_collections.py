"""Small labelled collections of random graphs."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from grb.dataset import Dataset
from grb.dataset.splits import Folds
from grb.graph import Graph, adjacency_from_edges


def random_collection(graphs: int, seed: int, *, features: int = 5, classes: int = 3, isolated: bool = False) -> Graph:
    """Graphs of 2 to 9 nodes with normal features and one label each, all classes in turn."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 10, graphs)
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    edges = [np.zeros((2, 0), dtype=np.int64)]
    for start, size in zip(ptr[:-1], sizes, strict=True):
        pairs = np.stack(np.triu_indices(int(size) - int(isolated and size > 2), 1))
        edges.append(pairs[:, rng.random(pairs.shape[1]) < 0.5] + start)
    adj, _ = adjacency_from_edges(np.concatenate(edges, axis=1), int(ptr[-1]))
    x = torch.from_numpy(rng.standard_normal((int(ptr[-1]), features))).float()
    return Graph(adj, x, torch.arange(graphs) % classes, torch.from_numpy(ptr))


def tiny_graphs() -> Dataset:
    """A dataset whose graphs are told apart by their first feature; named as ``made_collections:tiny_graphs``."""
    graph = random_collection(graphs=40, seed=5, classes=2)
    assert graph.y is not None and graph.ptr is not None and isinstance(graph.x, Tensor)
    shift = torch.repeat_interleave(graph.y * 4.0 - 2, graph.ptr.diff())
    moved = torch.cat([graph.x[:, :1] + shift.unsqueeze(1), graph.x[:, 1:]], dim=1)
    return Dataset.of_graph(graph.with_features(moved), Folds(graph.y), name="tiny-graphs", task="graph")


def edge_index(graph: Graph) -> Tensor:
    """Both directions of every edge, as torch_geometric has them."""
    pattern = graph.adj.pattern
    return torch.stack([pattern.row_ids.long(), pattern.indices.long()])
