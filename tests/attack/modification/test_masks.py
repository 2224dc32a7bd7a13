"""A filter of edges is part of the victim: gradients and outcomes are those of the defended model."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from attack.contexts import random_graph, view_of
from attack.modification.brute_force import edit_of
from grb.attack import AttackContext, run_attack
from grb.attack.losses import tanh_margin
from grb.attack.modification import FGA, LocalSearch
from grb.attack.modification.gradient import Victim, _ByAutograd
from grb.attack.modification.local import LocalEvaluator, evaluator_of
from grb.defense.defended import Defended
from grb.defense.preprocess import Cosine, Jaccard, Pruning
from grb.graph import CSR, Graph, Pattern
from grb.model.base import predict
from grb.model.torch import GCN
from grb.threat import Modification

GRAPH = random_graph(16, density=0.3, seed=5)
PAIRS = torch.triu_indices(16, 16, 1)
PARTS = [Jaccard(0.34), Cosine(0.2)]


def defended(part: Pruning) -> Defended:
    inner = GCN(GRAPH.num_features, 3, hidden_features=[6], generator=torch.Generator().manual_seed(1))
    return Defended(inner, part).eval().requires_grad_(False)


@pytest.mark.parametrize("part", PARTS, ids=["jaccard", "cosine"])
def test_pairs_are_visible_as_the_filter_says(part: Pruning) -> None:
    visible = part.visible(GRAPH.x, PAIRS)
    assert visible.any() and not visible.all()
    assert isinstance(GRAPH.x, Tensor)
    assert torch.equal(visible, part.visible(GRAPH.x, PAIRS.flip(0))), "either end may come first"
    nodes = torch.arange(16)
    assert torch.equal(part.visible_block(GRAPH.x, nodes, nodes)[PAIRS[0], PAIRS[1]], visible)
    rows, columns = GRAPH.x.shape
    every = Pattern(torch.arange(rows + 1) * columns, torch.arange(columns).repeat(rows), columns)
    sparse = CSR(every, GRAPH.x.flatten())
    assert torch.equal(part.visible(sparse, PAIRS), visible)
    assert torch.equal(part.visible_block(sparse, nodes, nodes)[PAIRS[0], PAIRS[1]], visible)
    wide = Graph(GRAPH.apply(edit_of(context_of(part), PAIRS[:, ~GRAPH.adj.has(PAIRS)])).adj, GRAPH.x)
    assert torch.equal(part(wide).adj.has(PAIRS), visible)


def context_of(part: Pruning, budget: int = 3) -> AttackContext:
    return AttackContext(view_of(GRAPH, range(10)), Modification(edges=budget), defended(part), "white-box")


@pytest.mark.parametrize("part", PARTS, ids=["jaccard", "cosine"])
def test_gradients_are_those_of_the_defended_model(part: Pruning) -> None:
    model = defended(part)
    victim = Victim(model, GRAPH, torch.arange(10), tanh_margin)
    assert victim.closed_form
    found = victim.gradient(GRAPH.adj)
    visible = part.visible(GRAPH.x, PAIRS)
    own = found.of(PAIRS)
    assert not own[~visible].any() and own[visible].any()
    torch.testing.assert_close(own, _ByAutograd(victim, GRAPH.adj).of(PAIRS) * visible, rtol=1e-4, atol=1e-6)
    nodes = torch.arange(16)
    torch.testing.assert_close(found.block(nodes, nodes)[PAIRS[0], PAIRS[1]], own, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("part", PARTS, ids=["jaccard", "cosine"])
def test_local_outcomes_are_those_of_the_defended_model(part: Pruning) -> None:
    context = context_of(part)
    assert context.model is not None
    victim = Victim(context.model, GRAPH, context.targets, tanh_margin)
    evaluator = evaluator_of(victim, GRAPH.adj, tanh_margin)
    assert isinstance(evaluator, LocalEvaluator)
    labels = predict(context.model, GRAPH)[:10].argmax(1)
    assert torch.equal(victim.labels, labels) and evaluator.right.all()
    found = evaluator.outcomes(PAIRS, torch.arange(PAIRS.shape[1]), PAIRS.shape[1])
    for number in range(PAIRS.shape[1]):
        logits = predict(context.model, GRAPH.apply(edit_of(context, PAIRS[:, [number]])))[:10]
        assert int((logits.argmax(1) == labels).sum()) == 10 + int(found.kept[number])
    flips = PAIRS[:, ::7]
    evaluator.flip(flips)
    logits = predict(context.model, GRAPH.apply(edit_of(context, flips)))[:10]
    assert torch.equal(evaluator.right, logits.argmax(1) == labels)


@pytest.mark.parametrize("attack", [FGA(), LocalSearch(candidates=40, rounds=2)], ids=["fga", "local-search"])
@pytest.mark.parametrize("part", PARTS, ids=["jaccard", "cosine"])
def test_no_flip_is_wasted_on_the_filter(part: Pruning, attack: FGA | LocalSearch) -> None:
    edit = run_attack(attack, context_of(part), seed=0).edit
    flips = torch.cat([edit.add, edit.drop], dim=1)
    assert flips.shape[1] and part.visible(GRAPH.x, flips).all()


def test_a_similarity_that_looks_at_more_than_both_ends_is_no_mask() -> None:
    class ByDegree(Pruning):
        def similarity(self, graph: Graph) -> Tensor:
            return graph.adj.degrees.float()[graph.adj.pattern.row_ids.long()] / graph.n

    assert defended(ByDegree(0.1)).edge_mask() is None
