"""Records that are honest one by one and lie together: who was trained on what, under which limits, for which board."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import grb
from grb.cli.app import app
from grb.errors import GRBError, IntegrityError
from grb.graph import GraphEdit
from grb.pipeline import Job, Record, Spec, Store, Study, plan_study
from grb.pipeline.bundle import merge
from grb.pipeline.card import Card
from grb.pipeline.spec import digest
from grb.pipeline.submission import add, check
from grb.pipeline.worker import Worker
from grb.threat import Injection, Modification, threat_within
from pipeline.parts import forge, of_kind, recipe


def attacked(study: Study) -> Job:
    return next(job for job in of_kind(study, "score") if job.data.edits)


def messages(store: Store) -> str:
    return "; ".join(problem.message for problem in store.verify())


def renamed(store: Store, job: Job, **changes: Any) -> str:
    """Put the record of a job under another job with all that it says of the first one; its key."""
    record = store.read(job.key)
    other = replace(job, **changes)
    values = {**record.to_dict(), "job": other.to_dict(), "key": other.key}
    return forge(store, values)


# who was trained on what


def test_a_victim_of_another_split_is_not_scored(own: Store, study: Study) -> None:
    """Trained where today's test nodes were training nodes: every record by itself is what the code computes."""
    score = attacked(study)
    fit = own.read(score.inputs["model"])
    other = renamed(own, fit.job, data=replace(fit.job.data, split=3))
    values = json.loads(own.read_bytes(score.key))
    values["job"]["inputs"]["model"] = values["measurement"]["defense"]["method"]["key"] = other
    forged = forge(own, values)
    assert "its model is of another split or dataset" in messages(own)
    with pytest.raises(IntegrityError, match="its model is of another split or dataset"):
        Worker(own).compute(own.read(forged).job)


def test_an_edit_of_another_difficulty_or_dataset_is_not_scored(own: Store, study: Study) -> None:
    easy, full = (
        next(job for job in of_kind(study, "score") if job.data.edits and job.mode == mode) for mode in ("easy", "full")
    )
    values = json.loads(own.read_bytes(easy.key))
    values["job"]["data"]["chain"] = list(full.data.chain)
    values["measurement"]["attack"] = json.loads(own.read_bytes(full.key))["measurement"]["attack"]
    forged = forge(own, values)
    assert "its edit is for full targets" in messages(own)
    with pytest.raises(IntegrityError, match="its edit is for full targets"):
        Worker(own).compute(own.read(forged).job)
    attack = own.read(full.data.chain[-1])
    assert isinstance(attack, Record)
    elsewhere = renamed(own, attack.job, data=replace(attack.job.data, fingerprint="f" * 64))
    values = json.loads(own.read_bytes(full.key))
    values["job"]["data"]["chain"] = [elsewhere]
    with pytest.raises(IntegrityError, match="its edit is of another split or dataset"):
        Worker(own).compute(own.read(forge(own, values)).job)


@pytest.mark.parametrize("more", [lambda chain: [*chain, *chain], lambda chain: [*chain, Spec("noedges").to_dict()]])
def test_two_changes_do_not_count_as_one(own: Store, study: Study, more: Callable[[list[Any]], list[Any]]) -> None:
    """Each edit within the limits, together beyond them; or an edit under the name of a perturbation."""
    values = json.loads(own.read_bytes(attacked(study).key))
    values["job"]["data"]["chain"] = more(values["job"]["data"]["chain"])
    forged = forge(own, values)
    assert "at most one edit" in messages(own)
    with pytest.raises(GRBError, match="at most one edit"):
        Worker(own).compute(own.read(forged).job)


def test_a_surrogate_of_other_data_is_not_attacked(own: Store, study: Study) -> None:
    attack = next(job for job in of_kind(study, "attack") if "surrogate" in job.inputs)
    fit = own.read(attack.inputs["surrogate"])
    other = renamed(own, fit.job, data=replace(fit.job.data, split=3))
    forged = renamed(own, attack, inputs={"surrogate": other})
    assert "its surrogate is of another split or dataset" in messages(own)
    with pytest.raises(IntegrityError, match="its surrogate is of another"):
        Worker(own).compute(own.read(forged).job)


# which limits


def test_limits_are_compared_with_every_default_filled_in() -> None:
    """A limit that is left out of a record is at its default, which may be the narrowest there is."""
    none, wide = Modification(edges=5), Modification(edges=5, feature_nodes=900, feature_range=(-1e9, 1e9))
    assert not threat_within(wide, none) and threat_within(none, wide)
    kept, adding = Modification(edges=5, allow_isolate=False), Modification(edges=5, allow=("add",))
    for narrow in (kept, adding):
        assert threat_within(narrow, none) and not threat_within(none, narrow)
    assert not threat_within(Modification(edge_ratio=0.9), none)
    assert not threat_within(Injection(1, 1, (0, 1)), none)


