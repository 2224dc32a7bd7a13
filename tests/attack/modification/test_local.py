"""Outcomes that are recomputed where a flip changes something equal those of whole forward passes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from attack.contexts import random_graph
from grb.attack.losses import tanh_margin
from grb.attack.modification import local
from grb.attack.modification.gradient import Victim
from grb.attack.modification.local import LocalEvaluator, WholeEvaluator, evaluator_of, flipped
from grb.catalogue import resolve
from grb.graph import Graph
from grb.model.adapters import wrap

MODELS: list[tuple[str, dict[str, Any]]] = [
    ("gcn", {"hidden_features": [4]}),
    ("gcn", {"hidden_features": [4, 4], "layer_norm": True, "residual": True}),
    ("sgcn", {"hidden_features": [4, 4], "k": 2}),
    ("tagcn", {"hidden_features": [4], "k": 2}),
    ("appnp", {"hidden_features": [4], "k": 3, "alpha": 0.1}),
    ("gin", {"hidden_features": [4]}),
    ("graphsage", {"hidden_features": [4]}),
    ("gat", {"hidden_features": [4], "heads": 2}),
    ("r-gcn", {"hidden_features": [4]}),
    ("mlp", {"hidden_features": [4]}),
]
GRAPH = random_graph(20, density=0.15, isolated=2, seed=3)


def model_of(name: str, options: dict[str, Any]) -> nn.Module:
    made: nn.Module = resolve("model", name)(3, 4, generator=torch.Generator().manual_seed(1), **options)
    return made.double().eval().requires_grad_(False)


def victim_on(model: nn.Module, graph: Graph, targets: Tensor) -> Victim:
    assert isinstance(graph.x, Tensor)
    return Victim(model, Graph(graph.adj, graph.x.double()), targets)


def some_flips(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Distinct pairs of every alternative, edges among them."""
    generator = torch.Generator().manual_seed(seed)
    sets = [GRAPH.adj.edges()[:, :2]]
    for _ in range(count - 1):
        numbers = torch.randperm(190, generator=generator)[: int(torch.randint(1, 5, (1,), generator=generator))]
        sets.append(torch.triu_indices(20, 20, 1)[:, numbers])
    sizes = torch.tensor([each.shape[1] for each in sets])
    return torch.cat(sets, dim=1), torch.arange(count).repeat_interleave(sizes)


@pytest.mark.parametrize(("name", "options"), MODELS)
def test_local_outcomes_equal_whole_passes(name: str, options: dict[str, Any]) -> None:
    victim = victim_on(model_of(name, options), GRAPH, torch.arange(0, 20, 2))
    evaluator, whole = evaluator_of(victim, GRAPH.adj, tanh_margin), WholeEvaluator(victim, GRAPH.adj, tanh_margin)
    assert evaluator.local == (name != "mlp")
    for seed in range(3):
        pairs, groups = some_flips(30, seed)
        found, expected = evaluator.outcomes(pairs, groups, 30), whole.outcomes(pairs, groups, 30)
        assert torch.allclose(found.loss, expected.loss, atol=1e-5) and torch.equal(found.kept, expected.kept)
        own = pairs[:, groups == 1]
        evaluator.flip(own)
        whole.flip(own)
        assert torch.equal(evaluator.adj.keys, whole.adj.keys)
        assert torch.allclose(evaluator.losses, whole.losses, atol=1e-5) and torch.equal(evaluator.right, whole.right)


def test_the_outcomes_tell_something() -> None:
    victim = victim_on(model_of("gcn", {"hidden_features": [4]}), GRAPH, torch.arange(20))
    pairs, groups = some_flips(60, 0)
    found = LocalEvaluator(victim, GRAPH.adj, tanh_margin).outcomes(pairs, groups, 60)
    assert len(found.loss.unique()) > 40 and len(found.kept.unique()) > 1


@given(seed=st.integers(0, 2**16), rows=st.sampled_from([1, 50, 10_000]))
def test_the_number_evaluated_at_once_does_not_matter(seed: int, rows: int) -> None:
    victim = victim_on(model_of("gcn", {"hidden_features": [4]}), GRAPH, torch.arange(20))
    evaluator = LocalEvaluator(victim, GRAPH.adj, tanh_margin)
    pairs, groups = some_flips(12, seed)
    found = evaluator.outcomes(pairs, groups, 12)
    before = local.MARKS
    local.MARKS = rows
    try:
        again = evaluator.outcomes(pairs, groups, 12)
    finally:
        local.MARKS = before
    assert torch.allclose(found.loss, again.loss) and torch.equal(found.kept, again.kept)


def test_every_graph_looked_at_is_counted() -> None:
    victim = victim_on(model_of("gcn", {"hidden_features": [4]}), GRAPH, torch.arange(20))
    for evaluator in (LocalEvaluator(victim, GRAPH.adj, tanh_margin), WholeEvaluator(victim, GRAPH.adj, tanh_margin)):
        pairs, groups = some_flips(12, 0)
        evaluator.outcomes(pairs, groups, 12)
        assert evaluator.passes == 13


def test_flipping_twice_gives_the_graph_back() -> None:
    pairs = torch.cat([GRAPH.adj.edges()[:, :3], torch.tensor([[18, 0], [19, 18]])], dim=1)
    once = flipped(GRAPH.adj, pairs)
    assert not once.has(pairs[:, :3]).any() and once.has(pairs[:, 3:]).all()
    assert torch.equal(flipped(once, pairs).keys, GRAPH.adj.keys)


def test_models_without_stages_get_whole_passes() -> None:
    class Sum(nn.Module):
        def forward(self, x: Tensor, adj: Tensor) -> Tensor:
            return adj @ x

    assert not evaluator_of(Victim(wrap(Sum()), GRAPH, torch.arange(4)), GRAPH.adj, tanh_margin).local
