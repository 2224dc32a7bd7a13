"""Certificates as jobs: planned by a recipe, kept in a store, shown on boards, and compared with every attack."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from grb.certificate import build_certificate
from grb.errors import DataError, IntegrityError, UnknownName
from grb.evaluator.certified import CertifiedOutcome, broken, check_bracket, summaries
from grb.evaluator.measurement import pack_bits
from grb.leaderboard.table import summary_table
from grb.pipeline import Limits, Recipe, Spec, Store, plan_study, run
from grb.pipeline.bundle import merge, study_keys
from grb.pipeline.certificate_checks import SAMPLED, check_study_limits
from grb.pipeline.gate import content_of
from grb.pipeline.recipe import parse_recipe, recipe_from_dict
from grb.pipeline.rerun import choose, rerun
from grb.pipeline.results import boards, build_board
from grb.pipeline.worker import Worker
from pipeline.parts import forge

RECIPE = Recipe(
    "certified",
    "synth-tiny",
    defenses=(Spec("gcn+known"), Spec("gcn+hash-vote", {"groups": 12, "divide": "senders"})),
    attacks=(Spec("rnd"), Spec("fgsm")),
    certificates=(Spec("by-construction"), Spec("hash-vote"), Spec("bi-smoothing", {"samples": 50})),
    modes=("full",),
    repeats=1,
    iterations=3,
    training={"epochs": 20, "hidden_features": [16]},
    threat={"nodes": 2, "edges_per_node": 3},
    memory=False,
)


@cache
def done():
    """The study and the store of its results."""
    study = plan_study(RECIPE)
    store = Store(Path(mkdtemp(prefix="grb-certify-")) / "store")
    outcome = run(study, store, limits=Limits(workers=0))
    assert not outcome.failed
    return study, store


def outcomes() -> dict[str, CertifiedOutcome]:
    return {record.key: content_of(record) for record in done()[1].records() if record.job.kind == "certify"}


def scores():
    return {record.key: content_of(record) for record in done()[1].records() if record.job.kind == "score"}


def test_every_victim_has_a_certificate_or_a_reason_why_not():
    found = {(each.defense.method.name, each.certificate): each for each in outcomes().values()}
    assert len(found) == 4 * 3
    assert found["gcn+known", "by-construction"].accuracy() == found["gcn+known", "by-construction"].accuracy(0)
    assert "hears node" in found["gcn", "by-construction"].refusal
    assert found["gcn+hash-vote", "hash-vote"].own_model
    assert not found["gcn", "hash-vote"].own_model
    assert found["mlp", "bi-smoothing"].samples == 50


def test_a_board_shows_certified_accuracy_of_the_defense_itself():
    study, store = done()
    (board,) = build_board(study, store)
    own = board.by_defense["full"]
    known = next(each for each in outcomes().values() if each.own_model and "known" in each.defense.method.name)
    unsure = sum(budget < 0 for budget in known.budgets) / known.targets  # where the lead is no more than rounding
    assert 0 <= own["gcn+known"]["worst_graph"].mean - own["gcn+known"]["certified"].mean <= unsure
    label = next(name for name in own if name.startswith("gcn+hash-vote"))
    assert own[label]["certified_1"].mean >= own[label]["certified_5"].mean
    assert own[label]["certified"].mean <= own[label]["worst_graph"].mean
    assert "certified" not in own["gcn"]  # a vote around it is another model
    assert "certified" in summary_table(board).headers
    assert len(board.meta["certificates"]) == 12
    assert {each.dataset for each in boards(store)} == {board.dataset}


def test_running_again_computes_nothing_and_computing_again_gives_the_same():
    study, store = done()
    assert not [key for key in study.jobs if not store.has(key)]
    keys = [key for key, job in study.jobs.items() if job.kind == "certify"]
    found = rerun(store, keys[:3])
    assert {each.verdict for each in found} == {"equal"}
    assert Worker(store).do(study.jobs[keys[0]]).key == keys[0]


def test_a_store_with_certificates_is_sound():
    assert "study" in {record.job.kind for record in done()[1].records()}
    assert list(done()[1].verify()) == []


def test_a_study_is_copied_with_its_certificates(tmp_path):
    store, target = done()[1], Store(tmp_path / "target")
    merge(store, target, study_keys(store, "certified"))
    assert {key for key in outcomes() if target.has(key)} == set(outcomes())
    assert [each.by_defense for each in boards(target)] == [each.by_defense for each in boards(store)]


def test_a_study_that_leaves_out_a_certificate_is_found(tmp_path):
    """The weakest of the certificates taken off the board: the key of the study no longer fits."""
    place = Store(shutil.copytree(done()[1].path, tmp_path / "store"))
    record = next(each for each in place.records() if each.job.kind == "study")
    values = record.to_dict()
    values["result"] = {
        **values["result"],
        "parts": [{**part, "certificates": part["certificates"][1:]} for part in values["result"]["parts"]],
    }
    forge(place, values)
    assert ["its study scores" in problem.message for problem in place.verify()] == [True]


def test_a_broken_certificate_is_an_integrity_error():
    held, measured = outcomes(), scores()
    check_bracket(held, measured)
    key, each = next(
        (key, each) for key, each in held.items() if each.certificate == "by-construction" and not each.refusal
    )
    lie = replace(each, correct=pack_bits([True] * each.targets))
    with pytest.raises(IntegrityError, match="holds for them with certainty"):
        check_bracket({key: lie}, measured)
    vote = next(each for each in held.values() if each.own_model and each.certificate == "hash-vote")
    found = list(broken({"k" * 64: replace(vote, collective=vote.targets, budgets=(0,) * vote.targets)}, measured))
    assert any("keeps" in sentence for _, sentence in found)


def test_certificates_of_other_models_or_samples_are_not_compared():
    held, measured = outcomes(), scores()
    for each in held.values():
        if each.refusal:
            continue
        lie = replace(each, correct=pack_bits([True] * each.targets), samples=10, confidence=0.9)
        check_bracket({"k" * 64: lie}, measured)
        check_bracket({"k" * 64: replace(lie, samples=0, confidence=1.0, own_model=False)}, measured)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"targets": 3}, "3 targets"),
        ({"collective": 10**6}, "right at all"),
        ({"samples": 0, "confidence": 0.5}, "without samples"),
        ({"refusal": "no"}, "says something"),
        ({"budgets": [-2]}, "budgets"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(changes, sentence):
    vote = next(each for each in outcomes().values() if each.own_model and each.certificate == "hash-vote")
    with pytest.raises(DataError, match=sentence):
        CertifiedOutcome.from_dict({**vote.to_dict(), **changes})


def test_the_best_certificate_counts_and_trainings_are_averaged():
    vote = next(each for each in outcomes().values() if each.own_model and each.certificate == "hash-vote")
    none = replace(vote, budgets=(-1,) * vote.targets, collective=None)
    other = replace(vote, defense=replace(vote.defense, method=replace(vote.defense.method, seed=7)))
    (found,) = summaries([vote, none, other]).values()
    assert found["certified"].n == 2
    assert found["certified"].mean == pytest.approx(vote.accuracy())


def test_recipes_name_certificates():
    made = parse_recipe("dataset: synth-tiny\ncertificates: [hash-vote, {name: bi-smoothing, samples: 9}]", name="x")
    assert [spec.label for spec in made.certificates] == ["hash-vote", "bi-smoothing(samples=9)"]
    assert recipe_from_dict(made.to_dict()) == made
    with pytest.raises(DataError, match="leave certificates out"):
        parse_recipe("dataset: synth-tiny\nscenario: corruption\ncertificates: [hash-vote]", name="x")
    with pytest.raises(UnknownName, match="no certificate 'hush-vote'"):
        plan_study(replace(RECIPE, certificates=(Spec("hush-vote"),)))


FORGERIES = [
    ("gcn+known", "by-construction", {"budget": 0}, "its budget is 0"),
    ("gcn+hash-vote", "hash-vote", {"budget": 0}, "its budget is 0"),
    ("gcn+known", "by-construction", {"unit": "changed edges"}, "its unit is"),
    ("gcn+known", "by-construction", {"unit": "miracles"}, "its unit is"),
    ("gcn+hash-vote", "hash-vote", {"samples": 1, "confidence": 0.99}, "its samples is 1"),
    ("mlp", "bi-smoothing", {"samples": 10**6}, "its samples is 1000000"),
    ("mlp", "bi-smoothing", {"samples": 0, "confidence": 1.0}, "its samples is 0"),
    ("mlp", "bi-smoothing", {"confidence": 0.999999}, "its confidence is"),
    ("gcn", "hash-vote", {"own_model": True}, "its own_model is"),
    ("gcn", "bi-smoothing", {"own_model": True}, "its own_model is"),
    ("gcn+known", "by-construction", {"own_model": False}, "its own_model is"),
]


@pytest.mark.parametrize(("defense", "certificate", "changes", "sentence"), FORGERIES)
def test_a_forged_certificate_is_found(tmp_path, defense, certificate, changes, sentence):
    store = Store(shutil.copytree(done()[1].path, tmp_path / "store"))
    key = next(
        key
        for key, each in outcomes().items()
        if (each.defense.method.name, each.certificate) == (defense, certificate)
    )
    record = store.read(key)
    assert forge(store, {"format": 2, **record.to_dict(), "result": {**record.result, **changes}}) == key
    problems = store.verify()
    assert any(problem.key == key and sentence in problem.message for problem in problems), problems
    with pytest.raises(IntegrityError):
        merge(store, Store(tmp_path / "other"))


def test_the_defaults_of_sampled_certificates_are_those_that_are_compared():
    own = build_certificate("bi-smoothing")
    assert {name: getattr(own, name) for name in SAMPLED} == SAMPLED


def test_a_certificate_of_fewer_targets_is_found(tmp_path):
    store = Store(shutil.copytree(done()[1].path, tmp_path / "store"))
    key, each = next((key, each) for key, each in outcomes().items() if each.own_model and not each.refusal)
    fewer = replace(each, targets=8, budgets=(each.budgets[0],) * 8, correct=pack_bits([True] * 8), collective=None)
    record = store.read(key)
    forge(store, {"format": 2, **record.to_dict(), "result": fewer.to_dict()})
    assert any("number of full targets" in problem.message for problem in store.verify())


def test_a_certificate_that_scores_of_an_unsuspected_model_contradict_is_found(tmp_path):
    store = Store(shutil.copytree(done()[1].path, tmp_path / "store"))
    source = next(each for each in outcomes().values() if each.own_model and each.certificate == "by-construction")
    key, own = next(
        (key, each)
        for key, each in outcomes().items()
        if (each.defense.method.name, each.certificate) == ("gcn", "by-construction")
    )
    lie = replace(source, defense=own.defense, correct=pack_bits([True] * source.targets))
    record = store.read(key)
    forge(store, {"format": 2, **record.to_dict(), "result": lie.to_dict()})
    assert any("holds for them with certainty" in problem.message for problem in store.verify())


def test_a_board_does_not_show_a_certificate_under_other_limits(tmp_path):
    study, store = done()
    found = outcomes()
    limits = {key: each.attack for key, each in scores().items() if each.attack is not None}
    modes = dict.fromkeys(limits, "full")
    assert list(check_study_limits(study.info, found, limits, modes)) == []
    key, each = next((key, each) for key, each in found.items() if not each.refusal)
    narrow = replace(each, threat={**each.threat, "nodes": 1})
    (sentence,) = check_study_limits(study.info, {**found, key: narrow}, limits, modes)
    assert "under other limits" in sentence


def test_a_sample_of_records_to_compute_again_has_certificates_too():
    store = done()[1]
    kinds = {store.read(key).job.kind for key in choose(store, 10**6, seed=0)}
    assert kinds == {"score", "certify"}
