"""Meta-PGD: gradients through a training against finite differences, at edges with weights."""

from __future__ import annotations

import pytest
import torch

from attack.contexts import random_graph
from grb.attack import AttackContext, run_attack
from grb.attack.losses import cross_entropy
from grb.attack.modification import MetaPGD, Metattack
from grb.attack.modification.metattack import surrogate_score
from grb.dataset.view import View
from grb.errors import DataError
from grb.graph import Adjacency, Graph
from grb.threat import Modification


def context(edges: int = 4, n: int = 14) -> AttackContext:
    graph = random_graph(n, density=0.25, seed=2)
    y = torch.arange(n) % 3
    y[8:] = -1
    x = graph.x.double()  # type: ignore[union-attr]
    train = torch.arange(8)
    view = View(Graph(graph.adj, x, y), train, train[:0], torch.arange(8, n), torch.arange(n), 3, inductive=False)
    return AttackContext(view, Modification(edges=edges))


def test_gradients_of_weighted_edges_equal_finite_differences() -> None:
    given = context()
    adj = given.graph.adj
    score = surrogate_score(Metattack(steps=6, loss=cross_entropy), given)
    score.judged(adj)
    weights = torch.rand(adj.pattern.entries, generator=torch.Generator().manual_seed(0)).double() + 0.5
    position = {
        (int(a), int(b)): at for at, (a, b) in enumerate(zip(adj.pattern.row_ids, adj.pattern.indices, strict=True))
    }
    pairs = adj.edges()
    for u, v in pairs.T.tolist():
        weights[position[v, u]] = weights[position[u, v]]
    found = score.gradient(Adjacency(adj.pattern, weights)).of(pairs)
    step = 1e-5
    for at, (u, v) in enumerate(pairs.T.tolist()):
        values = []
        for sign in (1, -1):
            moved = weights.clone()
            moved[position[u, v]] += sign * step
            moved[position[v, u]] += sign * step
            values.append(score.judged(Adjacency(adj.pattern, moved))[0])
        assert float(found[at]) == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-4, abs=1e-7)


def test_the_surrogate_trained_on_the_result_keeps_fewer_labels() -> None:
    given = context(edges=6, n=40)
    attack = MetaPGD(steps=20, training_steps=20)
    score = surrogate_score(attack.training(), given)
    before = score.judged(given.graph.adj)
    edit = run_attack(attack, given, seed=0).edit
    after = score.judged(given.graph.apply(edit).adj)
    assert (after[1], -after[0]) < (before[1], -before[0])


def test_bad_settings_are_refused() -> None:
    for bad in ({"steps": 0}, {"training_steps": 0}, {"lr_factor": 0.0}, {"n_epoch_resampling": 2.0}, {"goal": "x"}):
        with pytest.raises(DataError):
            MetaPGD(**bad)  # type: ignore[arg-type]
