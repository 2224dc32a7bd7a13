"""What defenses offer to attackers whose gradients they hide."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attack.contexts import context_of, graph_of, random_graph
from grb.attack import run_attack
from grb.attack.injection import ComposedInjection
from grb.attack.modification.gradient import Victim
from grb.catalogue import entries, resolve
from grb.errors import UnknownName
from grb.model.base import GraphModel, predict, prepare, relaxation, relaxations

OFFERED = {
    "gcnguard": ["soft"],
    "gatguard": ["soft"],
    "egnnguard": ["soft"],
    "gcn-svd": ["full-rank", "projected"],
    "gcn-jaccard": ["uncut"],
    "gcn-cosine": ["uncut"],
    "gcn-detect": ["uncut", "soft"],
    "softmedian": ["warm", "mean"],
    "softmedian-gdc": ["mean"],
    "rung": ["soft", "l1", "constant"],
    "elasticgnn": ["quadratic"],
    "pro-gnn": ["unweighted"],
}
PAIRS = [(name, each) for name, offered in OFFERED.items() for each in offered]


def make(name: str) -> GraphModel:
    options: dict[str, Any] = {} if name == "sgc" else {"hidden_features": [4]}
    if name == "gcn-svd":
        options["rank"] = 5
    model: GraphModel = resolve("model", name)(3, 4, **options, generator=torch.Generator().manual_seed(1))
    return model.eval().requires_grad_(False)


def test_every_model_says_what_it_offers() -> None:
    for name in entries("model"):
        assert list(relaxations(make(name))) == OFFERED.get(name, []), name
    assert relaxations(nn.Linear(1, 1)) == {}


@pytest.mark.parametrize(("name", "offered"), PAIRS)
def test_a_relaxation_is_a_model_with_the_same_inputs_and_gradients_for_features_and_edges(
    name: str, offered: str
) -> None:
    model, graph = make(name), random_graph(30)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    twin = relaxation(model, offered)
    assert not any(module.training for module in twin.modules())
    assert isinstance(graph.x, Tensor)
    x = graph.x.clone().requires_grad_()
    logits = twin(x, prepare(twin, graph.adj))
    assert logits.shape == (30, 4) and logits.isfinite().all()
    (slope,) = torch.autograd.grad(logits.square().sum(), x)
    assert slope.isfinite().all() and slope.any()
    victim = Victim(twin, graph, torch.arange(20))
    absent = torch.tensor([[0, 1, 2, 3], [20, 21, 22, 23]])
    assert not graph.adj.has(absent).all()
    gradients = victim.gradient(graph.adj).of(absent)
    assert gradients.isfinite().all() and gradients.any()
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())


def test_the_projected_low_rank_part_has_the_logits_of_the_model() -> None:
    model, graph = make("gcn-svd"), random_graph(100, density=0.05)
    torch.testing.assert_close(
        predict(relaxation(model, "projected"), graph), predict(model, graph), rtol=1e-4, atol=1e-4
    )


def test_without_cuts_a_dissimilar_neighbour_counts() -> None:
    """Node 1 is the opposite of node 0: the defenses cut it off, their relaxations of edges do not."""
    x = torch.tensor([[1.0, 0.0, 0.1], [-1.0, 0.2, 0.0], [1.0, 0.1, 0.0]])
    graph = graph_of([(0, 1), (0, 2)], 3, x)
    for name in ("gcn-cosine", "gcn-jaccard"):
        model = make(name)
        alone = predict(model, graph)
        assert not torch.allclose(predict(relaxation(model, "uncut"), graph)[0], alone[0])


def test_an_unknown_relaxation_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UnknownName, match="no relaxation of 'softmedian' 'cold'. It has warm, mean."):
        relaxation(make("softmedian"), "cold")


@pytest.mark.parametrize(("name", "offered"), PAIRS)
def test_attacks_through_a_relaxation_are_judged_on_the_model_itself(name: str, offered: str) -> None:
    model = make(name)
    context = context_of(random_graph(30), range(20), model, nodes=3, edges=3, knowledge="white-box")
    attack = ComposedInjection(relaxation=offered, steps=5, refine=3, rewirings=2)
    result = run_attack(attack, context, seed=0)
    clean = predict(model, context.graph)[context.targets].argmax(1)
    after = predict(model, context.graph.apply(result.edit))[context.targets].argmax(1)
    kept = float((clean == after).float().mean())
    # the best step of the attack was one of the victim's own, or came with the last exchange
    assert kept <= max(step.accuracy for step in result.steps)
    assert result.edit.num_new == 3
