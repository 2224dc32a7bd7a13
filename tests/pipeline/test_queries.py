"""Attackers who may only ask, as jobs: records say how often they asked, and a record that asked too often is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import grb
from grb.attack import AttackContext, run_attack
from grb.attack.build import build_attack
from grb.errors import IntegrityError
from grb.evaluator.victim_process import VictimProcess
from grb.graph import GraphEdit
from grb.pipeline import Limits, Recipe, Spec, Store, plan_study, run
from grb.pipeline import worker as worker_module
from grb.pipeline.attack_job import stream_seed
from grb.pipeline.card import Card
from grb.pipeline.gate import check_schema
from grb.pipeline.plan import join_submission
from grb.pipeline.submission import add, check, record_of
from grb.pipeline.worker import Worker
from grb.threat import Modification
from grb.trainer.checkpoint import save_model


def recipe(**more: Any) -> Recipe:
    return Recipe(
        "asking",
        "synth-tiny",
        scenario="modification",
        defenses=(Spec("gcn"),),
        attacks=(Spec("rnd-edges"),),
        white_box=(Spec("random-search"),),
        modes=("full",),
        repeats=1,
        training={"epochs": 3},
        threat={"queries": 6, "answers": "labels"},
        **more,
    )


def test_records_say_how_often_the_victim_was_asked(tmp_path: Path) -> None:
    study = plan_study(recipe())
    worker = Worker(Store(tmp_path / "store"))
    records = {key: worker.do(job) for key, job in sorted(study.jobs.items(), key=lambda item: _order(item[1].kind))}
    asked = [record for record in records.values() if record.job.spec.name == "random-search"]
    assert asked and all(record.result["queries"] == 6 for record in asked)
    assert all(record.job.extra["knowledge"] == "query" for record in asked)
    infos = [
        record.measurement["attack"] for record in records.values() if record.job.data.edits and record.measurement
    ]
    found = {info["method"]["name"]: (info["knowledge"], info.get("queries")) for info in infos}
    assert found == {"random-search": ("query", 6), "rnd-edges": ("transfer", None)}
    record = asked[0]
    with pytest.raises(IntegrityError, match="asked 7 times, but its threat model allows 6 queries"):
        check_schema(replace(record, result={**record.result, "queries": 7}))
    silent = {name: value for name, value in record.result.items() if name != "queries"}
    with pytest.raises(IntegrityError, match="does not say how often"):
        check_schema(replace(record, result=silent))
    told = replace(record, job=replace(record.job, extra={**record.job.extra, "knowledge": "transfer"}))
    with pytest.raises(IntegrityError, match="it is none that may ask"):
        check_schema(told)


def _order(kind: str) -> int:
    return ["fit", "attack", "score"].index(kind)


def test_a_sweep_over_queries_has_a_board_for_every_number() -> None:
    study = plan_study(recipe(sweep={"queries": [2, 4]}))
    limits = {job.extra["threat"]["queries"] for job in study.jobs.values() if job.spec.name == "random-search"}
    assert limits == {2, 4}


def test_a_submitted_victim_is_asked_in_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, study = Store(tmp_path / "store"), plan_study(recipe())
    assert run(study.jobs.values(), store, limits=Limits(workers=0)).complete
    dataset = grb.load_dataset("synth-tiny")
    weights = save_model(grb.train("gcn", dataset, epochs=3, seed=5), tmp_path / "gcn.safetensors")
    checked = check(weights, Card("mine", "defense", "synth-tiny"), dataset, Modification(edge_ratio=0.05))
    _, part = join_submission(store, record_of(checked), recipe())
    add(store, checked)
    worker, made = Worker(store), list[VictimProcess]()

    class Noted(VictimProcess):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(self)

    monkeypatch.setattr(worker_module, "VictimProcess", Noted)
    jobs = sorted(part.jobs.values(), key=lambda job: _order(job.kind))
    asked = [worker.do(job) for job in jobs if job.spec.name == "random-search"]
    (record,) = [one for one in asked if one.job.inputs["surrogate"] == checked.job.key]
    assert record.result["queries"] == 6 == made[0].answered and len(made) == 1
    assert made[0]._server.returncode is not None and checked.job.key not in worker.models.values
    # the same edit as with the model at hand
    threat = Modification(**{**default_limits(record), "queries": 6, "answers": "labels"})
    attack = build_attack("random-search", "synth-tiny")
    context = AttackContext(dataset.attacker_view("full"), threat, grb.load_model(weights), "query")
    edit = run_attack(attack, context, seed=stream_seed(record.job)).edit
    stored = GraphEdit.load(store.find(record, "edit"))
    assert torch.equal(edit.add, stored.add) and torch.equal(edit.drop, stored.drop)


def default_limits(record: Any) -> dict[str, Any]:
    limits = {
        key: value for key, value in record.job.extra["threat"].items() if key not in ("kind", "queries", "answers")
    }
    return {key: tuple(value) if isinstance(value, list) else value for key, value in limits.items()}
