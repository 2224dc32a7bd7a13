"""Injection attacks by named parts."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import grb
from attack.contexts import context_of, random_graph, same_edit, victim
from grb.attack import run_attack
from grb.attack.build import build_attack
from grb.attack.injection import ComposedInjection
from grb.attack.injection.edges import EDGE_RULES
from grb.attack.injection.starts import STARTS, Wiring
from grb.attack.losses import LOSSES, cross_entropy
from grb.errors import DataError, GRBError

CONTEXT = context_of(random_graph(40), range(30), victim("gcn", 4), nodes=4, edges=4)
QUICK = {"steps": 4, "refine": 2, "rewirings": 3}


def kept(attack: ComposedInjection, seed: int = 0) -> float:
    """Fraction of targets that keep their label."""
    result = run_attack(attack, CONTEXT, seed=seed)
    model = victim("gcn", 4).eval()
    clean = grb.model.base.predict(model, CONTEXT.graph)[CONTEXT.targets].argmax(1)
    after = grb.model.base.predict(model, CONTEXT.graph.apply(result.edit))[CONTEXT.targets].argmax(1)
    return float((clean == after).float().mean())


@pytest.mark.parametrize("edges", EDGE_RULES)
@pytest.mark.parametrize("start", STARTS)
def test_every_rule_goes_with_every_start(edges: str, start: str) -> None:
    result = run_attack(ComposedInjection(edges=edges, start=start, **QUICK), CONTEXT, seed=0)  # type: ignore[arg-type]
    assert result.budget["nodes"] == 4 and result.notes == ()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("optimiser", ["adam", "sine", "sign", "apgd"])
def test_every_loss_goes_with_every_optimiser(loss: str, optimiser: str) -> None:
    attack = ComposedInjection(loss=loss, optimiser=optimiser, **QUICK)  # type: ignore[arg-type]
    assert kept(attack) < 1


def test_exchanged_edges_and_restarts_never_keep_more_labels() -> None:
    plain = [kept(ComposedInjection(start="noise", steps=10, refine=5, rewirings=rounds)) for rounds in (0, 2, 12)]
    assert plain == sorted(plain, reverse=True) and plain[-1] < plain[0]
    # the draws of the first attempt do not depend on how many follow
    once, often = (kept(ComposedInjection(steps=10, rewirings=0, restarts=number)) for number in (1, 4))
    assert often <= once


def test_a_large_weight_of_homophily_makes_injected_nodes_similar_to_their_neighbours() -> None:
    def similarity(weight: float) -> float:
        attack = ComposedInjection(start="noise", steps=60, rewirings=0, homophily=weight)
        edit = run_attack(attack, CONTEXT, seed=0).edit
        attacked = CONTEXT.graph.apply(edit)
        from grb.attack.injection.homophily import homophily

        assert edit.new_x is not None
        return float(homophily(1.0, attacked, 4)(edit.new_x))

    assert similarity(100.0) > similarity(0.0) + 0.1


def test_custom_parts_take_the_place_of_named_ones() -> None:
    def zeros(wiring: Wiring, generator: torch.Generator) -> Tensor:
        return torch.zeros(wiring.shape)

    attack = ComposedInjection(edges=EDGE_RULES["uniform"], start=zeros, loss=cross_entropy, steps=0, rewirings=0)
    edit = run_attack(attack, CONTEXT, seed=0).edit
    assert edit.new_x is not None and not edit.new_x.any()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"edges": "clases"}, "no choice of edges 'clases'. Did you mean 'classes'?"),
        ({"start": "nose"}, "Did you mean 'noise'?"),
        ({"loss": "hinge"}, "Allowed: cross-entropy, masked-cross-entropy"),
        ({"optimiser": "sgd"}, "one of adam, sine, sign, apgd is needed"),
        ({"schedule": "linear"}, "one of constant, cosine is needed"),
        ({"schedule": "cosine", "optimiser": "apgd"}, "'apgd' has its own"),
        ({"rewire_by": "luck"}, "one of gradients, margins is needed"),
        ({"restarts": 0}, "restarts is 0, but at least 1 is needed"),
        ({"share": 0.0}, "share is 0.0, but must be above 0"),
        ({"fraction": 1.5}, "fraction is 1.5"),
        ({"homophily": -1.0}, "homophily is -1.0"),
        ({"rewirings": -1}, "rewirings is -1"),
    ],
)
def test_wrong_choices_are_refused(wrong: dict[str, object], sentence: str) -> None:
    with pytest.raises(GRBError, match=sentence):
        ComposedInjection(**wrong)  # type: ignore[arg-type]


def test_a_relaxation_that_the_model_does_not_have_is_refused() -> None:
    with pytest.raises(GRBError, match="no relaxation of 'gcn' 'smooth'. It has none"):
        run_attack(ComposedInjection(relaxation="smooth"), CONTEXT, seed=0)


def test_a_name_brings_its_own_settings_and_not_those_of_the_papers() -> None:
    attack = build_attack("composed-injection", "grb-cora", iterations=7)
    assert isinstance(attack, ComposedInjection)
    assert attack.steps == 7 and attack.step_size == ComposedInjection().step_size
    with pytest.raises(DataError, match="is a limit"):
        build_attack("composed-injection", "grb-cora", n_inject_max=5)


def test_true_labels_are_aimed_at_where_they_are_given() -> None:
    true = torch.randint(4, (30,), generator=torch.Generator().manual_seed(3))
    aimed = context_of(random_graph(40), range(30), victim("gcn", 4), 4, 4, knowledge="white-box", true_labels=true)
    attack = ComposedInjection(**QUICK)  # type: ignore[arg-type]
    assert not same_edit(run_attack(attack, aimed, seed=0).edit, run_attack(attack, CONTEXT, seed=0).edit)
