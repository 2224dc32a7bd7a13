"""Flips that lower a degree of a low-rank graph, as the formula says, and what they do to GCN-SVD."""

from __future__ import annotations

import pytest
import torch

from attack.contexts import random_graph, view_of
from grb.attack import AttackContext, run_attack
from grb.attack.modification import LowRankCollapse
from grb.attack.modification.low_rank_collapse import _Falls
from grb.defense.gcnsvd import GCNSVD
from grb.errors import DataError
from grb.graph import convert
from grb.model.torch import GCN
from grb.threat import Modification

GRAPH = random_graph(80, density=0.05, seed=4)


def context_of(model: torch.nn.Module, budget: int = 12) -> AttackContext:
    return AttackContext(view_of(GRAPH, range(60)), Modification(edges=budget), model.eval(), "white-box")


def low_rank() -> GCNSVD:
    made = GCNSVD(GRAPH.num_features, 3, hidden_features=[8], rank=4, generator=torch.Generator().manual_seed(0))
    return made.requires_grad_(False)


def test_the_fall_of_a_degree_is_that_of_the_projected_graph() -> None:
    _, vectors = low_rank().eigenpairs(GRAPH.adj)
    projection = (vectors @ vectors.T).double()
    dense = torch.from_numpy(convert.to_scipy(GRAPH.adj).toarray()).double()
    node, pairs = 7, torch.triu_indices(80, 80, 1)[:, ::97]
    falls = _Falls((vectors @ vectors[node]).float(), vectors @ vectors.sum(0))
    for number, (a, b) in enumerate(pairs.T.tolist()):
        flipped = dense.clone()
        flipped[a, b] = flipped[b, a] = 1.0
        before, after = ((projection @ matrix @ projection).sum(1)[node] for matrix in (dense, flipped))
        if dense[a, b] == 0:
            assert float(falls.adds(pairs)[number]) == pytest.approx(float(before - after), abs=1e-4)
    block = falls.add_block(torch.arange(5), torch.arange(9))
    assert torch.allclose(block[2, 6], falls.adds(torch.tensor([[2], [6]]))[0])


def test_it_takes_labels_from_a_low_rank_model_and_only_gets_better() -> None:
    result = run_attack(LowRankCollapse(steps=24), context_of(low_rank()), seed=0)
    left = [step.accuracy for step in result.steps]
    assert left == sorted(left, reverse=True) and left[-1] < 1
    assert 0 < result.budget["edges"] <= 12


def test_a_surrogate_that_keeps_the_whole_graph_is_attacked_with_the_rank_given() -> None:
    gcn = GCN(GRAPH.num_features, 3, hidden_features=[8], generator=torch.Generator().manual_seed(0))
    assert run_attack(LowRankCollapse(steps=6, rank=4), context_of(gcn), seed=0).budget["edges"] <= 12
    with pytest.raises(DataError, match="all must be at least 1"):
        LowRankCollapse(rank=0)
