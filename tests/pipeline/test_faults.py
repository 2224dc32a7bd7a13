"""Faults of the machine: a full disk, few file handles, a clock that jumps. Nothing is lost, and one sentence tells."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from grb.errors import DataError
from grb.pipeline import Limits, Store, Study, plan_study, run
from grb.pipeline import store as store_module
from grb.pipeline.unused import STALE_SECONDS
from pipeline.parts import BARE, bits, recipe

STRESS = os.environ.get("HYPOTHESIS_PROFILE") == "stress"
SMALL = 300  # kilobytes


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for a few records."""
    place = tmp_path / "small"
    place.mkdir()
    if os.geteuid() != 0:
        pytest.skip("needs root: a small file system is mounted")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SMALL}k", "tmpfs", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()[:80]}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_full_disk_fails_jobs_in_one_sentence_and_loses_nothing(
    study: Study, store: Store, small_disk: Path, tmp_path: Path, workers: int
) -> None:
    own = Store(small_disk / "store")
    filler = small_disk / "filler"
    own.prepare()
    filler.write_bytes(bytes((SMALL - 120) * 1024))
    try:
        outcome = run(study.jobs.values(), own, limits=Limits(workers=workers))
    except DataError as error:  # not even the failure could be written down
        assert "No space left" in str(error)
    else:
        assert outcome.failed and all("No space left" in sentence for sentence in outcome.failed.values()), outcome
    assert own.verify() == []
    assert not list(own.path.rglob("*.part"))
    done = set(own.keys())
    filler.unlink()
    subprocess.run(["mount", "-o", "remount,size=100m", str(small_disk)], check=True)
    again = run(study.jobs.values(), own, limits=Limits(workers=0))
    assert again.complete and again.cached == len(done)
    assert bits(own, study.jobs) == bits(store, study.jobs)


class Disk:
    """The calls by which files change or are read, one of which fails; only inside a directory."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, inside: Path) -> None:
        self.inside, self.calls, self.fails, self.code = str(inside), 0, 0, 0
        for owner, name in (
            (os, "replace"),
            (os, "fsync"),
            (os, "utime"),
            (os, "open"),
            (tempfile, "mkstemp"),
            (Path, "mkdir"),
            (Path, "unlink"),
            (Path, "read_bytes"),
            (Path, "read_text"),
            (store_module, "open"),
        ):
            monkeypatch.setattr(owner, name, self._failing(getattr(owner, name, open)), raising=False)

    def _failing(self, real: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            place = str(named.get("dir") or next(iter(given), ""))
            if self.code and (self.inside in place or place.isdecimal()):  # fsync knows a number
                self.calls += 1
                if self.calls == self.fails:
                    raise OSError(self.code, os.strerror(self.code), place)
            return real(*given, **named)

        return call

    def failing_at(self, number: int, code: int) -> None:
        self.calls, self.fails, self.code = 0, number, code

    def mend(self) -> None:
        self.code = 0


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO] if STRESS else [errno.ENOSPC])
@pytest.mark.parametrize("workers", [0, 1] if STRESS else [0])
def test_a_disk_that_fails_at_any_call_costs_a_job_at_most(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    code: int,
    workers: int,
) -> None:
    """One call after the other fails; the run says so in a sentence, and the next one completes what is missing.

    With a worker it is the parent's calls that fail: claims, failures, what it reads.
    """
    study = plan_study(recipe(BARE, attacks=["rnd"]))
    reference = Store(tmp_path / "reference")
    assert run(study.jobs.values(), reference, limits=Limits(workers=0)).complete
    wanted = bits(reference, study.jobs)
    disk = Disk(monkeypatch, tmp_path / "stores")
    number, sentences = 0, set()
    while True:
        number += 1
        own = Store(tmp_path / "stores" / str(number))
        disk.failing_at(number, code)
        try:
            outcome = run(study.jobs.values(), own, limits=Limits(workers=workers))
            told = list(outcome.failed.values())
        except DataError as error:
            told = [str(error)]
        reached = disk.calls >= number
        disk.mend()
        assert all(os.strerror(code) in sentence for sentence in told), told
        assert own.verify() == []
        if not workers:  # one that is ended in the middle of writing leaves what `grb store gc` finds
            assert not list(own.path.rglob("*.part"))
        again = run(study.jobs.values(), own, limits=Limits(workers=0))
        assert again.complete and bits(own, study.jobs) == wanted, (number, again)
        sentences |= set(told)
        if not reached:
            break
    record_property("counted", f"{number - 1} calls failed, one in each run; {len(sentences)} sentences")
    assert number > (10 if workers else 20) and len(sentences) > 2


def test_few_file_handles_are_enough_or_said_so(tmp_path: Path) -> None:
    """64 handles: a run with two workers finishes, or ends in one sentence; what is done is whole."""
    script = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
from grb.errors import GRBError
from grb.pipeline import Limits, Store, plan_study, run
from pipeline.parts import BARE, recipe
jobs = plan_study(recipe(BARE, attacks=["rnd"], repeats=5)).jobs.values()
try:
    outcome = run(jobs, Store(sys.argv[1]), limits=Limits(workers=2))
    print("complete" if outcome.complete else outcome)
except (GRBError, OSError) as error:
    print("refused", str(error).splitlines())
"""
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "store")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        check=False,
        timeout=300,
    )
    assert done.stdout.startswith(("complete", "refused")), done.stderr
    assert Store(tmp_path / "store").verify() == []
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 64


@pytest.mark.parametrize("jump", [-3600.0, 3600.0])
def test_a_clock_that_jumps_neither_frees_nor_freezes_a_claim_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    """A claim of another machine, then an hour forwards or backwards; its owner renews it, or is gone."""
    own = Store(tmp_path / "store")
    key = "a" * 64
    assert own.claim(key)
    path = own.path / "claims" / key
    path.write_text("elsewhere 1")
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + jump)
    now = real() + jump
    os.utime(path, (now, now))  # its owner lives, and its clock is the file system's
    assert not own.claim(key)
    os.utime(path, (now - STALE_SECONDS - 1, now - STALE_SECONDS - 1))
    assert own.claim(key)
