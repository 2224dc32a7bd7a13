"""GRABNEL asks about what its surrogate expects most of, and needs fewer queries than chance."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import grb
from attack.contexts import graph_of, random_graph, victim, view_of
from attack.modification.brute_force import fewest, kept
from grb.attack import AttackContext, run_attack
from grb.attack.modification import GRABNEL
from grb.errors import DataError
from grb.graph import CSR, Adjacency
from grb.threat import Modification


class Degrees(nn.Module):
    """Classifies a graph by how many nodes have three neighbours: subtrees of one round decide."""

    def prepare(self, adj: Adjacency) -> CSR:
        return CSR(adj.pattern, None)

    def forward(self, x: Tensor, op: CSR) -> Tensor:
        threes = ((op @ torch.ones(x.shape[0], 1)) == 3).sum().float()
        return torch.stack([torch.tensor(6.5), threes]).expand(x.shape[0], 2)


def ring(queries: int, edges: int = 3) -> AttackContext:
    """Twenty nodes with two neighbours each: an edge between two of them makes two with three."""
    graph = graph_of([(v, (v + 1) % 20) for v in range(20)], 20, torch.ones(20, 1))
    return AttackContext(view_of(graph, range(20)), Modification(edges=edges, queries=queries), Degrees(), "query")


def lost(context: AttackContext, edit: Any) -> bool:
    model = context.surrogate()
    attacked = context.graph.apply(edit)
    return bool((model(attacked.x, model.prepare(attacked.adj)).argmax(1) == 1).any())  # type: ignore[operator]


def test_every_stage_goes_on_from_the_best_flip() -> None:
    result = run_attack(GRABNEL(), ring(60, edges=4), seed=0)
    assert lost(ring(60), result.edit) and result.edit.add.shape[1] == 4 and result.queries < 60


def test_what_was_learnt_spares_queries() -> None:
    """Flips that make another node with three neighbours are 1 of 10 here; the surrogate knows after a few answers."""
    generator = torch.Generator().manual_seed(0)
    pairs = torch.combinations(torch.arange(16)).T
    dense = pairs[:, torch.rand(pairs.shape[1], generator=generator) < 0.5]
    graph = graph_of(dense.T.tolist(), 16, torch.ones(16, 1))
    context = AttackContext(view_of(graph, range(16)), Modification(edges=1, queries=25), Degrees(), "query")

    def best(attack: GRABNEL, seed: int) -> float:
        return max(step.loss for step in run_attack(attack, context, seed=seed).steps)

    learnt = sum(best(GRABNEL(initial=8), seed) for seed in range(8))
    drawn = sum(best(GRABNEL(initial=1000), seed) for seed in range(8))
    blind = sum(best(GRABNEL(initial=12, rounds=0), seed) for seed in range(8))
    assert learnt > drawn - 1e-9 and learnt >= blind


@pytest.mark.parametrize("seed", range(3))
def test_with_a_query_for_every_pair_one_flip_is_the_best_one(seed: int) -> None:
    graph = random_graph(8, density=0.3, seed=seed)
    context = AttackContext(view_of(graph, range(8)), Modification(edges=1, queries=30), victim("gcn", 3), "query")
    result = run_attack(GRABNEL(), context, seed=0)
    assert kept(context, result.edit) == fewest(context, 1) and result.queries <= 29


def test_it_stops_when_no_target_keeps_its_label() -> None:
    result = run_attack(GRABNEL(), ring(200, edges=4), seed=0)
    assert result.queries < 200 and result.steps[-1].accuracy == 0


@pytest.mark.parametrize(("edges", "queries"), [(30, 12), (3, 40), (200, 2)])
def test_few_queries_make_stages_of_several_flips(edges: int, queries: int) -> None:
    graph = random_graph(60, density=0.1)
    threat = Modification(edges=edges, queries=queries)
    result = run_attack(
        GRABNEL(candidates=30), AttackContext(view_of(graph, range(60)), threat, victim("gcn", 3), "query"), seed=0
    )
    assert result.queries <= queries and result.budget["edges"] <= edges
    assert len(result.steps) == result.queries - 1


def test_graphs_of_a_collection_are_attacked_by_asking() -> None:
    dataset = grb.load_dataset("synth-graphs")
    model = grb.train("gin-pool", dataset, epochs=10)
    count = len(dataset.test_ids("full"))
    threat = Modification(edge_ratio=0.2, queries=8 * count)
    result = grb.run_attack("grabnel", model, dataset, threat=threat, knowledge="query")
    assert result.queries <= 8 * count and result.knowledge == "query"
    assert grb.evaluate(model, dataset, result)["full"] < grb.evaluate(model, dataset)["full"]


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"initial": 0}, {"rounds": -1}, {"candidates": 0}, {"mutated": 1.5}])
def test_settings_without_meaning_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=f"{next(iter(wrong))} is .* needed"):
        GRABNEL(**wrong)
