"""PR-BCD, GR-BCD and topology PGD: strength beside torch_geometric's, and what a block changes."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import grb
from attack.contexts import random_graph, victim, view_of
from grb.attack import AttackContext, run_attack
from grb.attack.losses import tanh_margin
from grb.attack.modification import FGA, GRBCD, PRBCD, TopologyPGD
from grb.attack.modification import relaxation as module
from grb.dataset import Dataset
from grb.errors import DataError
from grb.graph import GraphEdit
from grb.model.base import predict
from grb.model.to_pyg import to_pyg
from grb.model.torch import GAT
from grb.threat import Modification


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return grb.load_dataset("synth-tiny")


@pytest.fixture(scope="module")
def model(dataset: Dataset) -> nn.Module:
    return grb.train("gcn", dataset, seed=0, epochs=100)


def score(attack: Any, model: nn.Module, dataset: Dataset, seed: int = 0, **limits: Any) -> float:
    threat = Modification(**({"edge_ratio": 0.05} | limits))
    return grb.evaluate(model, dataset, grb.run_attack(attack, model, dataset, threat=threat, seed=seed))["full"]


def pyg_score(model: nn.Module, dataset: Dataset, seed: int, epochs: int, block: int, loss: str) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.contrib.nn import PRBCDAttack
    edges = dataset.graph.adj.edges()
    labels = predict(model, dataset.graph).argmax(1)
    attack = PRBCDAttack(
        to_pyg(model), block_size=block, epochs=epochs, epochs_resampling=3 * epochs // 4, loss=loss, log=False
    )
    budget = Modification(edge_ratio=0.05).budget(dataset.graph)
    flags = [parameter.requires_grad for parameter in model.parameters()]
    model.requires_grad_(False)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        both = torch.cat([edges, edges.flip(0)], dim=1)
        _, flipped = attack.attack(dataset.features, both, labels, budget, idx_attack=dataset.index_test)
    for parameter, flag in zip(model.parameters(), flags, strict=True):
        parameter.requires_grad_(flag)
    pairs = torch.unique(torch.stack([flipped.min(0).values, flipped.max(0).values]), dim=1)
    present = dataset.graph.adj.has(pairs)
    edit = GraphEdit(n=dataset.num_nodes, add=pairs[:, ~present], drop=pairs[:, present])
    return grb.evaluate(model, dataset, edit)["full"]


def test_pr_bcd_is_as_strong_as_that_of_torch_geometric(dataset: Dataset, model: nn.Module) -> None:
    """Same budget, epochs and block; mean over seeds, at most one point weaker. Theirs with both of its losses."""
    seeds, epochs, block = range(2), 25, 3000
    ours = PRBCD(n_epoch=epochs, search_space_size=block)
    mean = sum(score(ours, model, dataset, seed) for seed in seeds) / len(seeds)
    for loss in ("prob_margin", "tanh_margin"):
        theirs = sum(pyg_score(model, dataset, seed, epochs, block, loss) for seed in seeds) / len(seeds)
        assert mean <= theirs + 0.01


def test_gradient_attacks_are_stronger_than_chance(dataset: Dataset, model: nn.Module) -> None:
    random = min(score("rnd-edges", model, dataset), score("dice", model, dataset))
    for attack in (
        PRBCD(n_epoch=30, search_space_size=5000),
        GRBCD(n_epoch=10, search_space_size=5000),
        TopologyPGD(n_epoch=30),
        FGA(refresh=4),
    ):
        assert score(attack, model, dataset) < random - 0.05


def test_a_block_that_covers_all_pairs_is_never_drawn_anew() -> None:
    """PR-BCD then differs from topology PGD by its step size alone."""
    context = AttackContext(view_of(random_graph(14), range(7)), Modification(edges=5), victim("gcn", 4))
    first, second = (
        run_attack(attack, context, seed=0)
        for attack in (
            PRBCD(n_epoch=6, search_space_size=10**6, n_epoch_resampling=0.0, lr_factor=0.2 * 14, max_final_samples=1),
            TopologyPGD(n_epoch=6, max_final_samples=1),
        )
    )
    assert first.steps == second.steps
    assert torch.equal(first.edit.add, second.edit.add) and torch.equal(first.edit.drop, second.edit.drop)


def test_every_step_stays_within_the_budget_and_the_lower_half_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[module.Block] = []
    original = module.Search._step

    def spy(self: module.Search, block: module.Block, rate: float) -> module.Block:
        seen.append(original(self, block, rate))
        return seen[-1]

    monkeypatch.setattr(module.Search, "_step", spy)
    graph = random_graph(40, density=0.1)
    for limits in ({}, {"per_node": 0.5}):
        seen.clear()
        context = AttackContext(view_of(graph, range(20)), Modification(edges=12, **limits), victim("gcn", 4))
        run_attack(PRBCD(n_epoch=8, search_space_size=100, lr_factor=1000.0), context, seed=0)
        for block in seen:
            assert (block.weights >= 0).all() and (block.weights <= 1).all()
            assert float(block.weights.sum()) <= 12 + 1e-3
            assert len(block.numbers) == 100 and (block.numbers.diff() > 0).all()
        fresh = [len(set(b.numbers.tolist()) - set(a.numbers.tolist())) for a, b in zip(seen, seen[1:])]
        assert min(fresh[:5]) >= 50 and fresh[6] == 0
        if limits:
            pairs = scene_pairs(context, seen[-1])
            sums = torch.zeros(40).index_add_(0, pairs.flatten(), seen[-1].weights.repeat(2))
            assert (sums <= (graph.adj.degrees * 0.5).floor() + 1e-4).all()


def scene_pairs(context: AttackContext, block: module.Block) -> Tensor:
    from grb.attack.modification.base import SearchState

    return SearchState.of(context).space.pairs(block.numbers)


def test_small_blocks_grow_with_the_budget_and_say_so() -> None:
    context = AttackContext(view_of(random_graph(30), range(20)), Modification(edges=20), victim("gcn", 4))
    for attack in (PRBCD(n_epoch=2, search_space_size=5), GRBCD(n_epoch=2, search_space_size=5)):
        result = run_attack(attack, context, seed=0)
        assert "the block was enlarged to 80 pairs, four times the budget" in result.notes


def test_the_best_rounded_graph_is_kept() -> None:
    context = AttackContext(view_of(random_graph(30), range(20)), Modification(edges=6), victim("gcn", 4))
    result = run_attack(PRBCD(n_epoch=12, search_space_size=60, lr_factor=5000.0), context, seed=1)
    logits = predict(victim("gcn", 4), context.graph.apply(result.edit))[:20].argmax(1)
    kept = float((logits == predict(victim("gcn", 4), context.graph)[:20].argmax(1)).float().mean())
    assert kept == min(step.accuracy for step in result.steps)


def test_pairs_away_from_the_targets_are_looked_at_only_if_asked_for() -> None:
    context = AttackContext(view_of(random_graph(40, density=0.1), range(4)), Modification(edges=60), victim("gcn", 4))
    for maker in (PRBCD, GRBCD):
        near, far = (
            run_attack(maker(n_epoch=5, search_space_size=400, everywhere=flag), context, seed=0).edit
            for flag in (False, True)
        )
        assert (torch.cat([near.add, near.drop], dim=1) < 4).any(0).all()
        assert not (torch.cat([far.add, far.drop], dim=1) < 4).any(0).all()


def test_models_with_attention_are_attacked_by_autograd() -> None:
    model = GAT(3, 4, hidden_features=[4], heads=2, generator=torch.Generator().manual_seed(0))
    context = AttackContext(view_of(random_graph(20), range(10)), Modification(edges=4), model)
    for attack in (PRBCD(n_epoch=3, search_space_size=50), GRBCD(n_epoch=3, search_space_size=50), FGA(refresh=4)):
        result = run_attack(attack, context, seed=0)
        assert result.budget["edges"] > 0 and any("no closed form" in note for note in result.notes)
        assert result.steps[-1].loss > 0 or result.steps[-1].loss >= result.steps[0].loss


def test_topology_pgd_refuses_graphs_with_too_many_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grb.attack.modification.pgd.MOST_PAIRS", 10)
    context = AttackContext(view_of(random_graph(10), range(5)), Modification(edges=1), victim("gcn", 2))
    with pytest.raises(DataError, match="have 35 pairs, but PGD on all of them is for 10 at most; use pr-bcd"):
        run_attack(TopologyPGD(), context, seed=0)


@pytest.mark.parametrize(
    ("maker", "options", "sentence"),
    [
        (PRBCD, {"n_epoch": 0}, "steps is 0"),
        (GRBCD, {"search_space_size": 0}, "search_space_size is 0"),
        (PRBCD, {"n_epoch_resampling": 2}, "n_epoch_resampling is 2"),
        (PRBCD, {"lr_factor": -1.0}, "lr_factor is -1.0"),
        (TopologyPGD, {"max_final_samples": 0}, "max_final_samples is 0"),
        (TopologyPGD, {"epsilon": float("nan")}, "step_size is nan"),
        (FGA, {"refresh": 0}, "refresh is 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(maker: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        maker(**options)


def test_a_loss_of_ones_own_is_used(dataset: Dataset, model: nn.Module) -> None:
    threat = Modification(edge_ratio=0.02)
    attack = GRBCD(n_epoch=3, search_space_size=2000, loss=tanh_margin)
    result = grb.run_attack(attack, model, dataset, threat=threat)
    clean = predict(model, dataset.graph)[dataset.index_test]
    expected = float(tanh_margin(clean, clean.argmax(1)).mean())
    assert result.steps[0].loss == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("attack", [PRBCD(steps=5, search_space_size=2_000), TopologyPGD(steps=3)])
def test_refined_flips_never_leave_more_labels_than_the_rounding_before_them(
    model: nn.Module, dataset: Dataset, attack: PRBCD | TopologyPGD
) -> None:
    targets, clean = dataset.index_test, predict(model, dataset.graph).argmax(1)

    def kept(**changes: Any) -> float:
        found = grb.run_attack(replace(attack, **changes), model, dataset, threat=Modification(edge_ratio=0.05), seed=3)
        after = predict(model, dataset.graph.apply(found.edit)).argmax(1)
        return float((after == clean)[targets].float().mean())

    rounded = kept(refinements=0)
    assert kept() < rounded
    assert kept(refined_by=()) <= rounded
