from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from grb.errors import DataError
from grb.pipeline import Event, Job, Limits, Outcome, Store, Study, plan_study, run
from grb.pipeline.process_tree import resident_megabytes
from grb.pipeline.scheduler import MAX_ATTEMPTS
from pipeline.parts import TESTS, alive, bare, bits, copied, of_kind


def attacks_only(*attacks: object) -> list[Job]:
    """Attacks need nothing that must be trained first."""
    return of_kind(plan_study(bare(*attacks)), "attack")


class Watch:
    """Collects events and calls back on some."""

    def __init__(self, **calls: Callable[[Event], object]) -> None:
        self.events: list[Event] = []
        self.calls = calls

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        if event.kind in self.calls:
            self.calls[event.kind](event)

    def count(self) -> Counter[str]:
        return Counter(event.kind for event in self.events)


# order


def test_inputs_come_before_those_who_need_them(study: Study, tmp_path: Path) -> None:
    watch = Watch()
    jobs = list(study.jobs.values())[::-1]
    outcome = run(jobs, Store(tmp_path / "store"), limits=Limits(workers=0), on_event=watch)
    place = {event.job.key: number for number, event in enumerate(watch.events) if event.kind == "done"}
    assert outcome == Outcome(done=len(jobs))
    assert all(place[need] < place[job.key] for job in jobs for need in job.needs)


def test_running_again_does_nothing(store: Store, study: Study) -> None:
    watch = Watch()
    before = {path: path.stat().st_mtime_ns for path in store.path.rglob("*") if path.is_file()}
    outcome = run(study.jobs.values(), store, limits=Limits(workers=2), on_event=watch)
    assert outcome == Outcome(cached=len(study.jobs)) and outcome.complete
    assert watch.count() == {"cached": len(study.jobs)}
    assert before == {path: path.stat().st_mtime_ns for path in store.path.rglob("*") if path.is_file()}


def test_only_what_is_missing_is_done(store: Store, study: Study, tmp_path: Path) -> None:
    partial = copied(store, tmp_path / "store")
    lost = [job for job in study.jobs.values() if job.kind == "attack"][:3]
    for job in lost:
        partial.record_path(job.key).unlink()
    outcome = run(study.jobs.values(), partial, limits=Limits(workers=0))
    assert outcome == Outcome(done=3, cached=len(study.jobs) - 3)
    assert bits(partial, study.jobs) == bits(store, study.jobs)


def test_a_job_whose_input_nobody_makes_is_refused(study: Study, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="needs job .* neither planned nor in the store"):
        run(of_kind(study, "score"), Store(tmp_path / "store"), limits=Limits(workers=0))
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("bad", [{"workers": -1}, {"timeout": 0.0}, {"memory": -5.0}, {"timeout": float("nan")}])
def test_limits_that_make_no_sense_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(DataError, match=next(iter(bad))):
        Limits(**bad)  # type: ignore[arg-type]


# the same bits, wherever


@pytest.mark.parametrize("workers", [1, 2])
def test_any_number_of_workers_gives_the_same_bits(store: Store, study: Study, tmp_path: Path, workers: int) -> None:
    other = Store(tmp_path / "store")
    watch = Watch()
    outcome = run(study.jobs.values(), other, limits=Limits(workers=workers), on_event=watch)
    assert outcome == Outcome(done=len(study.jobs)) and watch.count() == {
        "started": len(study.jobs),
        "done": len(study.jobs),
    }
    assert bits(other, study.jobs) == bits(store, study.jobs)
    assert other.verify() == [] and not list((other.path / "claims").iterdir())


