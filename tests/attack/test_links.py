"""Attacks on link prediction: within the limits, without the answers, and worse for the model than chance."""

from __future__ import annotations

from dataclasses import fields

import networkx as nx
import numpy as np
import pytest
import torch

from grb.attack.links import GreedyLinks, LinkContext, RandomLinks, check_link_edit, run_link_attack
from grb.attack.untouched import AttackError
from grb.errors import BudgetError, DataError
from grb.graph import Graph, GraphEdit, adjacency_from_edges
from grb.model.profiling import profiler
from grb.threat import Modification
from grb.trainer.links import LinkGNN, LinkSplit, fit_link_model, fit_links, score_links, split_links

CHOSEN = profiler("gcn", collection=False, width=16, epochs=60, depth=2)


@pytest.fixture(scope="module")
def split() -> LinkSplit:
    source = nx.stochastic_block_model([40, 40], [[0.25, 0.01], [0.01, 0.25]], seed=0)
    x = torch.randn(80, 6, generator=torch.Generator().manual_seed(0))
    x[:40, 0] += 1
    adj = adjacency_from_edges(np.array(list(source.edges)).T, 80)[0]
    return split_links(Graph(adj, x, torch.arange(80) % 3), 0)


@pytest.fixture(scope="module")
def victim(split: LinkSplit) -> LinkGNN:
    return fit_link_model(split, CHOSEN, seed=0)[0]


def keys(pairs: torch.Tensor) -> set[tuple[int, int]]:
    return {(min(pair), max(pair)) for pair in pairs.T.tolist()}


def test_the_model_has_the_weights_of_its_best_epoch(split, victim) -> None:
    assert score_links(victim, split.message, split).auroc == fit_links(split, CHOSEN, seed=0).auroc


def test_the_attacker_sees_neither_labels_nor_an_order_that_tells_them(split) -> None:
    context = LinkContext.of(split, Modification(edges=3))
    assert context.true_labels is None and context.graph.y is None
    for pairs, whole in ((context.pairs, split.test), (context.scored, split.scored)):
        numbers = pairs.min(0).values * split.message.n + pairs.max(0).values
        assert (numbers.diff() > 0).all()
        assert keys(pairs) == keys(whole)
    # all edges of the graph, the held-out ones among them, are nowhere in it
    assert "split" not in {each.name for each in fields(context)}
    true = LinkContext.of(split, Modification(edges=3), labels="true")
    edges = keys(split.test[:, split.labels("test") == 1])
    assert keys(true.pairs[:, true.true_labels == 1]) == edges


@pytest.mark.parametrize("attack", [RandomLinks(), RandomLinks("drop"), RandomLinks("add"), GreedyLinks(steps=4)])
@pytest.mark.parametrize("labels", ["predicted", "true"])
def test_attacks_keep_to_the_budget_and_away_from_scored_pairs(split, victim, attack, labels) -> None:
    threat = Modification(edge_ratio=0.2)
    found = run_link_attack(attack, split, threat, victim=victim, labels=labels, seed=1)
    assert 0 < found.budget["edges"] <= threat.budget(split.message)
    assert not keys(found.edit.add) & keys(split.scored)
    assert not keys(found.edit.add) & keys(split.message.adj.edges())
    again = run_link_attack(attack, split, threat, victim=victim, labels=labels, seed=1)
    assert torch.equal(again.edit.add, found.edit.add) and again.attacked == found.attacked


def test_even_where_nearly_all_pairs_are_scored_none_of_them_comes() -> None:
    graph = Graph(
        adjacency_from_edges(np.array(list(nx.gnp_random_graph(11, 0.5, seed=1).edges)).T, 11)[0], torch.eye(11)
    )
    tight = split_links(graph, 0)
    model = fit_link_model(tight, CHOSEN, seed=0)[0]
    found = run_link_attack(GreedyLinks(steps=9), tight, Modification(edges=99), victim=model, labels="true", seed=0)
    assert not keys(found.edit.add) & keys(tight.scored)