@pytest.mark.parametrize(
    "threat",
    [
        {"kind": "injection", "nodes": "9", "edges_per_node": 5, "feature_range": [-1, 1]},
        {"kind": "injection", "nodes": 9, "edges_per_node": 5, "feature_range": [[], 1]},
        {"kind": "injection", "nodes": 9, "edges_per_node": 5, "feature_range": 7},
        {"kind": "modification", "edges": "many"},
        {"kind": "modification", "edges": 10**400},
        {"kind": "modification", "edges": 1, "allow": [[]]},
        {"kind": "modification", "edges": 1, "allow": 1},
        {"kind": "other"},
        [],
        None,
    ],
)
def test_limits_that_are_none_are_refused_wherever_a_record_is_read(own: Store, tmp_path: Path, threat: Any) -> None:
    dataset = grb.load_dataset("synth-tiny")
    edit = GraphEdit(dataset.num_nodes).save(tmp_path / "edit.npz")
    card = Card("mine", "attack", "synth-tiny")
    record = add(own, check(edit, card, dataset, Injection.preset("synth-tiny", "full")))
    values = json.loads(own.read_bytes(record.key))
    own.record_path(record.key).unlink()
    values["job"]["extra"]["threat"] = threat
    key = forge(own, values)
    (own.path / "submitted" / key).write_bytes(b"")
    with pytest.raises(IntegrityError, match="is not what grb writes"):
        own.read(key)
    with pytest.raises(GRBError):
        plan_study(recipe(), submitted=list(own.submitted()))


def retold(store: Store, change: Callable[[dict[str, Any]], object]) -> None:
    """Tell another story in the record of a study, with a key that fits it."""
    (record,) = [each for each in store.records() if each.job.kind == "study"]
    values = json.loads(store.read_bytes(record.key))
    change(values["result"])
    scores = {key for part in values["result"]["parts"] for key in part["scores"]}
    values["job"]["spec"]["params"]["scores"] = digest(sorted(scores))
    store.record_path(record.key).unlink()
    forge(store, values)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda told: told["recipe"].update(threat={"nodes": 1}), "nodes"),
        (lambda told: told["recipe"].update(threat={"feature_range": [-0.1, 0.1]}), "feature_range"),
        (lambda told: told["parts"][0].update(limit=["nodes", 1.0]), "nodes"),
        (lambda told: told.update(recipe={}, scenario="modification"), "scenario"),
        (lambda told: told.update(recipe={}, objective="poisoning"), "objective"),
        (lambda told: told.update(recipe={}, train_mode="transductive"), "train_mode"),
    ],
)
def test_a_study_says_of_its_scores_what_they_are(
    own: Store, change: Callable[[dict[str, Any]], object], words: str
) -> None:
    retold(own, change)
    found = messages(own)
    assert words in found and "its scores" in found


# whose code


@pytest.mark.parametrize(
    "change",
    [
        {"attacks": [{"name": "os:system", "command": "touch canary"}]},
        {"defenses": [{"name": "os:system"}]},
        {"surrogates": [{"name": "os:system"}]},
        {"dataset": "os:getcwd"},
        {"metrics": ["os:system"]},
        {"quick": {"attacks": [{"name": "os:system"}]}},
    ],
)
def test_the_recipe_of_a_study_in_a_store_runs_no_code(
    own: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    """`grb submit` plans the recipe again that a study of the store tells: it may have been told by anybody."""
    monkeypatch.chdir(tmp_path)
    retold(own, lambda told: told["recipe"].update(change))
    with pytest.raises(GRBError):
        merge(own, Store(tmp_path / "other"))
    assert not list(Store(tmp_path / "other").keys())
    dataset = grb.load_dataset("synth-tiny")
    GraphEdit(dataset.num_nodes).save(tmp_path / "mine.npz")
    (tmp_path / "mine.yaml").write_text("name: mine\nkind: attack\ndataset: synth-tiny\n")
    done = CliRunner().invoke(app, ["submit", "mine.npz", "--store", str(own.path)])
    assert done.exit_code in (2, 3) and isinstance(done.exception, SystemExit)
    assert "names code" in done.stderr or "not a metric" in done.stderr or "no metric" in done.stderr, done.stderr
    assert not (tmp_path / "canary").exists()
