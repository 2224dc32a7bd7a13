"""Code of a user's: whatever a model does, its own jobs fail or give what they should, and nothing else is harmed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from grb.pipeline import Limits, Outcome, Store, plan_study, run
from pipeline.parts import BARE, TESTS, alive, bits, board_of, of_kind, recipe

BAD_MODELS = {
    "Changing": "changes its input in place",
    "Crooked": "one row for each of",
    "Raising": "RuntimeError: no",
    "Leaving": "SystemExit: 3",
    "Hanging": "it took more than",
    "Eating": "MB of memory",
    "Feeding": "MB of memory",
    "Gulping": "MB of memory",
    "Garbling": "its worker died 3 times",
    "Stuttering": "it took more than",
    "Unspeakable": "UnspeakableError",
    "Blinking": "ValueError: ?[2J?",
}


@pytest.mark.parametrize("name", BAD_MODELS)
def test_a_model_that_breaks_the_rules_fails_its_own_jobs_only(name: str, tmp_path: Path) -> None:
    bad = recipe(BARE, defenses=[f"pipeline.plugins:{name}"], attacks=["rnd"])
    study = plan_study(bad)
    own = Store(tmp_path / "store")
    slow, hungry = name in ("Hanging", "Stuttering"), name in ("Eating", "Feeding", "Gulping")
    limits = Limits(workers=1, timeout=8.0 if slow else None, memory=1500 if hungry else None)
    outcome = run(study.jobs.values(), own, limits=limits)
    assert outcome.failed and all(BAD_MODELS[name] in sentence for sentence in outcome.failed.values()), outcome
    broken = {key for key, job in study.jobs.items() if "plugins" in job.spec.name}
    assert set(outcome.failed) <= broken | {key for key, job in study.jobs.items() if set(job.needs) & broken}
    assert {failure["key"] for failure in own.failures()} == set(outcome.failed)
    assert own.verify() == []


def test_an_attack_that_changes_what_counts_is_counted_where_it_never_ran(tmp_path: Path) -> None:
    study = plan_study(recipe(BARE, defenses=["gcn"], attacks=["pipeline.plugins:CountChanging"]))
    own = Store(tmp_path / "store")
    outcome = run(study.jobs.values(), own, limits=Limits(workers=1))
    (attack,) = of_kind(study, "attack")
    assert "its record does not hold: its budget of nodes is 1.0, but its edit uses 100" in outcome.failed[attack.key]
    assert list(outcome.failed) == [attack.key] and not own.has(attack.key) and outcome.skipped
    assert own.verify() == []


def test_sys_exit_in_this_process_ends_its_jobs_only(tmp_path: Path) -> None:
    study = plan_study(recipe(BARE, defenses=["pipeline.plugins:Leaving", "gcn"], attacks=["rnd"]))
    outcome = run(study.jobs.values(), Store(tmp_path / "store"), limits=Limits(workers=0))
    assert list(outcome.failed.values()) == ["SystemExit: 3"] and outcome.done > 3 and not outcome.interrupted


@pytest.mark.parametrize(
    ("cluster", "changes"), [(None, ["dtype", "gradients", "relu", "argmax", "ours"]), ("local:1", ["dtype"])]
)
def test_what_a_model_changes_for_all_stays_with_its_own_jobs(
    cluster: str | None, changes: list[str], tmp_path: Path
) -> None:
    """One worker, which would do all jobs one after the other: the records of our methods have the same bits."""
    if cluster is not None:
        pytest.importorskip("distributed", reason="needs the extra dask")
    small = {"modes": ["full"], "repeats": 1, "white_box": []}
    clean = plan_study(recipe(defenses=["gcn"], **small))
    alone, beside = Store(tmp_path / "alone"), Store(tmp_path / "beside")
    assert run(clean.jobs.values(), alone, limits=Limits(workers=1)).complete
    spoiling = [{"name": "pipeline.plugins:Spoiling", "what": what} for what in changes]
    study = plan_study(recipe(defenses=[*spoiling, "gcn"], **small))
    assert set(clean.jobs) < set(study.jobs)
    run(study.jobs.values(), beside, limits=Limits(workers=1), cluster=cluster)
    assert bits(beside, clean.jobs) == bits(alone, clean.jobs)


def test_a_model_may_have_processes_of_its_own(tmp_path: Path) -> None:
    study = plan_study(recipe(BARE, defenses=["pipeline.plugins:Delegating"], attacks=["rnd"]))
    outcome = run(study.jobs.values(), Store(tmp_path / "store"), limits=Limits(workers=1))
    assert outcome == Outcome(done=len(study.jobs))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_model_that_forks_is_one_model(workers: int, tmp_path: Path) -> None:
    """Its copies neither answer for it nor go on with the run."""
    study = plan_study(recipe(BARE, defenses=["pipeline.plugins:Forking"], attacks=["rnd"]))
    events: list[str] = []
    own = Store(tmp_path / "store")
    outcome = run(
        study.jobs.values(), own, limits=Limits(workers=workers), on_event=lambda event: events.append(event.kind)
    )
    assert outcome == Outcome(done=len(study.jobs))
    assert events.count("done") == events.count("started") == len(study.jobs)
    assert own.verify() == []


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc to see who lives")
def test_what_a_model_starts_ends_with_its_worker(tmp_path: Path) -> None:
    log = tmp_path / "log"
    breeding = {"name": "pipeline.plugins:Breeding", "log": str(log)}
    study = plan_study(recipe(BARE, defenses=[breeding], attacks=["rnd"]))
    outcome = run(study.jobs.values(), Store(tmp_path / "store"), limits=Limits(workers=1, timeout=8.0))
    assert any("it took more than 8 seconds" in sentence for sentence in outcome.failed.values()), outcome
    left = [pid for pid in log.read_text().split() if alive(pid)]
    assert log.read_text().split() and not left


@pytest.mark.parametrize(("name", "workers"), [("Talking", "0"), ("Talking", "1"), ("Writing", "1")])
def test_what_a_model_prints_is_not_taken_for_our_output(name: str, workers: str, tmp_path: Path) -> None:
    """A command with --json prints JSON, whatever a plug-in says."""
    text = BARE + f"attacks: [rnd]\ndefenses: [pipeline.plugins:{name}]\n"
    (tmp_path / "talk.yaml").write_text(text)
    command = ["run", "talk.yaml", "--store", "store", "--workers", workers, "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "grb", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-500:]
    assert "x" * 100 in done.stderr
    decoder, rest, values = json.JSONDecoder(), done.stdout.strip(), 0
    while rest:
        _, end = decoder.raw_decode(rest)
        rest, values = rest[end:].lstrip(), values + 1
    assert values > 1


def test_nan_predictions_count_as_wrong(tmp_path: Path) -> None:
    study = plan_study(recipe(BARE, defenses=["pipeline.plugins:Nowhere"], attacks=["rnd"]))
    own = Store(tmp_path / "store")
    assert run(study.jobs.values(), own, limits=Limits(workers=0)).complete
    board = board_of(study, own)
    cell = board.cell("rnd", "pipeline.plugins:Nowhere", "full")
    assert cell is not None and cell.score.mean == 0.0
    (flag,) = [flag for flag in board.flags if "gives NaN" in flag]
    assert any("not-finite" in other for other in board.flags)  # check_model finds it too
    assert flag == "pipeline.plugins:Nowhere gives NaN for up to 90 of 90 targets; they count as wrong"
