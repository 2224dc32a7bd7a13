"""Attackers who may only ask, as jobs: records say how often they asked, and a record that asked too often is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grb.errors import IntegrityError
from grb.pipeline import Recipe, Spec, Store, plan_study
from grb.pipeline.gate import check_schema
from grb.pipeline.worker import Worker


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