def test_two_runs_at_once_share_the_work_and_agree(store: Store, study: Study, tmp_path: Path) -> None:
    other = Store(tmp_path / "store")
    ends: list[Outcome] = []
    watches = [Watch(), Watch()]

    def go(watch: Watch) -> None:
        ends.append(run(study.jobs.values(), Store(other.path), limits=Limits(workers=1), on_event=watch))

    threads = [threading.Thread(target=go, args=(watch,)) for watch in watches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(outcome.complete and outcome.done + outcome.cached == len(study.jobs) for outcome in ends)
    # a job is done twice only in the microseconds between a look at the store and a claim
    assert len(study.jobs) <= sum(outcome.done for outcome in ends) <= len(study.jobs) + 2
    assert all(watch.count()["done"] > 0 for watch in watches)
    assert bits(other, study.jobs) == bits(store, study.jobs) and other.verify() == []


def test_a_claim_of_another_machine_is_waited_for(study: Study, store: Store, tmp_path: Path) -> None:
    other = copied(store, tmp_path / "store")
    job = of_kind(study, "score")[0]
    path = other.record_path(job.key)
    record = path.read_bytes()
    path.unlink()
    claim = other.path / "claims" / job.key
    claim.parent.mkdir(exist_ok=True)
    claim.write_text("another-host 1")
    timer = threading.Timer(0.5, lambda: path.write_bytes(record))
    timer.start()
    watch = Watch()
    outcome = run(study.jobs.values(), other, limits=Limits(workers=1), on_event=watch)
    timer.join()
    assert outcome == Outcome(cached=len(study.jobs)) and watch.count()["elsewhere"] == 1
    assert claim.exists()  # not ours to remove


# failures


@pytest.mark.parametrize("workers", [0, 1])
def test_a_failing_job_takes_only_those_with_it_that_need_it(tmp_path: Path, workers: int) -> None:
    study = plan_study(bare("Failing", "Idle"))
    store = Store(tmp_path / "store")
    watch = Watch()
    outcome = run(study.jobs.values(), store, limits=Limits(workers=workers), on_event=watch)
    (failed,) = [job for job in of_kind(study, "attack") if "Failing" in job.spec.name]
    users = [job.key for job in study.jobs.values() if failed.key in job.needs]
    assert outcome.failed == {failed.key: "RuntimeError: the attack is broken"} and not outcome.complete
    assert outcome.skipped == len(users) == 2 and outcome.done == len(study.jobs) - 3
    assert {event.job.key for event in watch.events if event.kind == "skipped"} == set(users)
    (kept,) = store.failures()
    assert kept["key"] == failed.key and kept["kind"] == "RuntimeError"
    assert run(study.jobs.values(), store, limits=Limits(workers=0)).failed == outcome.failed  # tried once more


def test_a_job_that_takes_too_long_fails_and_the_rest_goes_on(tmp_path: Path) -> None:
    jobs = attacks_only({"name": "Idle", "seconds": 60}, "Idle", {"name": "Idle", "number": 2})
    outcome = run(jobs, Store(tmp_path / "store"), limits=Limits(workers=1, timeout=6.0))
    assert outcome.done == 2 and outcome.failed == {jobs[0].key: "it took more than 6 seconds"}


@pytest.mark.skipif(resident_megabytes() == 0, reason="the system does not tell how much memory a process has")
def test_a_job_that_takes_too_much_memory_fails_and_the_rest_goes_on(tmp_path: Path) -> None:
    jobs = attacks_only({"name": "Hungry", "megabytes": 900}, "Idle")
    store = Store(tmp_path / "store")
    outcome = run(jobs, store, limits=Limits(workers=1, memory=800.0))
    assert outcome.done == 1 and outcome.failed == {jobs[0].key: "it took more than 800 MB of memory"}
    assert store.failures()[0]["kind"] == "memory"


# kill -9


def test_a_worker_that_is_killed_at_a_job_costs_one_more_attempt(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    jobs = attacks_only({"name": "Dying", "marks": str(marks), "times": MAX_ATTEMPTS - 1}, "Idle")
    watch = Watch()
    outcome = run(jobs, Store(tmp_path / "store"), limits=Limits(workers=2), on_event=watch)
    assert outcome == Outcome(done=2) and watch.count()["retried"] == MAX_ATTEMPTS - 1


def test_a_job_that_kills_every_worker_fails(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    jobs = attacks_only({"name": "Dying", "marks": str(marks), "times": 99}, "Idle")
    outcome = run(jobs, Store(tmp_path / "store"), limits=Limits(workers=2))
    assert outcome.done == 1 and outcome.failed == {jobs[0].key: f"its worker died {MAX_ATTEMPTS} times"}
    assert len(list(marks.iterdir())) == MAX_ATTEMPTS


def test_the_last_attempt_of_a_job_has_the_machine_for_itself(tmp_path: Path) -> None:
    """A worker that the system kills for want of memory may have had a neighbour that took it."""
    sign, log = str(tmp_path / "sign"), tmp_path / "log"
    shy = {"name": "Shy", "sign": sign, "log": str(log)}
    jobs = attacks_only({"name": "Busy", "sign": sign, "seconds": 5}, shy, "Idle")
    watch = Watch()
    outcome = run(jobs, Store(tmp_path / "store"), limits=Limits(workers=2), on_event=watch)
    assert outcome.complete and watch.count()["retried"] == MAX_ATTEMPTS - 1 == 2
    assert log.read_text() == "x" * MAX_ATTEMPTS
    assert [event.message for event in watch.events if event.kind == "retried"][-1].endswith("tried alone")


def children() -> set[int]:
    """Living processes that this one's fork server has started; only where /proc is."""
    parents: dict[int, int] = {}
    dead: set[int] = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(path.parent.name)] = int(words[1])
        if words[0] == "Z":
            dead.add(int(path.parent.name))
    servers = {pid for pid, parent in parents.items() if parent == os.getpid()}
    return {pid for pid, parent in parents.items() if parent in servers} - dead


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to find the workers")
def test_workers_killed_from_outside_are_replaced_and_all_jobs_finish(
    study: Study, store: Store, tmp_path: Path
) -> None:
    """Three kills, each after some more jobs, of whatever worker there is, busy or not."""
    killed: list[int] = []

    def kill(event: Event) -> None:
        if len(killed) < 3 and sum(each.kind == "done" for each in watch.events) >= 8 * (len(killed) + 1):
            for pid in sorted(children())[:1]:
                with suppress(ProcessLookupError):  # it may end by itself meanwhile; the next event tries again
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

    watch = Watch(done=kill)
    other = Store(tmp_path / "store")
    outcome = run(study.jobs.values(), other, limits=Limits(workers=2), on_event=watch)
    assert len(killed) == 3 and outcome == Outcome(done=len(study.jobs))
    assert bits(other, study.jobs) == bits(store, study.jobs) and other.verify() == []


# interrupts


def interrupting(times: int, number: int = signal.SIGINT) -> Watch:
    """Sends so many signals to this process when the first job has begun for a while."""
    begun: list[str] = []

    def send() -> None:
        for _ in range(times):
            time.sleep(0.5)
            os.kill(os.getpid(), number)

    def start(event: Event) -> None:
        if not begun:
            begun.append(event.job.key)
            threading.Timer(0.5, send).start()

    return Watch(started=start)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("workers", [0, 1])
def test_one_interrupt_finishes_what_is_running_and_nothing_else(tmp_path: Path, workers: int, number: int) -> None:
    jobs = attacks_only(*({"name": "Idle", "seconds": 3, "number": number} for number in range(3)))
    store = Store(tmp_path / "store")
    watch = interrupting(1, number)
    handler = signal.getsignal(number)
    outcome = run(jobs, store, limits=Limits(workers=workers), on_event=watch)
    assert outcome == Outcome(done=1, interrupted=True) and not outcome.complete
    assert [store.has(job.key) for job in jobs] == [True, False, False]
    assert watch.count()["finishing"] == 1
    assert signal.getsignal(number) is handler
    assert not list((store.path / "claims").glob("*"))
    assert run(jobs[:1], store) == Outcome(cached=1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("workers", [0, 1])
def test_two_interrupts_stop_at_once(tmp_path: Path, workers: int, number: int) -> None:
    jobs = attacks_only(*({"name": "Idle", "seconds": 60, "number": number} for number in range(2)))
    store = Store(tmp_path / "store")
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(jobs, store, limits=Limits(workers=workers), on_event=interrupting(2, number))
    assert time.monotonic() - start < 40
    assert not any(store.has(job.key) for job in jobs) and not list((store.path / "claims").glob("*"))


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from grb.pipeline import Limits, Store, run
from pipeline.test_scheduler import attacks_only
jobs = attacks_only({{"name": "Idle", "seconds": 60}}, "Idle")
print("going", flush=True)
run(jobs, Store({store!r}), limits=Limits(workers=2), on_event=lambda event: print(event.kind, flush=True))
"""


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc to see who lives")
def test_a_script_without_a_main_guard_runs_once_and_its_workers_end_with_it(tmp_path: Path) -> None:
    """Workers do not import the script; and when it is killed, and even stays a zombie, they do not live on."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(tests=str(TESTS), store=str(tmp_path / "store")))
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        lines = [parent.stdout.readline().strip() for _ in range(4)]
        assert lines == ["going", "started", "started", "done"]
        workers = [path.parent.name for path in Path("/proc").glob("[0-9]*/stat") if descends(path, parent.pid)]
        assert len(workers) >= 3  # two workers, and who forked them
        parent.kill()
        end = time.monotonic() + 20
        while any(alive(pid) for pid in workers) and time.monotonic() < end:
            time.sleep(0.1)
        assert not any(alive(pid) for pid in workers)  # before anybody has waited for the parent
    jobs = attacks_only({"name": "Idle", "seconds": 60}, "Idle")
    store = Store(tmp_path / "store")
    assert [store.has(job.key) for job in jobs] == [False, True]
    assert store.claim(jobs[0].key)  # whose owner is gone


def descends(path: Path, ancestor: int) -> bool:
    """Whether a process is a child, or a child's child, of another."""
    for _ in range(2):
        try:
            parent = path.read_text().rpartition(")")[2].split()[1]
        except OSError:
            return False
        if int(parent) == ancestor:
            return True
        path = Path(f"/proc/{parent}/stat")
    return False


def test_a_store_that_workers_cannot_open_ends_the_run_with_a_sentence(tmp_path: Path) -> None:
    jobs = attacks_only("Idle")
    store = Store(tmp_path / "store")
    store.prepare()
    (store.path / "store.json").write_text('{"format": 9}')
    with pytest.raises(DataError, match="a worker could not start: .* has store format 9"):
        run(jobs, store, limits=Limits(workers=1))
    assert not list((store.path / "claims").glob("*"))


def test_events_that_raise_end_the_run_and_its_workers(tmp_path: Path) -> None:
    def fail(event: Event) -> None:
        raise BrokenPipeError

    jobs = attacks_only({"name": "Idle", "seconds": 60})
    start = time.monotonic()
    with pytest.raises(BrokenPipeError):
        run(jobs, Store(tmp_path / "store"), limits=Limits(workers=1), on_event=fail)
    assert time.monotonic() - start < 30
    assert replace(jobs[0]).key == jobs[0].key
