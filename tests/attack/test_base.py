"""The papers' names of an attack's arguments, and limits that no attack can raise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from attack.contexts import context_of, random_graph, view_of
from grb.attack import AttackContext, run_attack
from grb.attack.build import build_attack
from grb.attack.injection import FGSM, PGD, TDGIA
from grb.attack.modification import FGA, PRBCD, TopologyPGD
from grb.errors import BudgetError, DataError
from grb.graph import Graph, GraphEdit
from grb.model.torch import GCN
from grb.threat import Injection, Modification


@pytest.mark.parametrize("maker", [FGSM, PGD, TDGIA, TopologyPGD, PRBCD])
def test_the_papers_names_of_steps_are_accepted(maker: Any) -> None:
    assert maker(n_epoch=7) == maker(steps=7) and maker(n_epoch=7).steps == 7
    with pytest.raises(DataError, match="steps was given twice, also under the paper's name"):
        maker(n_epoch=7, steps=7)


def test_a_step_has_the_papers_name_too() -> None:
    assert FGSM(epsilon=0.5) == FGSM(step_size=0.5) == build_attack("fgsm", "none", epsilon=0.5)
    with pytest.raises(TypeError, match="radius"):
        PRBCD(radius=0.5)


class Raising:
    """Raises its own limit, in the frozen threat model that it was lent and in the context itself."""

    def __call__(self, context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        wide = 100
        if isinstance(context.threat, Injection):
            object.__setattr__(context.threat, "nodes", wide)
            object.__setattr__(context.injection, "feature_range", (-1e9, 1e9))
            object.__setattr__(context, "threat", Injection(wide, wide, (-1e9, 1e9)))
            rows = torch.full((wide, context.graph.num_features), 7.0)
            return GraphEdit(context.graph.n, new_x=rows)
        object.__setattr__(context.threat, "edges", wide)
        return GraphEdit(context.graph.n, drop=context.graph.adj.edges()[:, :3])


def test_an_attack_cannot_raise_its_own_limits() -> None:
    context = context_of(random_graph(12), [0, 1], None, nodes=9)
    with pytest.raises(BudgetError, match="100 nodes are injected, but the threat model allows nodes=9"):
        run_attack(Raising(), context, seed=0)
    assert context.threat == Injection(9, 2, (-1.0, 1.0))


def test_an_attack_cannot_raise_the_limits_of_a_modification() -> None:
    threat = Modification(edges=2)
    with pytest.raises(BudgetError, match="3 edges are changed, but the threat model allows 2"):
        run_attack(Raising(), AttackContext(view_of(random_graph(12), [0]), threat), seed=0)
    assert threat == Modification(edges=2)


def test_an_attack_cannot_raise_the_limits_of_a_collection() -> None:
    graph = random_graph(12)
    many = Graph(graph.adj, graph.x, None, torch.tensor([0, 12]))
    threat = Injection(1, 1, (-1.0, 1.0))
    with pytest.raises(BudgetError, match="100 nodes are injected, but the threat model allows nodes=1"):
        run_attack(Raising(), AttackContext(view_of(many, [0]), threat), seed=0)
    assert threat == Injection(1, 1, (-1.0, 1.0))


def test_true_labels_are_for_the_evaluators_white_box_attacks() -> None:
    graph = random_graph(12)
    model = GCN(graph.num_features, 3).eval()
    context = context_of(graph, [0, 1], model, nodes=2)
    aims = torch.tensor([1, 2])
    with pytest.raises(DataError, match="evaluator's own white-box attacks"):
        run_attack(FGSM(steps=2), replace(context, true_labels=aims), seed=0)
    white = replace(context, knowledge="white-box")
    with pytest.raises(DataError, match="one whole number per target"):
        run_attack(FGSM(steps=2), replace(white, true_labels=aims[:1]), seed=0)
    result = run_attack(FGSM(steps=2), replace(white, true_labels=aims), seed=0)
    assert result.labels == "true" and run_attack(FGSM(steps=2), white, seed=0).labels == "predicted"


@pytest.mark.parametrize(
    "threat", [Injection(2, 2, (-1.0, 1.0)), Modification(edges=3)], ids=["injection", "modification"]
)
def test_an_attack_aims_at_the_labels_that_it_is_given(threat: Any) -> None:
    graph = random_graph(12)
    model = GCN(graph.num_features, 3).eval()
    context = AttackContext(view_of(graph, [0, 1]), threat, model, "white-box")
    attack = FGSM(steps=5) if isinstance(threat, Injection) else FGA()
    kept = {}
    for label in range(3):
        aims = torch.full((2,), label)
        kept[label] = run_attack(attack, replace(context, true_labels=aims), seed=0).steps[0].accuracy
    assert sum(kept.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("name", ["rnd", "dice", "flip"])
def test_an_attack_that_asks_for_no_model_knows_nothing_of_it(name: str) -> None:
    import grb

    dataset = grb.load_dataset("synth-tiny")
    attack = build_attack(name, "synth-tiny")
    needs = getattr(attack, "needs_model", True)
    result = grb.run_attack(name, grb.train("gcn", dataset, epochs=2), dataset)
    assert result.knowledge == ("white-box" if needs else "none")
