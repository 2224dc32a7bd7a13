from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.parts import TINY

from .conftest import refusal


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(TINY + "quick: {repeats: 1}\n")
    return path


def test_a_plan_counts_the_jobs_and_what_they_cost_and_makes_nothing(grb_json, mine, tmp_path):
    found = grb_json("run", mine, "--plan", "--store", tmp_path / "store", "--workers", "2")
    assert {line["kind"]: (line["jobs"], line["cached"]) for line in found["jobs"]} == {
        "fit": (4, 0),
        "attack": (12, 0),
        "score": (22, 0),
    }
    assert (found["recipe"], found["dataset"], found["workers"]) == ("mine", "synth-tiny", 2)
    assert found["cpu_seconds"] > 0 and found["measurements"] == 22
    assert not (tmp_path / "store").exists()


def test_several_numbers_of_workers_are_simulated(grb, grb_json, mine, tmp_path):
    options = ("run", mine, "--plan", "--store", tmp_path / "store", "--workers")
    found = grb_json(*options, "1,4,64")
    wall = found["wall_seconds"]
    assert list(wall) == ["1", "4", "64"] and found["workers"] == 1
    assert wall["1"] == pytest.approx(found["cpu_seconds"] + 0.007 * 38)
    assert wall["1"] > wall["4"] >= wall["64"] > wall["1"] / 40
    assert "on 1 workers, " in grb(*options, "1,4,64").output
    for words in ("two", "1,,2"):
        assert refusal(grb(*options, words)).startswith(f"--workers is '{words}', but a number is needed")
    done = grb("run", mine, "--store", tmp_path / "store", "--workers", "1,2")
    assert refusal(done).startswith("--workers is '1,2', but a run has one number of workers")


@pytest.mark.parametrize(
    ("options", "scores"),
    [
        (["--quick"], 14),
        (["--victims", "2"], 44),
        (["--repeats", "1"], 14),
        (["--modes", "full"], 12),
        (["--modes", "easy, full"], 22),
        (["--shard", "1/1"], 22),
    ],
)
def test_options_change_the_plan(grb_json, mine, tmp_path, options, scores):
    found = grb_json("run", mine, "--plan", "--store", tmp_path / "store", *options)
    assert {line["kind"]: line["jobs"] for line in found["jobs"]}["score"] == scores


def test_shards_are_parts_of_the_plan(grb_json, mine, tmp_path):
    parts = [
        grb_json("run", mine, "--plan", "--store", tmp_path / "s", "--shard", f"{i}/2")["measurements"] for i in (1, 2)
    ]
    assert sum(parts) == 22 and min(parts) == 11


def test_the_table_says_what_is_guessed(grb, mine, tmp_path):
    done = grb("run", mine, "--plan", "--store", tmp_path / "store")
    assert done.exit_code == 0 and "~" in done.stdout and "guessed" in done.stderr
    assert [word in done.stdout for word in ("fit", "attack", "score", "CPU time", "disk MB", "memory MB")] == [
        True
    ] * 6


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["synth-tinny"], "Did you mean 'synth-tiny'?"),
        (["none.yaml"], "cannot read none.yaml"),
        (["synth-tiny", "--repeats", "0"], "--repeats is 0"),
        (["synth-tiny", "--victims", "-1"], "--victims is -1"),
        (["synth-tiny", "--modes", "esay"], "Did you mean 'easy'?"),
        (["synth-tiny", "--modes", "full,full"], "twice"),
        (["synth-tiny", "--shard", "5/2"], "the shard is 5/2"),
        (["synth-tiny", "--shard", "half"], "two numbers as in 1/4"),
        (["synth-tiny", "--shard", "²/3"], "two numbers as in 1/4"),
        (["synth-tiny", "--store", "setup.cfg.yaml"], "is a file, but a store is a directory"),
    ],
)
def test_bad_input_is_one_sentence(grb, arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "setup.cfg.yaml").write_text("")
    done = grb("run", *arguments, "--plan")
    assert done.exit_code == 2 and words in refusal(done)
