"""The suite for methods of others: our own pass it, and every planted defect fails the rule that it breaks."""

from __future__ import annotations

import pytest

from evaluator import planted
from grb.attack.build import build_attack
from grb.catalogue import resolve
from grb.defense import build_defense
from grb.errors import DataError
from grb.evaluator.testing import conformance
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
    assert broken and rule in broken[0].rule and words in broken[0].sentence, broken


def test_a_kind_without_rules_is_refused():
    with pytest.raises(DataError, match="are those with rules"):
        conformance("dataset", object())
