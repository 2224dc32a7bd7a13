"""Small graphs and collections that the tests of the perturbations share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
import torch
from hypothesis import settings
from hypothesis import strategies as st

from grb.graph import Graph, adjacency_from_edges


def graph_of(source: nx.Graph, *, width: int = 3, seed: int = 0) -> Graph:
    """A single graph with nodes in the order of networkx and random features."""
    return Graph(adjacency(source), features(source.number_of_nodes(), width, seed))


def features(n: int, width: int, seed: int) -> torch.Tensor:
    return torch.randn(n, width, generator=torch.Generator().manual_seed(seed))


def adjacency(source: nx.Graph) -> Any:
    ids = {node: place for place, node in enumerate(source.nodes)}
    edges = np.array([(ids[u], ids[v]) for u, v in source.edges()], dtype=np.int64).reshape(-1, 2).T
    return adjacency_from_edges(edges, len(ids))[0]


def collection_of(sources: Sequence[nx.Graph], *, width: int = 3, seed: int = 0) -> Graph:
    whole = nx.disjoint_union_all(sources) if len(sources) > 1 else sources[0]
    sizes = [source.number_of_nodes() for source in sources]
    ptr = torch.tensor([0, *np.cumsum(sizes)])
    n = int(ptr[-1])
    return Graph(adjacency(whole), features(n, width, seed), torch.arange(len(sizes)), ptr)


def nx_of(graph: Graph) -> nx.Graph:
    found = nx.Graph()
    found.add_nodes_from(range(graph.n))
    found.add_edges_from(graph.adj.edges().T.tolist())
    return found


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def permuted(graph: Graph, seed: int = 0) -> tuple[Graph, torch.Tensor]:
    """The same graph with its nodes in another order inside every graph, and where each of them was."""
    rng = np.random.default_rng(seed)
    ptr = [0, graph.n] if graph.ptr is None else graph.ptr.tolist()
    order = np.concatenate([a + rng.permutation(b - a) for a, b in zip(ptr, ptr[1:], strict=False)])
    nodes = torch.from_numpy(order)
    return Graph(graph.adj.subgraph(nodes), graph.x[nodes], graph.y, graph.ptr), nodes


def made(sizes: Sequence[int], density: float, seed: int, *, width: int = 3) -> Graph:
    """Random graphs of some sizes, each pair joined with the same probability."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    parts = []
    for start, size in zip(starts, sizes, strict=False):
        pairs = np.stack(np.triu_indices(size, 1))
        parts.append(start + pairs[:, rng.random(pairs.shape[1]) < density])
    adj = adjacency_from_edges(np.concatenate(parts, axis=1), int(starts[-1]))[0]
    return Graph(adj, features(int(starts[-1]), width, seed), torch.arange(len(sizes)), torch.from_numpy(starts))


def networks(least: int = 0, most: int = 14) -> st.SearchStrategy[nx.Graph]:
    """Any simple graph of few nodes."""
    return st.builds(
        lambda n, density, seed: nx.gnp_random_graph(n, density, seed=seed),
        st.integers(least, most),
        st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.8, 1.0]),
        st.integers(0, 10_000),
    )


def collections(least: int = 0, most: int = 10) -> st.SearchStrategy[Graph]:
    """Few small graphs, from empty ones to complete ones."""
    return st.builds(
        made,
        st.lists(st.integers(least, most), min_size=1, max_size=4),
        st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.8, 1.0]),
        st.integers(0, 10_000),
    )


few = settings(max_examples=80)
"""Enough examples for a property of graphs this small; three hundred of each would take half a minute."""
