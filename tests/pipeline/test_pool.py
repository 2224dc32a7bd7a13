from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from grb.errors import DataError
from grb.pipeline.pool import AHEAD, STILLBORN, Answer, Pool


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
def pool() -> Iterator[Pool]:
    made = Pool(2, make, ["given"])
    yield made
    made.close()


def collected(pool: Pool, count: int) -> dict[str, Answer]:
    found: dict[str, Answer] = {}
    end = time.monotonic() + 60
    while len(found) < count and time.monotonic() < end:
        found |= {answer.task: answer for answer in pool.answers(1.0)}
    assert len(found) == count
    return found


def test_tasks_are_done_by_as_many_processes_as_there_may_be(pool: Pool) -> None:
    pool.give("a", "sleep", 0.3)
    pool.give("b", "sleep", 0.3)
    assert not pool.takes()
    found = collected(pool, 2)
    pids = {answer.value[0] for answer in found.values()}
    assert len(pids) == 2 and os.getpid() not in pids
    assert [answer.value[1:] for answer in found.values()] == [[0.3, ["given"]]] * 2
    assert pool.takes()
    pool.give("c", "say", 5)
    assert collected(pool, 1)["c"].value[0] in pids


def test_no_process_is_started_before_there_is_something_to_do(pool: Pool) -> None:
    assert pool.takes() and pool.members == []
    pool.give("a", "say")
    assert len(pool.members) == 1
    collected(pool, 1)


def test_brief_tasks_wait_behind_brief_ones_only(pool: Pool) -> None:
    pool.give("long", "sleep", 0.5)
    pool.give("brief", "sleep", 0.2, brief=True)
    assert not pool.takes()
    for number in range(AHEAD):
        assert pool.takes(brief=True)
        pool.give(f"behind {number}", "say", brief=True)
    assert not pool.takes(brief=True)
    found = collected(pool, 2 + AHEAD)
    assert found["brief"].value[0] == found["behind 0"].value[0] != found["long"].value[0]


def test_a_killed_worker_takes_only_its_own_task_with_it(pool: Pool) -> None:
    pool.give("other", "sleep", 0.5)
    pool.give("dies", "die", brief=True)
    pool.give("behind", "say", brief=True)
    found = collected(pool, 3)
    assert found["dies"] == Answer("dies", exitcode=-signal.SIGKILL)
    assert found["behind"] == Answer("behind", exitcode=-signal.SIGKILL, begun=False)
    assert found["other"].value[1] == 0.5
    pool.give("again", "say")
    pool.give("and again", "say")
    assert all(answer.exitcode is None for answer in collected(pool, 2).values())


def test_the_exit_code_is_told(pool: Pool) -> None:
    pool.give("a", "exit", 77)
    assert collected(pool, 1)["a"].exitcode == 77


def test_a_worker_that_is_killed_while_it_waits_is_replaced(pool: Pool) -> None:
    pool.give("a", "say")
    pid = collected(pool, 1)["a"].value[0]
    os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + 30
    while pool.members[0].process.is_alive() and time.monotonic() < end:
        time.sleep(0.01)
    pool.give("b", "say")
    answer = collected(pool, 1)["b"]
    assert answer.exitcode is None and answer.value[0] != pid


def test_what_takes_too_long_is_killed_and_what_waits_behind_it_is_not() -> None:
    pool = Pool(1, make, timeout=0.4)
    try:
        pool.give("slow", "sleep", 60, brief=True)
        pool.give("behind", "say", brief=True)
        found = collected(pool, 2)
        assert found["slow"].late and found["slow"].begun
        assert not found["behind"].late and not found["behind"].begun
        pool.give("fast", "sleep", 0.01)
        assert collected(pool, 1)["fast"].value[1] == 0.01
    finally:
        pool.close()


def test_a_worker_that_cannot_start_says_why() -> None:
    pool = Pool(1, refuse)
    pool.give("a", "say")
    with pytest.raises(DataError, match="a worker could not start: there is no store"):
        collected(pool, 1)
    pool.close()


def test_workers_that_die_before_they_begin_are_not_replaced_for_ever() -> None:
    pool = Pool(1, vanish)
    tries = 0
    with pytest.raises(DataError, match=rf"{STILLBORN} workers in a row .*exit code 3"):
        while tries < 50:
            tries += 1
            pool.give("a", "say")
            assert collected(pool, 1)["a"] == Answer("a", exitcode=3, begun=False)
    assert tries == STILLBORN
    pool.close()


def test_closing_ends_every_process() -> None:
    pool = Pool(2, make)
    pool.give("a", "sleep", 60)
    pool.give("b", "say")
    while not any(answer.task == "b" for answer in pool.answers(1.0)):
        pass
    processes = [member.process for member in pool.members]
    start = time.monotonic()
    pool.close()
    assert time.monotonic() - start < 30 and not any(process.is_alive() for process in processes)


def test_workers_do_not_run_the_script_that_started_them() -> None:
    before = sys.modules["__main__"]
    pool = Pool(1, parent_module)
    pool.give("a")
    assert collected(pool, 1)["a"].value == "none"
    assert sys.modules["__main__"] is before
    pool.close()
