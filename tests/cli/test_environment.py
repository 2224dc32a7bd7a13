"""Where a command may find itself: another alphabet, no home, no GPU. It works, or says in one sentence what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RECIPE = """
title: Tëst 目
dataset: synth-tiny
attacks: [rnd]
defenses: [gcn]
modes: [full]
repeats: 1
training: {epochs: 1}
"""
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
LATIN = {"PYTHONIOENCODING": "latin-1"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "Ärger mit 目"
    path.mkdir()
    (path / "r ö.yaml").write_text(RECIPE, encoding="utf-8")
    return path


def grb(place: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    own = {name: value for name, value in os.environ.items() if name not in ("GRB_HOME", "PYTHONIOENCODING")}
    command = [sys.executable, "-m", "grb", *arguments]
    return subprocess.run(command, cwd=place, env={**own, **environment}, capture_output=True, check=False, timeout=300)


@pytest.mark.parametrize(
    "environment",
    [pytest.param(ASCII, id="C locale"), pytest.param(LATIN, id="latin-1", marks=pytest.mark.stress)],
)
def test_any_alphabet_in_names_and_any_locale(place: Path, environment: dict[str, str]) -> None:
    steps = [
        ("run", "r ö.yaml", "--store", "st ü", "--workers", "1"),
        ("leaderboard", "st ü", "--format", "html", "--recipe", "r ö", "-o", "p ä.html"),
        ("store", "copy", "st ü", "目.csv", "--recipe", "r ö"),
        ("train", "gcn", "--dataset", "synth-tiny", "--param", "epochs=2", "-o", "ö.safetensors"),
        ("attack", "rnd", "--dataset", "synth-tiny", "--model", "ö.safetensors", "-o", "目.npz"),
        ("ls",),
    ]
    for step in steps:
        done = grb(place, *step, **environment)
        assert done.returncode == 0, (step, done.stderr[-300:])
    assert "Tëst 目" in (place / "p ä.html").read_text(encoding="utf-8")
    assert {path.name for path in place.iterdir()} == {
        *("r ö.yaml", "st ü", "p ä.html", "目.csv", "目.json", "ö.safetensors", "目.npz")
    }


def test_a_home_that_cannot_be_written_is_only_needed_where_nothing_else_is_named(place: Path) -> None:
    nowhere = "/proc/none" if Path("/proc").exists() else "/dev/null"
    assert grb(place, "run", "r ö.yaml", "--store", "store", "--workers", "1", HOME=nowhere).returncode == 0
    refused = grb(place, "run", "r ö.yaml", HOME=nowhere)
    assert refused.returncode == 2 and refused.stderr.startswith(b"error: cannot write")
    assert len(refused.stderr.splitlines()) == 1


def test_a_gpu_that_is_not_there_is_said_in_one_sentence(place: Path) -> None:
    done = grb(place, "train", "gcn", "--dataset", "synth-tiny", "--device", "cuda:7")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert b"device 'cuda:7' cannot be used here" in done.stderr and b"grb doctor" in done.stderr
