from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from grb.errors import DataError
from grb.pipeline.executor import MAX_FAILED_STARTS, PREFETCH, Limits, ProcessExecutor, TaskResult


def make(*given: Any) -> Callable[..., Any]:
    def do(what: str, value: Any = None) -> Any:
        if what == "sleep":
            time.sleep(value)
        elif what == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        elif what == "exit":
            os._exit(value)
        return os.getpid(), value, given

    return do


def refuse() -> Callable[..., Any]:
    raise DataError("there is\nno store")


def vanish() -> Callable[..., Any]:
    os._exit(3)


def parent_module() -> Callable[..., Any]:
    """What the worker's main module is."""
    found = str(getattr(sys.modules["__main__"], "__file__", "none"))
    return lambda: found


@pytest.fixture
def executor() -> Iterator[ProcessExecutor]:
    made = ProcessExecutor(2, make, ["given"])
    yield made
    made.close()


def collected(executor: ProcessExecutor, count: int) -> dict[str, TaskResult]:
    found: dict[str, TaskResult] = {}
    end = time.monotonic() + 60
    while len(found) < count and time.monotonic() < end:
        found |= {result.task: result for result in executor.results(1.0)}
    assert len(found) == count
    return found


def test_tasks_are_done_by_as_many_processes_as_there_may_be(executor: ProcessExecutor) -> None:
    executor.submit("a", "sleep", 0.3)
    executor.submit("b", "sleep", 0.3)
    assert not executor.has_room()
    found = collected(executor, 2)
    pids = {result.value[0] for result in found.values()}
    assert len(pids) == 2 and os.getpid() not in pids
    assert [result.value[1:] for result in found.values()] == [[0.3, ["given"]]] * 2
    assert executor.has_room()
    executor.submit("c", "say", 5)
    assert collected(executor, 1)["c"].value[0] in pids


def test_no_process_is_started_before_there_is_something_to_do(executor: ProcessExecutor) -> None:
    assert executor.has_room() and executor.workers == []
    executor.submit("a", "say")
    assert len(executor.workers) == 1
    collected(executor, 1)


def test_short_tasks_are_queued_behind_short_ones_only(executor: ProcessExecutor) -> None:
    executor.submit("long", "sleep", 0.5)
    executor.submit("short", "sleep", 0.2, short=True)
    assert not executor.has_room()
    for number in range(PREFETCH):
        assert executor.has_room(short=True)
        executor.submit(f"behind {number}", "say", short=True)
    assert not executor.has_room(short=True)
    found = collected(executor, 2 + PREFETCH)
    assert found["short"].value[0] == found["behind 0"].value[0] != found["long"].value[0]


def test_a_killed_worker_takes_only_its_own_task_with_it(executor: ProcessExecutor) -> None:
    executor.submit("other", "sleep", 0.5)
    executor.submit("dies", "die", short=True)
    executor.submit("behind", "say", short=True)
    found = collected(executor, 3)
    assert found["dies"] == TaskResult("dies", exitcode=-signal.SIGKILL)
    assert found["behind"] == TaskResult("behind", exitcode=-signal.SIGKILL, started=False)
    assert found["other"].value[1] == 0.5
    executor.submit("again", "say")
    executor.submit("and again", "say")
    assert all(result.exitcode is None for result in collected(executor, 2).values())


def test_the_exit_code_is_reported(executor: ProcessExecutor) -> None:
    executor.submit("a", "exit", 77)
    assert collected(executor, 1)["a"].exitcode == 77


def test_a_worker_that_is_killed_while_it_waits_is_replaced(executor: ProcessExecutor) -> None:
    executor.submit("a", "say")
    pid = collected(executor, 1)["a"].value[0]
    os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + 30
    while executor.workers[0].process.is_alive() and time.monotonic() < end:
        time.sleep(0.01)
    executor.submit("b", "say")
    result = collected(executor, 1)["b"]
    assert result.exitcode is None and result.value[0] != pid


def test_what_takes_too_long_is_killed_and_what_waits_behind_it_is_not() -> None:
    executor = ProcessExecutor(1, make, limits=Limits(timeout=0.4))
    try:
        executor.submit("slow", "sleep", 60, short=True)
        executor.submit("behind", "say", short=True)
        found = collected(executor, 2)
        assert found["slow"].timed_out and found["slow"].started
        assert not found["behind"].timed_out and not found["behind"].started
        executor.submit("fast", "sleep", 0.01)
        assert collected(executor, 1)["fast"].value[1] == 0.01
    finally:
        executor.close()


def test_a_worker_that_cannot_start_says_why() -> None:
    executor = ProcessExecutor(1, refuse)
    executor.submit("a", "say")
    with pytest.raises(DataError, match="a worker could not start: there is no store"):
        collected(executor, 1)
    executor.close()


def test_workers_that_die_before_they_begin_are_not_replaced_for_ever() -> None:
    executor = ProcessExecutor(1, vanish)
    tries = 0
    with pytest.raises(DataError, match=rf"{MAX_FAILED_STARTS} workers in a row .*exit code 3"):
        while tries < 50:
            tries += 1
            executor.submit("a", "say")
            assert collected(executor, 1)["a"] == TaskResult("a", exitcode=3, started=False)
    assert tries == MAX_FAILED_STARTS
    executor.close()


def test_closing_ends_every_process() -> None:
    executor = ProcessExecutor(2, make)
    executor.submit("a", "sleep", 60)
    executor.submit("b", "say")
    while not any(result.task == "b" for result in executor.results(1.0)):
        pass
    processes = [worker.process for worker in executor.workers]
    start = time.monotonic()
    executor.close()
    assert time.monotonic() - start < 30 and not any(process.is_alive() for process in processes)


def test_workers_do_not_run_the_script_that_started_them() -> None:
    before = sys.modules["__main__"]
    executor = ProcessExecutor(1, parent_module)
    executor.submit("a")
    assert collected(executor, 1)["a"].value == "none"
    assert sys.modules["__main__"] is before
    executor.close()
