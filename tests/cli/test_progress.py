from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from grb.cli.progress import ProgressReporter
from grb.pipeline import DataRef, Event, Job, Spec
from grb.trainer import Epoch

JOBS = [Job("fit", Spec("gcn"), DataRef("synth-tiny", "a" * 64), seed=seed) for seed in range(3)]


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=100, markup=False, color_system=None)


def pipe() -> Console:
    return Console(file=io.StringIO(), width=200)


def written(console: Console) -> str:
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def of_jobs(console: Console, **options: Any) -> ProgressReporter:
    """One cheap, one dear and one job that was done before."""
    costs = {JOBS[0].key: 10.0, JOBS[1].key: 90.0}
    return ProgressReporter(console, 3, noun="job", costs=costs, **options)


def test_live_line_shows_epochs_loss_scores_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grb.cli.progress.REDRAW", 0.0)
    console = terminal()
    with ProgressReporter(console, 2) as progress:
        progress.start("gcn seed 0", 20)
        progress.epoch(Epoch(0, 1.5, 0.75, 1.0, 0.01))
        progress.epoch(Epoch(1, 1.25, 0.5, 1.0, 0.01))
        progress.done("gcn seed 0: full 50.00")
    assert "2/20  loss 1.250  val 50.00  best 75.00  ETA <" in written(console)
    assert "1/2  ETA" in written(console)
    assert "gcn seed 0: full 50.00" in written(console)


def test_long_run_without_a_terminal_gives_a_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grb.cli.progress.HEARTBEAT", 0.0)
    console = pipe()
    with ProgressReporter(console, 1) as progress:
        progress.start("gcn seed 0", 20)
        progress.epoch(Epoch(0, 1.5, None, None, 0.01))
    assert written(console).startswith("gcn seed 0: epoch 1/20  loss 1.500  ETA <")


def test_finished_runs_are_numbered_without_a_terminal() -> None:
    console = pipe()
    with ProgressReporter(console, 2) as progress:
        for seed in range(2):
            progress.start(f"gcn seed {seed}", 20)
            progress.epoch(Epoch(0, 1.5, None, None, 0.01))
            progress.done(f"gcn seed {seed}: done")
    assert written(console) == "[1/2] gcn seed 0: done\n[2/2] gcn seed 1: done\n"


def test_a_run_of_several_tasks_shows_the_one_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grb.cli.progress.REDRAW", 0.0)
    console = terminal()
    with ProgressReporter(console, 2) as progress:
        progress.start("surrogate", 20)
        progress.epoch(Epoch(0, 1.5, None, None, 0.01))
        progress.start("attack", 10)
        before = len(written(console))
        progress.done("attack: 50.00")
    assert "surrogate" not in written(console)[before:] and progress.running == {}


@pytest.mark.parametrize("console", [terminal(), pipe()], ids=["terminal", "pipe"])
def test_jobs_are_weighted_by_their_cost_and_failures_are_printed_once(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("grb.cli.progress.time.monotonic", lambda: now[0])
    monkeypatch.setattr("grb.cli.progress.HEARTBEAT", 0.0)
    with of_jobs(console, workers=2) as progress:
        for job in JOBS[:2]:
            progress.on_event(Event("started", job))
        now[0] = 20.0
        progress.on_event(Event("done", JOBS[0], 20.0))
        # a tenth of the work took 20 seconds
        assert f"2/3 jobs  ETA 3:00  {JOBS[1].label}" in written(console)
        progress.on_event(Event("failed", JOBS[1], message="too cold"))
    assert "3/3 jobs  ETA 0:00" in written(console)
    assert written(console).count(f"failed: {JOBS[1].label}: too cold\n") == 1


def test_the_first_eta_is_the_expected_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grb.cli.progress.HEARTBEAT", 0.0)
    console = pipe()
    with of_jobs(console, workers=2) as progress:
        progress.on_event(Event("skipped", JOBS[2]))
    assert written(console) == "2/3 jobs  ETA 0:50\n"


def test_silence_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grb.cli.progress.SILENCE", 0.06)
    console = pipe()
    with of_jobs(console) as progress:
        progress.on_event(Event("started", JOBS[0]))
        progress.over.wait(1.0)
    assert f"1/3 jobs  ETA 1:40  {JOBS[0].label}\n" in written(console)


def test_events_are_json_lines_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    console = pipe()
    with of_jobs(console, as_json=True) as progress:
        progress.on_event(Event("cached", JOBS[2]))
        progress.on_event(Event("started", JOBS[0]))
        progress.on_event(Event("done", JOBS[0], 1.23456))
        progress.on_event(Event("failed", JOBS[1], message="too cold"))
    first, second, third = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert first == {"event": "started", "key": JOBS[0].key, "job": JOBS[0].label}
    assert second["seconds"] == 1.235 and third["error"] == "too cold"
    assert written(console) == ""


def test_an_interrupt_is_answered() -> None:
    console = pipe()
    with of_jobs(console) as progress:
        progress.on_event(Event("finishing", JOBS[0]))
    assert written(console) == f"finishing {JOBS[0].label}; Ctrl-C once more stops now\n"
