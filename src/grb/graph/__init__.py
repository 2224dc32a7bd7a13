"""Graphs, edits, and the sparse kernel: values that never change."""

from grb.graph.adjacency import Adjacency
from grb.graph.complete import CompleteAdjacency
from grb.graph.edit import GraphEdit
from grb.graph.features import FeatureScale
from grb.graph.graph import Graph
from grb.graph.sparse import CSR, Op, Pattern, dense, sampled_product
from grb.graph.validate import adjacency_from_csr, adjacency_from_edges

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
