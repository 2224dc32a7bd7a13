from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grb.errors import DataError
from grb.pipeline import DataRef, Job, Spec
from pipeline.parts import FEW

KEYS = st.text("0123456789abcdef", min_size=64, max_size=64)
VALUES = st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=3)
JOBS = st.builds(
    Job,
    kind=st.sampled_from(["fit", "attack", "score"]),
    spec=st.builds(Spec, st.text(min_size=1), st.dictionaries(st.text(), VALUES, max_size=3)),
    data=st.builds(DataRef, st.text(), KEYS, st.lists(KEYS, max_size=2).map(tuple)),
    method=st.dictionaries(st.text(), VALUES, max_size=3),
    inputs=st.dictionaries(st.sampled_from(["model", "surrogate"]), KEYS),
    mode=st.none() | st.sampled_from(["easy", "full"]),
    seed=st.integers(0, 2**40),
    threads=st.integers(1, 8),
    device=st.sampled_from(["cpu", "cuda"]),
    version=st.integers(1, 9),
    extra=st.dictionaries(st.text(), VALUES, max_size=2),
)
JOB = Job("attack", Spec("pgd", {"iterations": 5}), DataRef("synth-tiny", "a" * 64), {"n_epoch": 5})
OTHERS: dict[str, Any] = {
    "kind": "score",
    "spec": Spec("pgd", {"iterations": 6}),
    "data": DataRef("synth-tiny", "a" * 64, ("b" * 64,)),
    "method": {"n_epoch": 6},
    "inputs": {"model": "c" * 64},
    "mode": "full",
    "seed": 1,
    "threads": 2,
    "device": "cuda",
    "version": 2,
    "extra": {"knowledge": "none"},
}


@FEW
@given(JOBS)
def test_a_job_comes_back_from_its_plain_values_with_the_same_key(job: Job) -> None:
    again = Job.from_dict(job.to_dict())
    assert again.to_dict() == job.to_dict() and again.key == job.key


@pytest.mark.parametrize("name", OTHERS)
def test_every_field_is_part_of_the_key(name: str) -> None:
    assert replace(JOB, **{name: OTHERS[name]}).key != JOB.key


def test_the_place_of_the_files_is_not_part_of_the_key() -> None:
    moved = replace(JOB, data=replace(JOB.data, data_dir="/elsewhere"))
    assert moved.key == JOB.key and "/elsewhere" not in str(moved.to_dict())


def test_the_key_of_a_known_job_never_changes() -> None:
    """Whoever changes how keys are made loses every result that was ever stored: raise FORMAT and say so."""
    assert JOB.key == "93bd908a07cf75e15833f6d80f1bdb0834eb4137b93addf76718658e2a4aa2fc"


def test_a_job_needs_its_inputs_and_the_edits_of_its_graph() -> None:
    job = replace(JOB, inputs={"model": "c" * 64}, data=JOB.data.with_edit("d" * 64).with_edit("e" * 64))
    assert job.needs == ("c" * 64, "d" * 64, "e" * 64)


@FEW
@given(JOBS, st.data())
def test_a_job_with_a_field_missing_or_of_another_kind_is_refused(job: Job, data: st.DataObject) -> None:
    values = copy.deepcopy(job.to_dict())
    name = data.draw(st.sampled_from(sorted(values)))
    if data.draw(st.booleans()):
        del values[name]
    else:
        values[name] = data.draw(st.none() | st.just([[]]) | st.just("?"))
        if values[name] == job.to_dict()[name] or name in ("mode", "device"):
            return  # any text may stand there; the key tells the difference
    try:
        assert Job.from_dict(values).key != job.key
    except DataError as error:
        assert str(error).startswith("this is no job of format 1")


@pytest.mark.parametrize("values", [None, [], "job", {}, {"format": 2}, {"format": 1, "kind": "dance"}])
def test_what_is_no_job_is_refused(values: Any) -> None:
    with pytest.raises(DataError, match="this is no job of format 1"):
        Job.from_dict(values)


def test_a_message_says_who_asks_and_a_record_may_not() -> None:
    job = replace(JOB, study="mine")
    again = Job.from_message(job.to_message(), title="a title", data_dir="/elsewhere")
    assert (again.study, again.title, again.data.data_dir, again.key) == ("mine", "a title", "/elsewhere", JOB.key)
    with pytest.raises(DataError, match="this is no job of format 1"):
        Job.from_dict(job.to_message())
