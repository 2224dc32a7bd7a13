"""Graphs, edits, and the sparse kernel: values that never change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grb import _lazy

if TYPE_CHECKING:
    from grb.graph.adjacency import Adjacency
    from grb.graph.complete import CompleteAdjacency
    from grb.graph.edit import GraphEdit
    from grb.graph.features import FeatureScale
    from grb.graph.graph import Graph
    from grb.graph.sparse import CSR, Op, Pattern, dense, sampled_product
    from grb.graph.validate import adjacency_from_csr, adjacency_from_edges

_HOMES = {
    "adjacency": ("Adjacency",),
    "complete": ("CompleteAdjacency",),
    "edit": ("GraphEdit",),
    "features": ("FeatureScale",),
    "graph": ("Graph",),
    "sparse": ("CSR", "Op", "Pattern", "dense", "sampled_product"),
    "validate": ("adjacency_from_csr", "adjacency_from_edges"),
}
__all__ = [
    "CSR",
    "Adjacency",
    "CompleteAdjacency",
    "FeatureScale",
    "Graph",
    "GraphEdit",
    "Op",
    "Pattern",
    "adjacency_from_csr",
    "adjacency_from_edges",
    "dense",
    "sampled_product",
]
__getattr__, __dir__ = _lazy.attach(
    __name__, {name: f"grb.graph.{module}" for module, names in _HOMES.items() for name in names}
)
