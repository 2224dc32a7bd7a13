"""Targets that a recipe declares: which nodes are attacked and scored, from recipe to record to board."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import grb
from grb import serial
from grb.attack.targets import band_targets, declared_targets, with_declared_targets
from grb.errors import DataError, IntegrityError, UnknownName
from grb.evaluator.measurement import DatasetInfo, Measurement, TargetInfo, unpack_bits
from grb.evaluator.targeted import board_targets
from grb.graph import GraphEdit
from grb.pipeline import Limits, Recipe, Spec, Store, Study, boards, build_board, plan_study, run
from grb.pipeline.derived import DerivedChecks
from grb.pipeline.gate import check_job
from grb.pipeline.job import Job, TargetRule
from grb.pipeline.job_checks import check_input
from grb.pipeline.recipe import parse_recipe
from grb.pipeline.results import study_boards
from grb.pipeline.worker import Worker
from grb.target_limits import target_limits
from pipeline.parts import of_kind


def aimed(targets: str = "random=5", **more: Any) -> Recipe:
    values: dict[str, Any] = {
        "scenario": "modification",
        "attacks": (Spec("nettack"),),
        "modes": ("easy", "full"),
        "repeats": 1,
        "training": {"epochs": 3},
        "threat": {"per_target": 2},
        **more,
    }
    return Recipe("aimed", "synth-tiny", targets=targets, **values)


def done(recipe: Recipe, path: Path) -> tuple[Study, Store]:
    study, store = plan_study(recipe), Store(path)
    record = study.record({})
    assert record is not None
    store.write(record)
    outcome = run(study.jobs.values(), store, limits=Limits(workers=0))
    assert outcome.complete, outcome.failed
    return study, store


def contradictions(store: Store) -> list[str]:
    """What every record of a store derives, computed again."""
    checks, found = DerivedChecks(store.read), []
    for record in store.records():
        artefacts = {name: store.find(record, name).read_bytes() for name in record.objects}
        found += checks.check(record, artefacts)
    return found + [sentence for _, sentence in checks.disagreements()]


@pytest.mark.parametrize("rule", ["random=5", "degrees=2", "margin-low=4", "margin-high=4", "nettack=8", "class=1"])
def test_a_recipe_declares_its_targets_from_plan_to_board(rule: str, tmp_path: Path) -> None:
    study, store = done(aimed(rule, certificates=(Spec("hash-vote"),)), tmp_path / "store")
    dataset = grb.load_dataset("synth-tiny")
    worker = Worker(store)
    scores = [store.read(job.key) for job in of_kind(study, "score")]
    for record in scores:
        found = Measurement.from_dict(record.measurement)
        assert found.dataset.targets is not None
        for mode, outcome in found.outcomes.items():
            among = dataset.test_ids(mode)
            chosen = among[torch.from_numpy(unpack_bits(found.dataset.targets.chosen[mode], len(among)))]
            own = worker._dataset(record.job).test_ids(mode)
            assert torch.equal(chosen, own) and 0 < len(own) == outcome.targets < len(among)
        if record.job.data.edits:
            edit = worker._edit(record.job.data.edits[0])
            targets = worker._dataset(record.job).test_ids(record.job.mode or "full")
            limits = target_limits(2, dataset.graph, targets)
            assert len(edit.add.T) + len(edit.drop.T) <= int(limits.sum())
            ends = torch.cat([edit.add, edit.drop], dim=1)
            assert torch.isin(ends, targets).any(0).all()  # nettack is direct
    [board] = build_board(study, store)
    assert f"targets {rule}" in board.meta["title"] and board.meta["targets"]["rule"] == rule
    ids = board_targets(board, dataset, "full")
    assert torch.equal(ids, worker._dataset(scores[-1].job).test_ids("full"))
    assert [each.to_dict() for each in boards(store)] == [board.to_dict()]
    assert contradictions(store) == []


def test_the_choice_is_that_of_the_functions(tmp_path: Path) -> None:
    dataset = grb.load_dataset("synth-tiny")
    study, store = done(aimed("degrees=2", seed=3), tmp_path / "store")
    job = of_kind(study, "attack")[0]
    assert job.data.targets == TargetRule("degrees=2", 3) and not job.inputs  # nettack fits its own surrogate
    worker = Worker(store)
    for mode in ("easy", "full"):
        generator = torch.Generator().manual_seed(3)
        own = band_targets(dataset.test_ids(mode), dataset.graph.adj.degrees, 2, generator)
        assert torch.equal(worker._dataset(job).test_ids(mode), own)


def test_margins_are_those_of_the_first_surrogate(tmp_path: Path) -> None:
    dataset = grb.load_dataset("synth-tiny")
    study, store = done(aimed("margin-low=4", surrogates=(Spec("sgcn"), Spec("gcn"))), tmp_path / "store")
    worker = Worker(store)
    for job in (*of_kind(study, "attack"), *of_kind(study, "score")):
        chooser = job.inputs["targets"]
        assert study.jobs[chooser].spec.name == "sgcn" and study.jobs[chooser].data.targets is None
        own = declared_targets("margin-low=4", dataset, worker.model(chooser))
        assert own is not None and torch.equal(worker._dataset(job).test_ids("full"), own)


def test_trainings_are_shared_with_studies_of_all_targets() -> None:
    whole, some = plan_study(aimed("")), plan_study(aimed("random=5"))
    assert {job.key for job in of_kind(whole, "fit")} == {job.key for job in of_kind(some, "fit")}
    assert not {job.key for job in of_kind(whole, "score")} & {job.key for job in of_kind(some, "score")}
    assert all("targets" not in job.to_dict()["data"] for job in whole.jobs.values())


def test_a_job_with_targets_is_read_back() -> None:
    for job in plan_study(aimed("margin-high=3")).jobs.values():
        again = Job.from_dict(job.to_dict())
        assert again == job and again.key == job.key
    values = job.to_dict()
    for bad in ({"rule": "random=5"}, {"rule": 3, "seed": 0}, {"rule": "random=5", "seed": True}, None, "random=5"):
        with pytest.raises(DataError, match="this is no job"):
            Job.from_dict({**values, "data": {**values["data"], "targets": bad}})


def test_records_of_all_test_nodes_say_nothing_of_targets() -> None:
    """They are the same bytes as before there were targets, so that stores of both can be compared."""
    whole = DatasetInfo("a", "a", "0")
    assert "targets" not in serial.to_dict(whole)
    some = replace(whole, targets=TargetInfo("random=3", 1, {"full": "x"}))
    for info in (whole, some):
        assert serial.from_dict(DatasetInfo, json.loads(json.dumps(serial.to_dict(info))), "it") == info


def test_poison_is_aimed_at_targets_too(tmp_path: Path) -> None:
    recipe = aimed(objective="poisoning", modes=("full",))
    study, store = done(recipe, tmp_path / "store")
    [board] = build_board(study, store)
    assert board.meta["measured"] == board.meta["planned"]
    assert contradictions(store) == []


def test_injections_certificates_and_the_worst_case_are_of_the_targets(tmp_path: Path) -> None:
    recipe = Recipe(
        "worst",
        "synth-tiny",
        attacks=(Spec("rnd"),),
        white_box=(Spec("fgsm"),),
        modes=("full",),
        repeats=1,
        iterations=2,
        training={"epochs": 2},
        threat={"nodes": 2, "edges_per_node": 3},
        targets="margin-low=6",
        certificates=(Spec("hash-vote"),),
        worst_case="standard",
        memory=False,
    )
    study, store = done(recipe, tmp_path / "store")
    worker = Worker(store)
    for job in of_kind(study, "attack"):
        edit: GraphEdit = worker._edit(job.key)
        own = worker._dataset(job).test_ids("full")
        linked = edit.add[edit.add < edit.n]
        assert job.spec.name not in ("rnd", "fgsm") or torch.isin(linked, own).all()
    assert contradictions(store) == []


def test_a_study_of_some_targets_and_one_of_all_are_two_boards(tmp_path: Path) -> None:
    done(aimed("random=5"), tmp_path / "store")
    done(aimed("random=5", seed=1), tmp_path / "store")
    _, store = done(aimed(""), tmp_path / "store")
    found = boards(store)
    assert sorted(str(board.meta.get("targets", {}).get("seed", "all")) for board in found) == ["0", "1", "all"]
    for path in (tmp_path / "store").rglob("*.json"):  # without the studies the scores still stand apart
        if '"kind": "study"' in path.read_text() or '"kind":"study"' in path.read_text():
            path.unlink()
    assert len(boards(Store(tmp_path / "store"))) == 3


def test_claims_about_all_test_nodes_are_not_compared_with_some_of_them(tmp_path: Path) -> None:
    study, store = done(aimed("random=5", modes=("full",)), tmp_path / "store")
    assert study.info is not None
    cards = {"gcn": {"mode": "full", "reported": {"none": 0.999}}}
    found = {job.key: Measurement.from_dict(store.read(job.key).measurement) for job in of_kind(study, "score")}
    [some] = study_boards(replace(study.info, cards=cards), found)
    assert not some.claims and not any("claim" in flag for flag in some.flags)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("random=0", "a number of nodes of at least 1 is needed"),
        ("random=", "a number of nodes of at least 1 is needed"),
        ("margin-low=-1", "a number of nodes of at least 1 is needed"),
        ("degrees=2.5", "a number of nodes of at least 1 is needed"),
        ("random=99999999999", "a number of nodes of at least 1 is needed"),
        ("class=none", "class"),
        ("nothing=1", "column"),
    ],
)
def test_wrong_targets_are_refused_before_anything_runs(text: str, sentence: str) -> None:
    with pytest.raises((DataError, UnknownName), match=sentence):
        plan_study(aimed(text))


def test_targets_go_with_attacks_on_nodes_alone() -> None:
    with pytest.raises(DataError, match="under corruption nobody attacks"):
        Recipe("c", "synth-tiny", scenario="corruption", attacks=(Spec("NoEdges"),), targets="random=3")
    with pytest.raises(DataError, match="graphs to classify"):
        plan_study(Recipe("g", "synth-graphs", modes=("full",), targets="random=3"))
    with pytest.raises(DataError, match="targets of recipe 'x' is 5, but text is needed"):
        parse_recipe("{dataset: synth-tiny, targets: 5}", name="x")


def test_more_targets_than_there_are_is_all_of_them() -> None:
    dataset = grb.load_dataset("synth-tiny")
    found = with_declared_targets(dataset, "random=100000", None)
    assert all(torch.equal(found.test_ids(mode), ids) for mode, ids in dataset.split.test.items())


def test_a_choice_that_no_plan_makes_is_refused() -> None:
    study = plan_study(aimed("margin-low=3"))
    score = next(job for job in of_kind(study, "score") if job.data.edits)
    attack, fit = study.jobs[score.data.edits[0]], study.jobs[score.inputs["model"]]
    for job in (score, attack):
        check_job(job)
        bare = {role: key for role, key in job.inputs.items() if role != "targets"}
        with pytest.raises(DataError, match="need a model to choose"):
            check_job(replace(job, inputs=bare))
        with pytest.raises(DataError, match="need no model"):
            check_job(replace(job, data=replace(job.data, targets=TargetRule("random=3"))))
        with pytest.raises(DataError, match="but no rule"):
            check_job(replace(job, data=replace(job.data, targets=None)))
        with pytest.raises(DataError, match="of seed -1"):
            check_job(replace(job, data=replace(job.data, targets=TargetRule("margin-low=3", -1))))
    with pytest.raises(DataError, match="only attacks and what they lead to"):
        check_job(replace(fit, data=replace(fit.data, targets=TargetRule("random=3"))))
    others = replace(attack, data=replace(attack.data, targets=TargetRule("margin-low=4")))
    assert list(check_input(score, "edit", attack)) == []
    assert "other targets" in " ".join(check_input(score, "edit", others))
    assert "other targets" in " ".join(
        check_input(score, "edit", replace(attack, inputs={**attack.inputs, "targets": "a" * 64}))
    )
    aimed_fit = replace(fit, data=replace(fit.data, targets=TargetRule("margin-low=3")))
    assert "a training has none" in " ".join(check_input(score, "model", aimed_fit))


def test_records_that_lie_about_their_targets_are_found(tmp_path: Path) -> None:
    study, store = done(aimed("random=5", modes=("full",)), tmp_path / "store")
    record = store.read(next(job.key for job in of_kind(study, "score") if job.data.edits))
    assert record.measurement is not None

    def said(targets: Any) -> list[str]:
        assert record.measurement is not None
        changed = {**record.measurement, "dataset": {**record.measurement["dataset"], "targets": targets}}
        return DerivedChecks(store.read).check(replace(record, measurement=changed), {})

    true = record.measurement["dataset"]["targets"]
    assert said(true) == []
    assert any("but its job says" in each for each in said(None))
    assert any("but its job says" in each for each in said({**true, "rule": "random=6"}))
    assert any("of others" in each for each in said({**true, "chosen": {}}))
    assert any("of others" in each for each in said({**true, "chosen": {"full": "eJxjAAAAAQAB"}}))
    assert any("no packed bits" in each for each in said({**true, "chosen": {"full": "!"}}))


def test_an_edit_is_counted_for_the_targets_that_it_was_made_for(tmp_path: Path) -> None:
    """Limits per target of a few nodes are narrower than those of all: the edit of all does not pass for theirs."""
    few, store = done(aimed("random=2", modes=("full",)), tmp_path / "few")
    job = of_kind(few, "attack")[0]
    worker = Worker(store)
    dataset = worker._dataset(job)
    other = GraphEdit(n=dataset.num_nodes, drop=dataset.graph.adj.edges()[:, :5])
    from grb.errors import BudgetError
    from grb.pipeline.gate import check_edit

    with pytest.raises(BudgetError):
        check_edit(other, job, dataset)


def test_the_label_has_the_seed_where_it_is_another() -> None:
    assert TargetInfo("random=3").label == "random=3" and TargetInfo("random=3", 2).label == "random=3 seed 2"
    assert IntegrityError  # the refusals above are of the family for damaged stores, too
