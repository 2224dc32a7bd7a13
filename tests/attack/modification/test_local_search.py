"""The local search only gets better, finds what there is to find, and is not fooled by gradients."""

from __future__ import annotations

import pytest
import torch

from attack.contexts import random_graph, victim, view_of
from attack.modification.brute_force import fewest, kept
from grb.attack import AttackContext, run_attack
from grb.attack.losses import masked_cross_entropy
from grb.attack.modification import FGA, EvAPlus, LocalSearch
from grb.attack.modification.exchange import COSTLY, Exchange
from grb.attack.modification.local import FEWEST
from grb.attack.modification.local_search import ByGradients
from grb.attack.modification.scores import victim_of
from grb.errors import DataError
from grb.graph import Graph
from grb.model.build import Settings, build
from grb.threat import Modification


def context_on(graph: Graph, budget: int, classes: int = 3, **more: object) -> AttackContext:
    return AttackContext(view_of(graph, range(graph.n)), Modification(edges=budget, **more), victim("gcn", classes))  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(8))
def test_one_flip_is_the_best_one(seed: int) -> None:
    context = context_on(random_graph(12, density=0.25, seed=seed), 1)
    edit = run_attack(LocalSearch(rounds=0), context, seed=0).edit
    assert kept(context, edit) == fewest(context, 1)


@pytest.mark.parametrize("seed", range(2))
def test_two_flips_are_the_best_two(seed: int) -> None:
    context = context_on(random_graph(8, density=0.25, seed=seed), 2)
    edit = run_attack(LocalSearch(rounds=2), context, seed=0).edit
    assert kept(context, edit) == fewest(context, 2)


@pytest.mark.parametrize("limits", [{}, {"per_node": 0.5}, {"allow_isolate": False}, {"allow": ("drop",)}])
def test_exchanges_never_make_it_worse(limits: dict[str, object]) -> None:
    context = context_on(random_graph(40, density=0.12, seed=1), 8, **limits)
    values = []

    def watch(rounds: int) -> tuple[int, float]:
        generator = torch.Generator().manual_seed(0)
        own = victim_of(context, masked_cross_entropy)
        search = Exchange(context, own, ByGradients(own, 40, generator), 2, generator)
        search.grow()
        for _ in range(rounds):
            values.append((search.value[0], round(search.value[1], 4)))
            search.exchange(1, 0.5)
        context.modification.check(context.graph, search.state.edit)
        expected = kept(context, search.state.edit)
        assert len(context.targets) - search.value[0] == expected
        return search.value

    last = watch(6)
    assert sorted(values) == values and last[0] >= values[-1][0]


def test_it_goes_on_from_another_attack() -> None:
    context = context_on(random_graph(60, density=0.08, seed=2), 8)
    first = run_attack(FGA(), context, seed=0).edit
    then = run_attack(LocalSearch(start=FGA(), rounds=4), context, seed=0).edit
    assert kept(context, then) <= kept(context, first)


def test_it_leaves_no_more_than_fga_on_the_way() -> None:
    contexts = [context_on(random_graph(60, density=0.08, seed=seed), 8) for seed in range(5)]
    left = {
        attack: sum(kept(context, run_attack(attack, context, seed=0).edit) for context in contexts)
        for attack in (FGA(), FGA(loss=masked_cross_entropy), LocalSearch(rounds=4))
    }
    assert left[LocalSearch(rounds=4)] <= min(left.values())


def test_settings_without_meaning_are_refused() -> None:
    with pytest.raises(DataError, match="share is 2"):
        LocalSearch(share=2)


def test_a_search_ends_soon_where_every_alternative_takes_an_expensive_pass() -> None:
    """Personalised PageRank of all nodes for every flip: minutes at Cora's size, hours with exchanges."""
    graph = random_graph(40, density=0.2, seed=0)
    made = Settings("softmedian-gdc", {"hidden_features": [4]})
    model = build(made, graph.num_features, 3, torch.Generator().manual_seed(0)).eval().requires_grad_(False)
    context = AttackContext(view_of(graph, range(40)), Modification(edges=60), model)
    result = run_attack(EvAPlus(refresh=1, rounds=20), context, seed=0)
    assert result.budget["edges"] and 0 < result.passes.forward <= 4 + (FEWEST + 1) * COSTLY