def test_gradients_cost_more_than_chance_and_true_labels_at_least_as_much(split, victim) -> None:
    threat = Modification(edge_ratio=0.3)
    random = [
        run_link_attack(RandomLinks(), split, threat, victim=victim, seed=seed).attacked.auroc for seed in range(3)
    ]
    greedy = run_link_attack(GreedyLinks(), split, threat, victim=victim, labels="true", seed=0)
    assert greedy.clean == score_links(victim, split.message, split)
    assert greedy.attacked.auroc < min(random) - 0.05
    assert greedy.attacked.auroc < greedy.clean.auroc - 0.1


def test_a_surrogate_lends_its_gradients_and_the_victim_is_scored(split, victim) -> None:
    other = fit_link_model(split, CHOSEN, seed=5)[0]
    own = run_link_attack(GreedyLinks(), split, Modification(edges=20), victim=victim, seed=0)
    transfer = run_link_attack(GreedyLinks(), split, Modification(edges=20), victim=victim, surrogate=other, seed=0)
    assert transfer.clean == own.clean
    assert keys(transfer.edit.add) != keys(own.edit.add)


def test_an_edit_that_writes_an_answer_into_the_graph_is_refused(split, victim) -> None:
    for pairs in (split.test, split.val, split.test.flip(0)):
        edit = GraphEdit(n=split.message.n, add=pairs[:, -1:])
        with pytest.raises(BudgetError, match="pairs that are scored, which no attack may put into the graph"):
            check_link_edit(split, Modification(edges=5), edit)
        with pytest.raises(BudgetError, match="are scored"):
            run_link_attack(lambda *_, edit=edit, **__: edit, split, Modification(edges=5), victim=victim, seed=0)


def test_limits_of_the_threat_model_hold(split, victim) -> None:
    some = split.message.adj.edges()[:, :3]
    edit = GraphEdit(n=split.message.n, drop=some)
    with pytest.raises(BudgetError, match="3 edges are changed, but the threat model allows 2"):
        check_link_edit(split, Modification(edges=2), edit)
    with pytest.raises(BudgetError, match="allows only"):
        check_link_edit(split, Modification(edges=9, allow=("add",)), edit)

    def generous(context: LinkContext, *, generator: torch.Generator) -> GraphEdit:
        object.__setattr__(context.threat, "edges", 99)
        return edit

    with pytest.raises(BudgetError, match="allows 2"):
        run_link_attack(generous, split, Modification(edges=2), victim=victim, seed=0)


def test_nothing_allowed_changes_nothing(split, victim) -> None:
    found = run_link_attack(GreedyLinks(), split, Modification(edges=0), victim=victim, seed=0)
    assert found.edit.add.numel() == found.edit.drop.numel() == 0
    assert found.clean == found.attacked


def test_an_attack_that_changes_what_it_was_lent_is_refused(split, victim) -> None:
    def bad(context: LinkContext, *, generator: torch.Generator) -> GraphEdit:
        assert context.model is not None
        next(context.model.parameters()).data.add_(1.0)
        return GraphEdit(n=context.graph.n)

    kept = {name: value.clone() for name, value in victim.state_dict().items()}
    with pytest.raises(AttackError, match="changed the graph or the model"):
        run_link_attack(bad, split, Modification(edges=2), victim=victim, seed=0)
    victim.load_state_dict(kept)


def test_settings_that_make_no_sense_are_refused(split) -> None:
    with pytest.raises(DataError, match="'drop', 'add' or 'flip' is needed"):
        RandomLinks("swap")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="must be at least 1"):
        GreedyLinks(steps=0)
    with pytest.raises(DataError, match="'predicted' or 'true' is needed"):
        LinkContext.of(split, Modification(edges=1), labels="guessed")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="needs a model"):
        GreedyLinks()(LinkContext.of(split, Modification(edges=1)), generator=torch.Generator())
