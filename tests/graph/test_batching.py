"""Edits of collections: applied graph by graph and all at once they give the same, and no edge leaves its graph."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from grb.errors import DataError
from grb.graph import Graph, GraphEdit, convert
from grb.graph.batching import batch_edits, get_example, unbatch_edit
from grb.graph.edit import owners
from made_collections import random_collection


def random_part(graph: Graph, rng: np.random.Generator, injected: int) -> GraphEdit:
    """Some flips, some new nodes in a chain that hangs on the first node, and one changed row."""
    n, d = graph.n, graph.num_features
    pairs = torch.from_numpy(np.stack(np.triu_indices(n, 1)))
    chosen = pairs[:, torch.from_numpy(rng.random(pairs.shape[1]) < 0.3)]
    present = graph.adj.has(chosen)
    chain = torch.tensor([[0, *range(n, n + injected - 1)], [*range(n, n + injected)]]) if injected else pairs[:, :0]
    return GraphEdit(
        n=n,
        add=torch.cat([chosen[:, ~present], chain], dim=1),
        drop=chosen[:, present],
        new_x=torch.from_numpy(rng.random((injected, d))).float() if injected else None,
        set_ids=torch.tensor([n - 1]),
        set_x=torch.from_numpy(rng.random((1, d))).float(),
    )


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 6), st.data())
def test_one_edit_of_a_collection_is_many_edits_of_its_graphs(seed: int, graphs: int, data: st.DataObject) -> None:
    collection = random_collection(graphs, seed)
    rng = np.random.default_rng(seed)
    chosen = data.draw(st.sets(st.integers(0, graphs - 1), min_size=1))
    parts = {k: random_part(get_example(collection, k), rng, data.draw(st.integers(0, 3))) for k in sorted(chosen)}
    edit = batch_edits(collection, parts)
    back = unbatch_edit(collection, edit)
    assert set(back) == chosen
    for k, part in parts.items():
        own = get_example(collection, k)
        assert own.apply(back[k]).fingerprint() == own.apply(part).fingerprint()
    after = collection.apply(edit)
    assert after.num_graphs == graphs and torch.equal(torch.as_tensor(after.y), torch.as_tensor(collection.y))
    assert not after.adj.crosses(after.owner)
    for k in range(graphs):
        wanted = get_example(collection, k).apply(parts[k]) if k in parts else get_example(collection, k)
        assert get_example(after, k).fingerprint() == wanted.fingerprint()


def test_nodes_join_the_graph_that_their_edges_lead_to() -> None:
    graph = random_collection(3, 0)
    assert graph.ptr is not None
    first = [int(start) for start in graph.ptr[:-1]]
    n = graph.n
    # a chain of two on graph 1, and in front of them in the numbering one node on graph 2
    edit = GraphEdit(n=n, add=torch.tensor([[first[2], n + 2, n + 1], [n, first[1], n + 2]]), new_x=torch.eye(3, 5))
    assert owners(graph, edit)[n:].tolist() == [2, 1, 1]
    after = graph.apply(edit)
    assert after.ptr is not None
    assert (after.ptr.diff() - graph.ptr.diff()).tolist() == [0, 2, 1]
    assert isinstance(after.x, Tensor)
    end = int(after.ptr[2])
    assert torch.equal(after.x[end - 2 : end], torch.eye(3, 5)[1:])


def test_components_after_an_injection_agree_with_networkx() -> None:
    graph = random_collection(4, 3)
    assert graph.ptr is not None
    parts = {
        k: GraphEdit(n=get_example(graph, k).n, add=_star(get_example(graph, k).n), new_x=torch.ones(1, 5))
        for k in (0, 3)
    }
    after = graph.apply(batch_edits(graph, parts))
    seen = nx.from_scipy_sparse_array(convert.to_scipy(after.adj))
    owner = after.owner.tolist()
    assert all(len({owner[node] for node in part}) == 1 for part in nx.connected_components(seen))


def _star(n: int) -> Tensor:
    return torch.stack([torch.arange(n), torch.full((n,), n)])


def test_what_does_not_belong_to_one_graph_is_refused() -> None:
    graph = random_collection(3, 0)
    assert graph.ptr is not None
    a, b, n = int(graph.ptr[0]), int(graph.ptr[1]), graph.n
    faults = {
        r"joins two graphs of the collection by edge": GraphEdit(n=n, add=torch.tensor([[a], [b]])),
        r"joins two graphs": GraphEdit(n=n, add=torch.tensor([[a, b], [n, n]]), new_x=torch.ones(1, 5)),
        r"injected node 1 has no edge": GraphEdit(n=n, add=torch.tensor([[a], [n]]), new_x=torch.ones(2, 5)),
        r"cuts 1": GraphEdit(n=n, cut=1),
    }
    for words, edit in faults.items():
        with pytest.raises(DataError, match=words):
            graph.apply(edit)
    with pytest.raises(DataError, match="graph 1 of the collection, which has"):
        batch_edits(graph, {1: GraphEdit(n=999)})
    with pytest.raises(DataError, match="single graph"):
        get_example(get_example(graph, 0), 0)
    grown = graph.apply(GraphEdit(n=n, add=torch.tensor([[a], [n]]), new_x=torch.ones(1, 5)))
    with pytest.raises(DataError, match="cannot be matched by id"):
        GraphEdit.between(graph, grown)


@settings(max_examples=30)
@given(st.integers(0, 1000), st.lists(st.integers(0, 4), unique=True, min_size=1))
def test_a_selection_is_its_graphs_in_that_order(seed: int, ids: list[int]) -> None:
    graph = random_collection(5, seed)
    part = graph.select(torch.tensor(ids))
    assert part.num_graphs == len(ids) and part.y is not None and graph.y is not None
    assert part.y.tolist() == graph.y[torch.tensor(ids)].tolist()
    for place, k in enumerate(ids):
        assert get_example(part, place).fingerprint() == get_example(graph, k).fingerprint()


def test_only_collections_have_a_selection() -> None:
    with pytest.raises(DataError, match="single graph"):
        get_example(random_collection(2, 0), 0).select(torch.tensor([0]))
    with pytest.raises(DataError, match="names node 9"):
        random_collection(2, 0).select(torch.tensor([9]))
