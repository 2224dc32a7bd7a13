from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from grb.pipeline import Store, Study, plan_study
from grb.pipeline.estimate import ADVERSARIAL, FIT, estimate, seconds_of
from pipeline.parts import BARE, copied, of_kind, recipe


def test_what_is_done_costs_nothing(study: Study, store: Store) -> None:
    lines = {line.kind: line for line in estimate(study, store)}
    assert {kind: line.jobs for kind, line in lines.items()} == {
        kind: len(of_kind(study, kind)) for kind in ("fit", "attack", "score")
    }
    for line in lines.values():
        assert line.cached == line.jobs and line.seconds == 0 and line.bytes == 0 and line.megabytes == 0
    assert seconds_of(study, store) == {}


def test_what_was_measured_is_the_median_of_its_own_kind(study: Study, store: Store, tmp_path: Path) -> None:
    partial = copied(store, tmp_path / "store")
    lost = of_kind(study, "attack")[:2]
    for job in lost:
        partial.record_path(job.key).unlink()
    line = next(line for line in estimate(study, partial) if line.kind == "attack")
    assert line.measured and line.jobs - line.cached == 2

    def median(name: str) -> float:
        keys = [job.key for job in of_kind(study, "attack") if job.spec.name == name and job not in lost]
        return statistics.median(partial.read(key).provenance["cpu_seconds"] for key in keys)

    assert line.seconds == pytest.approx(sum(median(job.spec.name) for job in lost))
    assert seconds_of(study, partial) == {job.key: pytest.approx(median(job.spec.name)) for job in lost}
    assert line.megabytes > 10 and line.bytes > 0


def test_what_nobody_measured_is_guessed_and_says_so(tmp_path: Path) -> None:
    study = plan_study(recipe(defenses=["gcn+at", "gcn+at-full", "gcn+ln"]))
    empty = Store(tmp_path / "store")
    lines = {line.kind: line for line in estimate(study, empty)}
    assert not any(line.measured or line.cached for line in lines.values())
    assert all(line.seconds > 0 and line.bytes > 0 and line.megabytes > 100 for line in lines.values())
    each = seconds_of(study, empty)
    assert each.keys() == study.jobs.keys() and not (tmp_path / "store").exists()
    by_name = {job.spec.name: each[job.key] for job in of_kind(study, "fit")}
    assert by_name["gcn+at"] == by_name["gcn+at-full"] == pytest.approx(by_name["gcn+ln"] * ADVERSARIAL / FIT)


def test_more_iterations_are_guessed_to_take_longer(tmp_path: Path) -> None:
    empty = Store(tmp_path / "store")
    few, many = (
        next(line.seconds for line in estimate(plan_study(recipe(iterations=count)), empty) if line.kind == "attack")
        for count in (10, 1000)
    )
    assert many > 50 * few
    usual = recipe(BARE, attacks=["fgsm"], dataset="synth-cora")
    line = next(line for line in estimate(plan_study(usual), empty) if line.kind == "attack")
    assert line.seconds > 10 * few  # the paper's number of iterations, which no recipe writes down


def test_measured_steps_count(study: Study, store: Store) -> None:
    """A store of short attacks does not make long ones cheap."""
    job = next(job for job in of_kind(study, "attack") if job.spec.name == "fgsm")
    steps = job.spec.params["iterations"]
    longer = plan_study(recipe(iterations=100 * steps))
    each = seconds_of(longer, store)
    past = [store.read(own.key) for own in of_kind(study, "attack") if own.spec.name == "fgsm"]
    usual = statistics.median(record.provenance["cpu_seconds"] for record in past)
    long = [each[own.key] for own in of_kind(longer, "attack") if own.spec.name == "fgsm"]
    assert long and all(value == pytest.approx(100 * usual) for value in long)


def test_measurements_of_another_dataset_do_not_count(store: Store, tmp_path: Path) -> None:
    study = plan_study(recipe(dataset="synth-cora"))
    assert not any(line.measured for line in estimate(study, store))
