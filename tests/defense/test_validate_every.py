from __future__ import annotations

import json

import pytest
import torch

import grb
from grb.errors import DataError
from grb.pipeline.job import Job
from pipeline.parts import recipe


def course(**params: object) -> list[bool]:
    """Whether each epoch was validated."""
    found: list[bool] = []
    dataset = grb.load_dataset("synth-tiny")
    grb.train("gcn", dataset, epochs=10, on_epoch=lambda epoch: found.append(epoch.val_score is not None), **params)
    return found


def test_every_epoch_is_validated_unless_said_otherwise() -> None:
    assert course() == [True] * 10
    assert [number for number, seen in enumerate(course(validate_every=4)) if seen] == [0, 4, 8, 9]


def test_steps_are_the_same_and_the_weights_are_those_of_a_validated_epoch() -> None:
    dataset = grb.load_dataset("synth-tiny")
    often, rarely = (grb.train("gcn", dataset, epochs=9, validate_every=every, patience=9) for every in (8, 100))
    # epochs 0 and 8 are validated in both
    assert all(torch.equal(a, b) for a, b in zip(often.parameters(), rarely.parameters(), strict=True))


def test_graphs_too() -> None:
    dataset = grb.load_dataset("synth-graphs")
    found: list[bool] = []
    grb.train("gin", dataset, epochs=3, validate_every=2, on_epoch=lambda e: found.append(e.val_score is not None))
    assert found == [True, False, True]


@pytest.mark.parametrize("value", [0, -1, 1.5, True])
def test_other_numbers_are_refused(value: object) -> None:
    with pytest.raises(DataError, match=r"validate_every is .*, but a whole number of at least 1 is needed"):
        grb.train("gcn", grb.load_dataset("synth-tiny"), epochs=1, validate_every=value)


def test_it_is_part_of_a_job_only_where_it_is_said() -> None:
    def methods(**training: object) -> set[str]:
        from grb.pipeline import plan_study

        jobs: list[Job] = list(plan_study(recipe(training={"epochs": 3, **training})).jobs.values())
        return {json.dumps(job.to_dict()["method"], sort_keys=True) for job in jobs if job.kind == "fit"}

    assert not any("validate_every" in method for method in methods())
    assert methods(validate_every=1) == methods()
    assert all('"validate_every": 2' in method for method in methods(validate_every=2))
