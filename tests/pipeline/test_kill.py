"""kill -9 of the parent at random moments: nothing is torn or lost, and hardly anything is done twice."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from grb.pipeline import Limits, Store, Study, plan_study, run
from pipeline.parts import bare, bits, of_kind

KILLS = int(os.environ.get("GRB_KILLS", "200"))
WORKERS = 2
REPEATS = 40
# what the killed process runs: it tells every job that is done
SCRIPT = """
import sys
from grb.pipeline import Limits, Store, run
from pipeline.test_kill import WORKERS, study_of
jobs = study_of(sys.argv[1]).jobs.values()
store = Store(sys.argv[2])
print("going", flush=True)
outcome = run(
    jobs,
    store,
    limits=Limits(workers=WORKERS),
    on_event=lambda event: event.kind == "done" and print(event.job.key, flush=True),
)
print("complete" if outcome.complete else outcome, flush=True)
"""


def study_of(log: str) -> Study:
    """Forty cheap attacks and their eighty scores, on two models."""
    return plan_study(bare({"name": "Counted", "log": log}, repeats=REPEATS))


def killed_run(log: Path, store: Store, after: float, *, at_work: bool) -> tuple[list[str], bool]:
    """Run until it is killed; the jobs that it said were done, and whether that were all.

    Args:
        log: Where attacks write a line when they begin.
        store: Where to.
        after: Seconds from the beginning, or from the first job that is done, to the kill.
        at_work: Which of both.
    """
    command = [sys.executable, "-c", SCRIPT, str(log), str(store.path)]
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as running:
        assert running.stdout is not None and running.stdout.readline() == "going\n"
        first = running.stdout.readline() if at_work else ""
        time.sleep(after)
        running.send_signal(signal.SIGKILL)
        lines = [*first.split(), *running.stdout.read().split()]
    return [line for line in lines if line != "complete"], "complete" in lines


@pytest.mark.stress
def test_kill_9_of_the_parent_loses_nothing(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    moment = random.Random(0)
    reference, log = Store(tmp_path / "reference"), tmp_path / "log"
    study = study_of(str(log))
    assert run(study.jobs.values(), reference, limits=Limits(workers=0)).complete
    wanted = bits(reference, study.jobs)
    attacks = {job.key for job in of_kind(study, "attack")}
    kills = torn = lost = stores = twice = most_twice = 0
    while kills < KILLS:
        stores += 1
        store = Store(tmp_path / f"store-{stores}")
        for job in of_kind(study, "fit"):  # they take longest and are not what this is about
            for entry in reference.read(job.key).objects.values():
                store.put(reference.object_path(entry["sha256"], entry["suffix"]).read_bytes(), entry["suffix"])
            store.write(reference.read(job.key))
        complete = False
        while not complete and kills < KILLS:
            log.write_bytes(b"")
            before = {key for key in attacks if store.has(key)}
            at_work = moment.random() < 0.75
            told, complete = killed_run(log, store, moment.uniform(0.0, 0.5 if at_work else 3.0), at_work=at_work)
            time.sleep(0.6)  # its workers notice within a quarter of a second
            kills += not complete
            torn += len(store.verify())
            lost += sum(not store.has(key) for key in told)
            again = len(log.read_bytes().split()) - len({key for key in attacks if store.has(key)} - before)
            twice, most_twice = twice + again, max(most_twice, again)
        outcome = run(study.jobs.values(), store, limits=Limits(workers=0))
        assert outcome.complete and bits(store, study.jobs) == wanted and store.verify() == []
        shutil.rmtree(store.path)
    record_property(
        "counted",
        f"{kills} kills, {stores} stores: {torn} torn, {lost} lost, {twice} attacks computed in vain, {most_twice} at most",
    )
    assert torn == 0 and lost == 0 and most_twice <= WORKERS
