from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest

from grb.model.profiling import profiler
from grb.pipeline import Job, Limits, Store, Study, plan_study, run
from grb.pipeline.estimate import estimate, seconds_of
from grb.pipeline.guess import ADVERSARIAL, profiling_epoch
from grb.pipeline.job_times import LATEST, remember, remembered
from grb.pipeline.profiles import Profiling, plan_profiles
from grb.pipeline.spec import jsonable
from grb.pipeline.study import DatasetSize
from pipeline.parts import BARE, copied, of_kind, recipe

ROOT = Path(__file__).resolve().parents[2]


def test_what_is_done_costs_nothing(study: Study, store: Store) -> None:
    lines = {line.kind: line for line in estimate(study, store)}
    assert {kind: line.jobs for kind, line in lines.items()} == {
        kind: len(of_kind(study, kind)) for kind in ("fit", "attack", "score")
    }
    for line in lines.values():
        assert line.cached == line.jobs and line.seconds == 0 and line.bytes == 0 and line.megabytes == 0
    assert seconds_of(study, store) == {}


def test_what_was_measured_is_the_median_of_its_own_kind(study: Study, store: Store, tmp_path: Path) -> None:
    partial = copied(store, tmp_path / "store")
    lost = of_kind(study, "attack")[:2]
    for job in lost:
        partial.record_path(job.key).unlink()
    line = next(line for line in estimate(study, partial) if line.kind == "attack")
    assert line.measured and line.jobs - line.cached == 2

    def median(gone: Job) -> float:
        alike = [job for job in of_kind(study, "attack") if job.spec.name == gone.spec.name and job not in lost]
        same = [job for job in alike if job.mode == gone.mode]
        return statistics.median(partial.read(job.key).provenance["cpu_seconds"] for job in same or alike)

    assert line.seconds == pytest.approx(sum(map(median, lost)))
    assert seconds_of(study, partial) == {job.key: pytest.approx(median(job)) for job in lost}
    assert line.megabytes > 10 and line.bytes > 0


def test_what_nobody_measured_is_guessed_and_says_so(tmp_path: Path) -> None:
    study = plan_study(recipe(defenses=["gcn+at", "gcn+at-full", "gcn+ln"]))
    empty = Store(tmp_path / "store")
    lines = {line.kind: line for line in estimate(study, empty)}
    assert not any(line.measured or line.cached for line in lines.values())
    assert all(line.seconds > 0 and line.bytes > 0 and line.megabytes > 100 for line in lines.values())
    each = seconds_of(study, empty)
    assert each.keys() == study.jobs.keys() and not (tmp_path / "store").exists()
    by_name = {job.spec.name: each[job.key] for job in of_kind(study, "fit")}
    assert by_name["gcn+at"] == by_name["gcn+at-full"] == pytest.approx(by_name["gcn+ln"] * ADVERSARIAL)


def test_the_ensemble_is_guessed_to_take_longer_on_slow_victims(tmp_path: Path) -> None:
    study = plan_study(recipe(defenses=["gcn", "gatguard", "gat-jaccard"], worst_case="standard"))
    each = seconds_of(study, Store(tmp_path / "store"))
    ensembles = [job for job in of_kind(study, "attack") if job.spec.name == "auto"]
    by_victim = {study.jobs[job.inputs["surrogate"]].spec.name: each[job.key] for job in ensembles}
    single = max(each[job.key] for job in of_kind(study, "attack") if job.spec.name == "rnd")
    assert by_victim["gatguard"] == pytest.approx(16 * by_victim["gcn"])
    assert by_victim["gat-jaccard"] == pytest.approx(40 * by_victim["gcn"])
    assert by_victim["gcn"] > 100 * single


def test_more_iterations_are_guessed_to_take_longer(tmp_path: Path) -> None:
    empty = Store(tmp_path / "store")
    few, many = (
        next(line.seconds for line in estimate(plan_study(recipe(iterations=count)), empty) if line.kind == "attack")
        for count in (10, 1000)
    )
    assert many > 50 * few
    usual = recipe(BARE, attacks=["fgsm"], dataset="synth-cora")
    line = next(line for line in estimate(plan_study(usual), empty) if line.kind == "attack")
    assert line.seconds > 10 * few  # the paper's number of iterations, which no recipe writes down


def test_measured_steps_count(study: Study, store: Store) -> None:
    """A store of short attacks does not make long ones cheap."""
    job = next(job for job in of_kind(study, "attack") if job.spec.name == "fgsm")
    steps = job.spec.params["iterations"]
    longer = plan_study(recipe(iterations=100 * steps))
    each = seconds_of(longer, store)
    past: dict[str, list[float]] = {}
    for own in of_kind(study, "attack"):
        if own.spec.name == "fgsm":
            attacked = study.jobs[own.inputs["surrogate"]].spec.name
            past.setdefault(attacked, []).append(store.read(own.key).provenance["cpu_seconds"])
    long = [own for own in of_kind(longer, "attack") if own.spec.name == "fgsm"]
    assert long
    for own in long:
        usual = statistics.median(past[longer.jobs[own.inputs["surrogate"]].spec.name])
        assert each[own.key] == pytest.approx(100 * usual)


