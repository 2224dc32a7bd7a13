"""Sampled certificates against scores: what seems broken is sampled again, and only what is broken again is an error."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from grb.errors import IntegrityError
from grb.evaluator.certified import HIJACKED, CertifiedOutcome, broken, suspected
from grb.evaluator.measurement import Measurement, pack_bits
from grb.pipeline import Limits, Recipe, Spec, Store, plan_study, run
from grb.pipeline.gate import content_of
from grb.pipeline.sampled_bracket import check_sampled
from pipeline.parts import forge

RECIPE = Recipe(
    "sampled",
    "synth-tiny",
    defenses=(Spec("gcn+smooth", {"p_drop": 0.9, "p_node": 0.8, "samples": 20}), Spec("gcn+bounded")),
    attacks=(Spec("rnd"),),
    certificates=(Spec("bi-smoothing", {"samples": 300}), Spec("bounded-influence")),
    modes=("full",),
    repeats=1,
    training={"epochs": 20, "hidden_features": [16]},
    threat={"nodes": 1, "edges_per_node": 2},
)


@cache
def done() -> Store:
    store = Store(Path(mkdtemp(prefix="grb-sampled-")) / "store")
    assert not run(plan_study(RECIPE).jobs.values(), store, limits=Limits(workers=0)).failed
    return store


def contents(kind: str) -> dict[str, CertifiedOutcome | Measurement]:
    return {record.key: content_of(record) for record in done().records() if record.job.kind == kind}


def sampled() -> tuple[str, CertifiedOutcome]:
    return next((key, each) for key, each in contents("certify").items() if each.samples and each.own_model)


def test_an_honest_store_is_not_refused():
    """Twenty samples of a score may be wrong where three hundred are right."""
    assert check_sampled(done()) >= 0


def test_a_certificate_of_what_is_wrong_in_new_samples_too_is_refused(tmp_path):
    store = Store(shutil.copytree(done().path, tmp_path / "store"))
    key, each = sampled()
    lie = replace(each, correct=pack_bits([True] * each.targets), budgets=(60,) * each.targets, collective=None)
    found = list(suspected({key: lie}, contents("score")))
    assert found and all(place.targets for place in found)
    record = store.read(key)
    forge(store, {"format": 2, **record.to_dict(), "result": lie.to_dict()})
    with pytest.raises(IntegrityError, match="also in 300 new samples"):
        check_sampled(store)
    assert check_sampled(store, [key]) == 0  # without scores nothing is compared


def test_edits_of_more_edges_than_the_certificate_speaks_of_are_not_compared():
    key, each = sampled()
    lie = replace(each, correct=pack_bits([True] * each.targets), budgets=(60,) * each.targets, collective=None)
    narrow = replace(lie, threat={**each.threat, "edges_per_node": 0})
    attacked = {name: score for name, score in contents("score").items() if score.attack is not None}
    assert list(suspected({key: lie}, attacked))
    assert not list(suspected({key: narrow}, attacked))


def test_changed_features_are_compared_with_certificates_of_the_same_limits():
    key, each = sampled()
    limits = {"kind": "modification", "edges": 0, "feature_nodes": 2, "feature_range": [0, 1]}
    lie = replace(each, correct=pack_bits([True] * each.targets), budgets=(60,) * each.targets, collective=None)
    hijack = replace(lie, unit=HIJACKED, threat=limits)
    own = each.defense.method.key
    attacked = {name: score for name, score in contents("score").items() if score.attack is not None}
    name, score = next((name, score) for name, score in attacked.items() if score.defense.method.key == own)

    def places(threat, **spent):
        attack = replace(score.attack, scenario="modification", threat=threat, budget={"edges": 0, **spent})
        return [found.used for found in suspected({key: hijack}, {name: replace(score, attack=attack)})]

    assert places(limits, feature_nodes=2) == [2]
    assert not places(limits, feature_nodes=2, edges=1)
    assert not places({**limits, "feature_range": [0, 9]}, feature_nodes=2)
    assert not places({**limits, "constraints": {"fixed": [0]}}, feature_nodes=2)


def test_a_bound_on_all_together_is_about_as_many_edges_as_its_threat_model_has():
    key, each = next((key, each) for key, each in contents("certify").items() if each.unit and not each.samples)
    lie = replace(each, collective=each.targets, budgets=(0,) * each.targets)
    attacked = {name: score for name, score in contents("score").items() if score.attack is not None}
    assert any("keeps" in sentence for _, sentence in broken({key: lie}, attacked))
    narrow = replace(lie, threat={**each.threat, "edges_per_node": 0})
    assert not any("keeps" in sentence for _, sentence in broken({key: narrow}, attacked))
