"""Small scenes that the tests of attacks share: graphs, victims and threat models written out by hand or drawn."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from grb.attack import AttackContext
from grb.attack.injection import TargetState
from grb.dataset.view import View
from grb.graph import Graph, GraphEdit, adjacency_from_edges
from grb.model.torch import GCN, MLP, SGC
from grb.threat import Injection

FEATURES = 3


def graph_of(pairs: Any, n: int, x: Tensor | None = None, *, seed: int = 0) -> Graph:
    """A graph from (u, v) pairs; normal features if none are given."""
    adj, _ = adjacency_from_edges(np.array(list(pairs), dtype=np.int64).reshape(-1, 2).T, n)
    if x is None:
        x = torch.randn(n, FEATURES, generator=torch.Generator().manual_seed(seed))
    return Graph(adj, x)


def random_graph(n: int, *, density: float = 0.2, isolated: int = 0, features: int = FEATURES, seed: int = 0) -> Graph:
    """Edges by independent coins; the last ``isolated`` nodes have none."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) < density, 1)
    upper[:, n - isolated :] = False
    x = torch.from_numpy(rng.standard_normal((n, features))).float()
    return graph_of(np.argwhere(upper), n, x)


def view_of(graph: Graph, targets: Any) -> View:
    none = torch.empty(0, dtype=torch.int64)
    ids = torch.as_tensor(targets, dtype=torch.int64)
    return View(graph, none, none, ids, torch.arange(graph.n), 0)


def context_of(
    graph: Graph, targets: Any, model: nn.Module | None, nodes: int = 3, edges: int = 2, **more: Any
) -> AttackContext:
    limits = more.pop("limits", (-1.0, 1.0))
    return AttackContext(view_of(graph, targets), Injection(nodes, edges, limits), model, **more)


def target_state_of(
    targets: Any, degrees: Any, labels: Any, probs: Any, edges_per_node: int, first: int = 100
) -> TargetState:
    """What an edge rule sees; ``probs`` are those of the labels, the rest of the mass goes to the other classes."""
    y = torch.as_tensor(labels, dtype=torch.int64)
    own = torch.as_tensor(probs, dtype=torch.float32)
    classes = max(int(y.max()) + 1 if len(y) else 1, 2)
    full = ((1 - own) / (classes - 1)).unsqueeze(1).repeat(1, classes)
    full[torch.arange(len(y)), y] = own
    ids = torch.as_tensor(targets, dtype=torch.int64)
    return TargetState(ids, torch.as_tensor(degrees, dtype=torch.int64), y, full, edges_per_node, first)


@cache
def victim(kind: str, classes: int) -> nn.Module:
    """Tiny models with drawn weights, made once; a test that attacks them must leave them as they are."""
    generator = torch.Generator().manual_seed(classes)
    if kind == "sgc":  # one layer
        return SGC(FEATURES, classes, k=1, generator=generator)
    if kind == "mlp":
        return MLP(FEATURES, classes, hidden_features=[4], generator=generator)
    options = {"layer_norm": True, "residual": True} if kind == "gcn+ln" else {}
    return GCN(FEATURES, classes, hidden_features=[4], dropout=0.5, generator=generator, **options)


VICTIMS = ("gcn", "gcn+ln", "sgc", "mlp")


@st.composite
def scenes(draw: st.DrawFn) -> AttackContext:
    """1 to 40 nodes, possibly isolated or without any edge; one class or more; any budget from nothing to too much."""
    n = draw(st.integers(1, 40))
    density = draw(st.sampled_from([0.0, 0.05, 0.3]))
    graph = random_graph(n, density=density, isolated=draw(st.integers(0, n)), seed=draw(st.integers(0, 2**16)))
    chosen = draw(st.sampled_from(["none", "one", "some", "all"]))
    count = {"none": 0, "one": 1, "some": (n + 1) // 2, "all": n}[chosen]
    order = torch.randperm(n, generator=torch.Generator().manual_seed(draw(st.integers(0, 2**16))))
    model = victim(draw(st.sampled_from(VICTIMS)), draw(st.sampled_from([1, 2, 4])))
    limits = draw(st.sampled_from([(-1.0, 1.0), (-0.47, 0.99), (0.25, 0.5), (-3.0, -1.0), (0.0, 0.0)]))
    nodes = draw(st.sampled_from([0, 1, 2, 3, 12]))
    edges = draw(st.sampled_from([0, 1, 2, 5, 50]))
    return context_of(graph, order[:count].sort().values, model, nodes, edges, limits=limits)


def degrees_of(edit: GraphEdit) -> list[int]:
    """Edges of every injected node, counted one by one."""
    ends = edit.add.flatten().tolist()
    return [ends.count(edit.base + node) for node in range(edit.num_new)]


def same_edit(a: GraphEdit, b: GraphEdit) -> bool:
    """Bit for bit."""
    if (a.new_x is None) != (b.new_x is None) or a.n != b.n:
        return False
    if (a.set_x is None) != (b.set_x is None):
        return False
    rows = ((a.new_x, b.new_x), (a.set_x, b.set_x), (a.set_ids, b.set_ids), (a.add, b.add), (a.drop, b.drop))
    return all(first is None or second is None or torch.equal(first, second) for first, second in rows)
