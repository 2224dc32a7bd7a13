r"""Datasets of domains that the published taxonomy does not have, to see whether it says that they fit nowhere.

    export PYTHONPATH=benchmarks
    grb taxonomy run other_domains:blogs --seeds 1 --epochs 200 --store STORE
    grb taxonomy run other_domains:mines --seeds 1 --epochs 100 --store STORE \
        --perturbations NoEdges,NoNodeFtrs,LowPass,HighPass,Frag-k1
    grb store copy STORE docs/results/taxonomy-other-domains.jsonl
    grb taxonomy place other_domains:blogs --runs docs/results/taxonomy-other-domains.jsonl
    grb taxonomy place other_domains:mines --runs docs/results/taxonomy-other-domains.jsonl

Both read files of third parties below ``$GRB_DATA``: ``Perturbed/ProGNN/clean/polblogs.npz`` and torch_geometric's Minesweeper.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from grb import Dataset, Graph, load_dataset
from grb.dataset.registry import roots
from grb.dataset.splits import Random
from grb.graph import adjacency_from_edges
from grb.graph.files import read_npz

SIDE, WIDTH = 40, 100


def blogs() -> Dataset:
    """Blogs on politics that link to each other, liberal or conservative; the features say which blog it is.

    The largest component of Polblogs (Adamic and Glance 2005), 1,222 nodes, as in the literature on robustness.
    """
    stored = _polblogs()
    matrix = csr_array((stored["adj_data"], stored["adj_indices"], stored["adj_indptr"]), shape=stored["adj_shape"])
    _, owner = connected_components(matrix, directed=False)
    kept = np.flatnonzero(owner == np.bincount(owner).argmax())
    edges = np.stack(matrix[kept][:, kept].nonzero())
    adj, _ = adjacency_from_edges(edges, len(kept), mode="canonicalise", directed=True)
    graph = Graph(adj, torch.eye(len(kept)), torch.from_numpy(stored["labels"][kept]))
    return Dataset.of_graph(graph, Random(len(kept)), name="blogs", task="node")


def mines() -> Dataset:
    """A corner of 40 times 40 squares of the board of Minesweeper (Platonov et al. 2023): is there a mine?"""
    whole = load_dataset("heterophilous-minesweeper").graph
    graph = whole.subgraph((torch.arange(SIDE).unsqueeze(1) * WIDTH + torch.arange(SIDE)).flatten())
    return Dataset.of_graph(graph, Random(graph.n), name="mines", task="node")


def _polblogs() -> dict[str, np.ndarray]:
    places = [Path(root) / "Perturbed" / "ProGNN" / "clean" / "polblogs.npz" for root in roots()]
    found = next((path for path in places if path.is_file()), places[0])
    return read_npz(found, required=["adj_data", "adj_indices", "adj_indptr", "adj_shape", "labels"])
