"""The suite for methods of others: our own pass it, and every planted defect fails the rule that it breaks."""

from __future__ import annotations

import pytest

from evaluator import planted
from grb.attack.build import build_attack
from grb.catalogue import resolve
from grb.defense import build_defense
from grb.errors import DataError
from grb.evaluator.testing import (
    RULES,
    ConformanceError,
    check_attack,
    check_defense,
    check_model,
    check_perturbation,
    conformance,
    parametrize_with_checks,
)
from grb.perturb import build_perturbation

SOUND = {
    "attack": [planted.Honest, build_attack("fgsm", "synth-tiny", iterations=3), build_attack("dice", "synth-tiny")],
    "model": [planted.Good, *(resolve("model", name) for name in ("gcn", "gat", "gin", "mlp"))],
    "defense": [planted.Fitted, build_defense("gcn", "synth-tiny", epochs=30)],
    "perturbation": [planted.Shuffled, build_perturbation("noedges"), build_perturbation("randftrs")],
}
DEFECTS = [
    ("attack", planted.Greedy, "keeps the limits and leaves", "the threat model allows"),
    ("attack", planted.Moody, "the same edit for the same seed", "draw from the generator alone"),
    ("attack", planted.Crowding, "on small graphs", "edges_per_node"),
    ("attack", planted.Tuple, "runs and returns an edit", "but a GraphEdit is needed"),
    ("attack", planted.Vandal, "keeps the limits and leaves", "changed"),
    ("model", planted.Noisy, "deterministic in evaluation", "two evaluations of one graph differ"),
    ("model", planted.Wrecking, "leaves its input alone", "changes its input in place"),
    ("model", planted.Idle, "gradients at every parameter", "'spare'"),
    ("model", planted.Masked, "gradients at the features", "no gradient"),
    ("model", planted.Ordered, "the order of nodes", "another order"),
    ("model", planted.Blind, "finite logits", "NaN"),
    ("model", planted.Narrow, "runs and gives a row", "logits of shape"),
    ("model", planted.Restaged, "stages", "attacks see the stages"),
    ("model", planted.Unnamed, "comes back from a file", "give the class Unnamed a name of its own"),
    ("defense", planted.Good, "can be made without arguments", "check it as a model"),
    ("defense", planted.Lucky, "the same model for the same seed", "two different models"),
    ("defense", planted.Lazy, "learns something", "no more than the commonest class"),
    ("defense", planted.Nothing, "runs and returns a model", "an nn.Module is needed"),
    ("perturbation", planted.Drawing, "the same graph for the same seed", "two different graphs"),
    ("perturbation", planted.Dirty, "leaves its input alone", "changes the graph"),
    ("perturbation", planted.Losing, "keeps every node", "must keep all"),
    ("perturbation", planted.Poisonous, "", "NaN"),
    ("perturbation", planted.Relabelling, "keeps the labels", "changes the labels"),
]


@pytest.mark.parametrize(("kind", "method"), [(kind, each) for kind, listed in SOUND.items() for each in listed])
def test_sound_methods_keep_every_rule(kind, method):
    findings = conformance(kind, method)
    assert len(findings) >= 4 and [each for each in findings if not each.kept] == []


@pytest.mark.parametrize(("kind", "method", "rule", "words"), DEFECTS, ids=[each[1].__name__ for each in DEFECTS])
def test_every_planted_defect_is_found_for_the_right_reason(kind, method, rule, words):
    broken = [each for each in conformance(kind, method) if not each.kept]
    assert broken and rule in broken[0].rule and words in broken[0].message, broken


def test_a_kind_without_rules_is_refused():
    with pytest.raises(DataError, match="are those with rules"):
        conformance("dataset", object())


CHECKS = {"attack": check_attack, "model": check_model, "defense": check_defense, "perturbation": check_perturbation}


@pytest.mark.parametrize("kind", CHECKS)
def test_one_call_checks_all_rules(kind):
    CHECKS[kind](SOUND[kind][0])
    broken = next(method for each, method, *_ in DEFECTS if each == kind)
    with pytest.raises(ConformanceError, match=f"{kind} {broken.__name__} breaks '"):
        CHECKS[kind](broken)


@parametrize_with_checks("attack", [planted.Honest, build_attack("dice", "synth-tiny")])
def test_every_rule_is_a_test(check):
    check()


def test_the_decorator_names_method_and_rule_and_fails_for_the_right_reason():
    mark = parametrize_with_checks("attack", [planted.Moody, planted.Tuple]).mark
    rules = RULES["attack"]
    assert mark.kwargs["ids"] == [f"{name}: {rule}" for name in ("Moody", "Tuple") for rule in rules]
    results = {}
    for name, check in zip(mark.kwargs["ids"], mark.args[1], strict=True):
        try:
            check()
            results[name] = ""
        except ConformanceError as error:
            results[name] = str(error)
    assert not results[f"Moody: {rules[0]}"] and "draw from the generator alone" in results[f"Moody: {rules[2]}"]
    assert all("but a GraphEdit is needed" in results[f"Tuple: {rule}"] for rule in rules)  # no rule without a run


def test_the_decorator_refuses_other_kinds():
    with pytest.raises(DataError, match="are those with rules"):
        parametrize_with_checks("dataset", [])
