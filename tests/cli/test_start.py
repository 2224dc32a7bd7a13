"""Verbs that plan, list, check and show start without torch: it takes longer to import than they take to run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from grb import catalogue
from grb.cli.app import app
from grb.pipeline import Store

WITHOUT_TORCH = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError("torch was asked for")

sys.meta_path.insert(0, Refuse())
from grb.cli.app import app
from typer.testing import CliRunner

for line in sys.argv[1:]:
    done = CliRunner().invoke(app, line.split())
    print(done.exit_code, repr(done.exception) if done.exit_code else "", line)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
        from store import fill
    fill(Store(folder / "store"), 40)
    return folder


def test_verbs_of_stores_boards_and_pages_import_no_torch(place: Path) -> None:
    store = place / "store"
    lines = [
        "--version",
        "ls",
        "ls attacks",
        "ls datasets",
        f"store ls {store}",
        f"store verify {store}",
        f"leaderboard {store}",
        *(f"leaderboard {store} --format {kind}" for kind in ("csv", "json", "latex", "markdown", "csv-runs")),
        f"leaderboard {store} --format site -o {place / 'site'}",
        f"leaderboard {store} --format html -o {place / 'page.html'}",
        f"store copy {store} {place / 'copy'}",
        f"store gc {store}",
    ]
    assert outcomes(lines) == ["0"] * len(lines)


def test_help_of_every_verb_and_all_lists_import_no_torch() -> None:
    verbs = [name for name in get_command(app).commands if name not in ("store", "taxonomy", "data")]  # type: ignore[attr-defined]
    assert {"run", "train", "attack", "leaderboard", "figures"} <= set(verbs)
    groups = [
        "store verify",
        "store copy",
        "taxonomy run",
        "taxonomy analyse",
        "taxonomy place",
        "data get",
        "data check",
    ]
    lines = [
        "--help",
        *(f"{verb} --help" for verb in (*verbs, *groups)),
        *(f"ls {kind}s" for kind in catalogue.kinds()),
    ]
    assert outcomes(lines) == ["0"] * len(lines)


def test_a_plan_that_was_made_before_is_shown_without_torch(place: Path, grb) -> None:
    line = "run synth-tiny --quick --plan"
    assert grb(*line.split()).exit_code == 0
    assert outcomes([line, f"{line} --store {place / 'store'}"]) == ["0", "0"]


def outcomes(lines: list[str]) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *lines], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    found = done.stdout.strip().splitlines()
    return [line.split()[0] if line.startswith("0") else line for line in found]