def test_measurements_of_another_dataset_do_not_count(store: Store, tmp_path: Path) -> None:
    study = plan_study(recipe(dataset="synth-cora"))
    assert not any(line.measured for line in estimate(study, store))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine that remembers nothing yet."""
    monkeypatch.setenv("GRB_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "job-times.json"


def test_what_was_run_on_this_machine_is_no_guess_in_a_new_store(
    study: Study, store: Store, tmp_path: Path, machine: Path
) -> None:
    empty = Store(tmp_path / "store")
    assert not any(line.measured for line in estimate(study, empty))
    remember(store.read(key) for key in study.jobs)
    planned = seconds_of(study, empty)
    assert all(line.measured for line in estimate(study, empty))
    done = {key: store.read(key).provenance["cpu_seconds"] for key in study.jobs}
    first = max(done, key=done.__getitem__)  # the first training of a process imports the optimisers
    took, told = (sum(seconds[key] for key in done if key != first) for seconds in (done, planned))
    assert took / 1.5 < told < 1.5 * took


def test_the_latest_of_every_method_are_remembered(store: Store, study: Study, machine: Path) -> None:
    record = store.read(of_kind(study, "fit")[0].key)
    for _ in range(2 * LATEST):
        remember([record])
    assert len(remembered()) == LATEST
    remember([])
    assert len(remembered()) == LATEST


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 0, "times": []}', '{"format": 1, "times": [[1, 2]]}'])
def test_a_damaged_memory_is_none(text: str, store: Store, study: Study, machine: Path) -> None:
    machine.parent.mkdir()
    machine.write_text(text)
    assert remembered() == []
    remember([store.read(of_kind(study, "fit")[0].key)])
    assert len(remembered()) == 1


def test_a_method_that_nobody_ran_is_guessed_at_the_speed_of_those_that_somebody_did(
    study: Study, store: Store, tmp_path: Path
) -> None:
    other = plan_study(recipe(defenses=["gat"]))
    (key,) = (job.key for job in of_kind(other, "fit") if job.spec.name == "gat")
    cold, warm = seconds_of(other, Store(tmp_path / "store"))[key], seconds_of(other, store)[key]
    assert warm != cold and warm > 0


# nodes, edges, graphs
MEASURED = {
    "Actor": (7600, 26659, 1),
    "CF-CiteSr": (4230, 5337, 1),
    "ENZYMES": (19580, 37282, 600),
    "IMDB-BINARY": (19773, 96531, 1000),
    "MUTAG": (3371, 3721, 188),
    "PROTEINS": (43471, 81044, 1113),
    "SYNTHETICnew": (30000, 58875, 300),
    "WebKB-Cor": (183, 277, 1),
    "WebKB-Tex": (183, 279, 1),
    "WebKB-Wis": (251, 450, 1),
}


@pytest.mark.parametrize("title", MEASURED)
def test_profiling_takes_no_more_than_twice_what_the_plan_says(title: str) -> None:
    """CPU seconds of an epoch, as the runs of docs/results say them; small graphs took three times what was planned."""
    rows = map(json.loads, (ROOT / "docs/results/taxonomy-runs.jsonl").read_text().splitlines())
    own = [row["cpu_seconds"] / row["epochs"] for row in rows if row["dataset"] == title]
    nodes, edges, graphs = MEASURED[title]
    method = jsonable(profiler("gcn", collection=graphs > 1, epochs=100))
    planned = profiling_epoch(method, "gcn", DatasetSize(nodes, edges, 10, graphs))
    assert 0.5 < statistics.median(own) / planned < 2


def test_runs_of_another_length_are_scaled_by_their_epochs(tmp_path: Path) -> None:
    """A try-out of two epochs in the store must not make three hundred look cheap."""
    store = Store(tmp_path / "store")
    short = plan_profiles(Profiling(["synth-tiny"], [], seeds=[0], training={"epochs": 2, "width": 8}))
    run(short.jobs.values(), store, limits=Limits(0))
    (record,) = [store.read(key) for key in short.jobs]
    long = plan_profiles(Profiling(["synth-tiny"], [], seeds=[0], training={"epochs": 200, "width": 8}))
    (seconds,) = seconds_of(long, store).values()
    assert seconds == pytest.approx(100 * record.provenance["cpu_seconds"])
    patient = plan_profiles(
        Profiling(["synth-tiny"], [], seeds=[0], training={"epochs": 200, "patience": 10, "width": 8})
    )
    assert seconds_of(patient, store)[next(iter(patient.jobs))] == pytest.approx(seconds / 4)
