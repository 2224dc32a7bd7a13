"""AFGSM's closed forms against finite differences of the linear surrogate."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from attack.contexts import graph_of, random_graph
from grb.attack import AttackContext, run_attack
from grb.attack.injection.afgsm import AFGSM, _Attack
from grb.dataset.view import View
from grb.graph import Graph, GraphEdit, normalise
from grb.threat import Injection


def scene(
    graph: Graph, targets: list[int], nodes: int, edges: int, limits: tuple[float, float] = (-1.0, 1.0)
) -> AttackContext:
    y = torch.from_numpy(np.random.default_rng(0).integers(0, 3, graph.n))
    ids = torch.tensor(targets)
    train = torch.tensor([node for node in range(graph.n) if node not in targets])
    y[ids] = -1
    view = View(Graph(graph.adj, graph.x, y), train, train[:0], ids, torch.arange(graph.n), 3, inductive=False)
    return AttackContext(view, Injection(nodes, edges, limits))


def words(seed: int = 0) -> Graph:
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((14, 14)) < 0.3, 1)
    return graph_of(np.argwhere(upper), 14, torch.from_numpy((rng.random((14, 9)) < 0.4).astype(np.float32)))


def test_a_single_target_is_always_joined_and_without_direct_never() -> None:
    for seed in range(5):
        graph = random_graph(15, density=0.3, seed=seed)
        edit = run_attack(AFGSM(), scene(graph, [2], 3, 2), seed=0).edit
        assert set(edit.add[1].tolist()) == {15, 16, 17}
        assert all([2, node] in edit.add.T.tolist() for node in (15, 16, 17))
        around = run_attack(AFGSM(direct=False), scene(graph, [2], 3, 2), seed=0).edit
        assert 2 not in around.add[0].tolist()


def test_words_of_an_injected_node_go_together_pairwise() -> None:
    for seed in range(6):
        graph = words(seed)
        assert isinstance(graph.x, torch.Tensor)
        edit = run_attack(AFGSM(), scene(graph, [0, 1, 2], 4, 3, (0.0, 1.0)), seed=0).edit
        together = (graph.x.T @ graph.x) > 0
        most = int(graph.x.sum() / graph.n)
        assert edit.new_x is not None and set(edit.new_x.unique().tolist()) <= {0.0, 1.0}
        for row in edit.new_x:
            own = row.nonzero().flatten().tolist()
            assert len(own) <= most and all(together[i, j] for i, j in itertools.combinations(own, 2))


def test_scores_are_the_changes_of_the_margin_up_to_the_targets_own_degree() -> None:
    """One node, one edge; degrees held fixed at those after the attack, as in the closed form."""
    graph = random_graph(12, density=0.35, seed=3)
    context = scene(graph, [4], 1, 1)
    attack = _Attack(AFGSM(direct=False), context)
    direction = attack.weight[:, 1] - attack.weight[:, 0]
    row = attack._features(direction)
    value, ends = attack._edges(row, direction, torch.ones(1))
    a = torch.eye(13)
    u, v = graph.adj.edges()
    a[u, v] = a[v, u] = 1
    scale = torch.cat([graph.adj.degrees.float() + 1, torch.tensor([2.0])]).rsqrt()
    x = torch.cat([graph.x, row.unsqueeze(0)])  # type: ignore[list-item]

    def margin_with(end: int | None) -> float:
        linked = a.clone()
        if end is not None:
            linked[end, 12] = linked[12, end] = 1
        op = scale.unsqueeze(1) * linked * scale
        return float((op @ op @ x @ direction)[4])

    gains = [margin_with(end) - margin_with(None) for end in range(12)]
    gains[4] = -np.inf
    if len(ends):
        assert int(ends[0]) == int(np.argmax(gains)) and value == pytest.approx(max(gains), rel=1e-4)


def test_it_lowers_the_margins_of_many_targets() -> None:
    graph = random_graph(40, density=0.1, seed=1)
    context = scene(graph, list(range(12)), 4, 5)
    result = run_attack(AFGSM(), context, seed=0)
    assert result.steps[-1].loss > result.steps[0].loss
    op = normalise.gcn(graph.apply(result.edit).adj)
    assert op.shape[0] == 44 and result.budget["most_edges_per_node"] <= 5


def test_nothing_to_inject_changes_nothing() -> None:
    edit = run_attack(AFGSM(), scene(random_graph(6), [0], 0, 3), seed=0).edit
    assert edit.is_empty and isinstance(edit, GraphEdit)
