"""Defenses that remember outside the model are found, because a new process remembers nothing."""

from __future__ import annotations

from contextlib import suppress
from multiprocessing import shared_memory
from pathlib import Path

import pytest

from grb.evaluator.board import Board
from grb.evaluator.measurement import Measurement
from grb.pipeline import Limits, Store, build_board, plan_study, run
from pipeline import cheats
from pipeline.parts import recipe

STUDY = """
dataset: synth-tiny
attacks: [fgsm]
modes: [full]
repeats: 1
iterations: 5
training: {epochs: 10}
"""
CHEATS = [
    "FirstPredictions", "ByFeatures", "ByRounded", "ByCalls", "Disguised", "ByFrames", "ByFile", "ByEnvironment",
    "BySharedMemory", "Dying", "BesideCode", "ByLinks",
]  # fmt: skip


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Board, list[Measurement]]:
    folder = tmp_path_factory.mktemp("cheats")
    store = Store(folder / "store")
    study = plan_study(recipe(STUDY, defenses=[f"pipeline.cheats:{name}" for name in ("Honest", *CHEATS)]))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("CHEATS", str(folder))
        patched.syspath_prepend(folder)
        patched.setenv("GRB_MEMORY", "{}")
        outcome = run(study.jobs.values(), store, limits=Limits(workers=0))
    with suppress(FileNotFoundError):
        block = shared_memory.SharedMemory(cheats.shared_name(str(folder)))
        block.close()
        block.unlink()
    assert outcome.complete, outcome.failed
    found = [Measurement.from_dict(record.measurement) for record in store.records() if record.job.kind == "score"]
    return build_board(study, store)[0], found


def flags_of(scored: tuple[Board, list[Measurement]], name: str) -> list[set[str]]:
    """Names of the flags of every score of a defense."""
    own = [each for each in scored[1] if each.defense.method.name == f"pipeline.cheats:{name}"]
    assert len(own) == 2
    return [{flag.name for flag in each.flags} for each in own]


@pytest.mark.parametrize("name", CHEATS)
def test_a_memory_outside_the_model_is_found_in_every_score(scored: tuple[Board, list[Measurement]], name: str) -> None:
    assert all("new-process" in flags for flags in flags_of(scored, name))
    assert f"pipeline.cheats:{name}" not in scored[0].ranks["full"]


def test_an_honest_plug_in_keeps_its_rank(scored: tuple[Board, list[Measurement]]) -> None:
    assert flags_of(scored, "Honest") == [set(), set()]
    assert "pipeline.cheats:Honest" in scored[0].ranks["full"]


def test_nodes_looked_up_by_exact_features_are_found_without_a_process(
    scored: tuple[Board, list[Measurement]],
) -> None:
    assert any("exact-features" in flags for flags in flags_of(scored, "ByFeatures"))


def test_labels_read_from_the_frames_of_the_caller_are_found(scored: tuple[Board, list[Measurement]]) -> None:
    cell = scored[0].cell("fgsm", "pipeline.cheats:ByFrames", "full")
    assert cell is not None and cell.score.mean == 1.0  # as good as it gets, and without a rank


def test_models_of_whole_graphs_are_checked_too(tmp_path: Path) -> None:
    wanted = [f"pipeline.cheats:{name}" for name in ("WholeGraphs", "Detached", "Counting")]
    text = "dataset: synth-graphs\nscenario: modification\nattacks: [dice]\nmodes: [full]\nrepeats: 1\ntraining: {epochs: 3}"
    study, store = plan_study(recipe(text, defenses=wanted)), Store(tmp_path / "store")
    outcome = run(study.jobs.values(), store, limits=Limits(workers=0))
    assert outcome.complete, outcome.failed
    (board,) = build_board(study, store)
    told = {name: [flag for flag in board.flags if name in flag] for name in ("WholeGraphs", "Detached", "Counting")}
    assert told["WholeGraphs"] == []
    assert any("zero-gradient" in flag for flag in told["Detached"])
    assert any("new-process" in flag for flag in told["Counting"])


def test_workers_find_it_too(tmp_path: Path) -> None:
    study = plan_study(recipe(STUDY, defenses=["pipeline.cheats:ByFrames", "pipeline.cheats:Honest"]))
    store = Store(tmp_path / "store")
    assert run(study.jobs.values(), store, limits=Limits(workers=1)).complete
    board = build_board(study, store)[0]
    assert "pipeline.cheats:Honest" in board.ranks["full"] and "pipeline.cheats:ByFrames" not in board.ranks["full"]
