"""Datasets of the papers' era under their old names."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grb.catalogue import canonical
from grb.compat.adjacency import build_adj
from grb.compat.arguments import refuse_unless, without_effect
from grb.dataset import CleaningOptions, Dataset, cleaning, load_dataset, raw_arrays
from grb.dataset.splits import ByDegree
from grb.errors import DataError
from grb.graph import FeatureScale, convert
from grb.graph.validate import adjacency_from_csr

GRB_SUPPORTED_DATASETS = {"grb-cora", "grb-citeseer", "grb-aminer", "grb-reddit", "grb-flickr"}
# CogDL's names and ours
COGDL = {
    "cora": "planetoid-cora",
    "citeseer": "planetoid-citeseer",
    "pubmed": "planetoid-pubmed",
    "flickr": "flickr",
    "reddit": "reddit-rebuilt",
    "mutag": "mutag",
    "imdb-b": "imdb-binary",
    "imdb-m": "imdb-multi",
    "collab": "collab",
    "proteins": "proteins",
    "nci1": "nci1",
    "reddit-b": "reddit-binary",
    "reddit-multi-5k": "reddit-multi-5k",
}


def dataset_arguments(owner: str, given: dict[str, Any]) -> dict[str, Any]:
    """Arguments of our datasets from THUDM/grb's."""
    without_effect(owner, given, "verbose", "nothing is printed; repr(dataset) shows its sizes", quiet=[False])
    advice = "a custom directory is Dataset.from_npz(directory), arrays are CustomDataset(adj, features, labels)"
    refuse_unless(owner, given, "custom", lambda value: not value, advice)
    advice = "`grb data check PATH --output DIR` and Dataset.from_npz write and read datasets"
    refuse_unless(owner, given, "save", lambda value: not value, advice)
    if owner == "CustomDataset":
        without_effect(owner, given, "data_dir", "arrays come from memory", quiet=[None])
        if given.get("name", "") is None:
            del given["name"]
    return given


class _Loaded(Dataset):
    """A dataset of the catalogue with more attributes."""

    def __init__(self, name: str, data_dir: str | os.PathLike[str] | None) -> None:
        self.__dict__.update(load_dataset(name, data_dir=data_dir, feat_norm=None).__dict__)

    @cached_property
    def graphs(self) -> list[Any]:
        """The graphs of a collection, each with x, edge_index, edge_attr, y and num_nodes as CogDL has them."""
        if self.graph.ptr is None:
            raise DataError(f"'{self.name}' is one graph: adj, features and labels have it")
        found = []
        for number in range(self.graph.num_graphs):
            data = convert.to_pyg(self.graph.graphs(number, number + 1))
            data.edge_attr = torch.ones(data.edge_index.shape[1])
            data.y = self.labels[number : number + 1]
            found.append(data)
        return found

    @property
    def num_graphs(self) -> int:
        """Number of graphs."""
        return self.graph.num_graphs

    @property
    def num_nodes_max(self) -> int:
        """Nodes of the largest graph."""
        return int(self.graph.n if self.graph.ptr is None else self.graph.ptr.diff().max())

    @property
    def num_edges_max(self) -> int:
        """Most undirected edges of one graph."""
        return max(graph.edge_index.shape[1] // 2 for graph in self.graphs)


class CogDLDataset(_Loaded):
    """A dataset by CogDL's name, from our own readers: CogDL is not needed.

    Differs from THUDM/grb: ``lcc`` keeps the largest component (there the first), graphs are split by a fixed seed.

    Args:
        name: cora, citeseer, pubmed, flickr, reddit; mutag, imdb-b, imdb-m, collab, reddit-b; or any name of `grb ls datasets`.
        data_dir: Directory to search before ``$GRB_DATA`` and the cache.
        mode: ``origin``, or ``lcc`` for the largest connected component.
        verbose: Without effect.
    """

    def __init__(
        self, name: str, data_dir: str | os.PathLike[str] | None = None, mode: str = "origin", verbose: bool = False
    ) -> None:
        if mode not in ("origin", "original", "lcc"):
            raise DataError(f"mode is {mode!r}, but 'origin' or 'lcc' is needed")
        super().__init__(COGDL.get(name) or canonical("dataset", name), data_dir)
        if mode == "lcc":
            options = CleaningOptions(components="largest")
            cleaned = Dataset.from_raw(cleaning.clean(raw_arrays.from_dataset(self), options).arrays)
            self.__dict__.clear()
            self.__dict__.update(cleaned.__dict__)

    build_adj = staticmethod(build_adj)


class OGBDataset(_Loaded):
    """A dataset of OGB by its name, from OGB's raw files.

    Args:
        name: ogbn-arxiv, ogbn-products, ogbn-proteins, ogbg-molhiv, ...; underscores count as hyphens.
        data_dir: Directory to search before ``$GRB_DATA`` and the cache.
        verbose: Without effect.
    """

    def __init__(self, name: str, data_dir: str | os.PathLike[str] | None = None, verbose: bool = False) -> None:
        name = name.replace("_", "-")
        if name == "ogbg-code2":
            raise DataError(
                "ogbg-code2 asks for sequences of words, which no model here gives; ogbg-molhiv, ogbg-moltox21 and "
                "ogbg-molpcba classify graphs"
            )
        super().__init__(name, data_dir)


def feat_normalize(features: Any, norm: str | None = None, lim_min: float = -1.0, lim_max: float = 1.0) -> Tensor:
    """Features normalised by one mean and deviation of all entries: arctan, tanh, standardize or linearize.

    Args:
        features: [n, d].
        norm: Which; None leaves them.
        lim_min: Lower end for ``linearize``, which is -1 here.
        lim_max: Upper end for ``linearize``, which is 1 here.
    """
    if norm == "linearize" and (lim_min, lim_max) != (-1.0, 1.0):
        raise DataError("linearize maps to [-1, 1] here; scale the result for another range")
    ours = {"linearize": "linear", "standardize": "standardise"}
    x = torch.as_tensor(np.asarray(features), dtype=torch.float32)
    return FeatureScale.fit(ours.get(norm or "", norm), x).apply(x)


def splitting(adj: Any, seed: int = 42, **ranges: Any) -> dict[str, Any]:
    """The paper's split of nodes by degree: ids of training, validation and the test sets of three difficulties.

    Args:
        adj: A scipy matrix, [n, n].
        seed: Random seed; the same one draws other nodes than in THUDM/grb.
        ranges: Refused: the paper's ranges and fractions are used.
    """
    if ranges:
        raise DataError(
            f"splitting got {sorted(ranges)[0]}, but the paper's ranges are used; give masks to CustomDataset"
        )
    rows = adj.tocsr()
    made, _ = adjacency_from_csr(rows.indptr, rows.indices, rows.data, rows.shape, mode="canonicalise")
    split = ByDegree(made.degrees.long(), torch.arange(made.n), seed)(0)
    names = {"easy": "index_test_easy", "medium": "index_test_medium", "hard": "index_test_hard", "full": "index_test"}
    parts = {"index_train": split.train, "index_val": split.val}
    parts |= {name: split.test[part] for part, name in names.items()}
    return {name: ids.numpy() for name, ids in parts.items()}
