"""One small study, run once for all tests that only look at it."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from grb.pipeline import Limits, Store, Study, plan_study, run
from pipeline.parts import copied, recipe


@pytest.fixture(autouse=True)
def same_number_of_threads() -> Iterator[None]:
    """Jobs that run in this process set torch's number of threads: other tests get theirs back."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session", autouse=True)
def imported_once() -> None:
    """The server that forks workers is started once per process: whichever test is first, it has imported everything."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(["grb.pipeline.worker", "torch._dynamo"])


@pytest.fixture(scope="session")
def study() -> Study:
    return plan_study(recipe())


@pytest.fixture(scope="session")
def store(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Everything of :func:`study`; to be read only."""
    made = Store(tmp_path_factory.mktemp("pipeline") / "store")
    outcome = run(study.jobs.values(), made, limits=Limits(workers=0))
    assert outcome.complete and outcome.done == len(study.jobs)
    return made


@pytest.fixture
def own(store: Store, study: Study, tmp_path: Path) -> Store:
    """A copy of :func:`store` with the record of its study, for a test that changes it."""
    made = copied(store, tmp_path / "store")
    record = study.record({})
    assert record is not None
    made.write(record)
    return made


@pytest.fixture(scope="session")
def gone() -> int:
    """The number of a process that has ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid
