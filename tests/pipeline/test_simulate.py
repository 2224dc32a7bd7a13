from __future__ import annotations

import pytest

from grb.pipeline import DataRef, Job, Spec, Study
from grb.pipeline.simulate import wall_seconds


def study_of(*jobs: Job) -> Study:
    return Study("made up", {job.key: job for job in jobs}, (), {})


def job(number: int, *needs: Job) -> Job:
    inputs = {f"model{position}": need.key for position, need in enumerate(needs)}
    return Job("score", Spec("score"), DataRef("synth-tiny", "a" * 64), inputs=inputs, seed=number)


@pytest.mark.parametrize(("workers", "wall"), [(1, 14.0), (2, 9.0), (3, 9.0), (100, 9.0)])
def test_jobs_wait_for_their_inputs_and_for_a_worker(workers: int, wall: float) -> None:
    first, other = job(0), job(1)
    last = job(2, first)
    seconds = {first.key: 4.0, other.key: 5.0, last.key: 5.0}
    # one worker: 4 + 5 + 5; two: the last starts at 4, whoever is free
    assert wall_seconds(study_of(first, other, last), seconds, workers, between=0.0) == wall


def test_jobs_that_are_done_cost_nothing() -> None:
    first = job(0)
    last = job(1, first)
    study = study_of(first, last)
    assert wall_seconds(study, {last.key: 3.0}, 1, between=0.0) == 3.0
    assert wall_seconds(study, {}, 4) == 0.0


def test_many_equal_jobs_take_the_share_of_each_worker_and_what_is_lost_between_them() -> None:
    jobs = [job(number) for number in range(100)]
    seconds = {each.key: 2.0 for each in jobs}
    assert wall_seconds(study_of(*jobs), seconds, 8, between=0.5) == pytest.approx(13 * 2.5)


def test_a_chain_gains_nothing_from_workers() -> None:
    jobs = [job(0)]
    for number in range(1, 5):
        jobs.append(job(number, jobs[-1]))
    seconds = {each.key: 1.0 for each in jobs}
    assert wall_seconds(study_of(*jobs), seconds, 16, between=0.0) == 5.0
