from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from grb.pipeline import plan_study
from grb.pipeline.cached_plan import cached_plan
from pipeline.parts import bare, recipe


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("GRB_HOME", str(tmp_path))
    return tmp_path / "plans"


def test_a_plan_from_the_cache_is_the_plan(plans: Path) -> None:
    wanted = plan_study(recipe())
    made, again = cached_plan(recipe()), cached_plan(recipe())
    assert len(list(plans.iterdir())) == 1
    for found in (made, again):
        assert found == wanted and list(found.jobs) == list(wanted.jobs)
        assert [job.label for job in found.jobs.values()] == [job.label for job in wanted.jobs.values()]
        assert {key: job.key for key, job in found.jobs.items()} == {key: key for key in wanted.jobs}


def test_another_recipe_is_another_plan(plans: Path) -> None:
    assert cached_plan(recipe()) != cached_plan(recipe(repeats=1))
    assert len(list(plans.iterdir())) == 2


@pytest.mark.parametrize("damage", [b"", b"{", b'{"name": 1}', b'{"name": "x", "study": {}}'])
def test_a_damaged_plan_is_made_anew(plans: Path, damage: bytes) -> None:
    wanted = cached_plan(recipe())
    (path,) = plans.iterdir()
    path.write_bytes(damage)
    assert cached_plan(recipe()) == wanted
    assert path.stat().st_size > 1000


def test_a_plan_of_another_state_of_the_package_is_made_anew(plans: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached_plan(recipe())
    monkeypatch.setattr("grb.pipeline.cached_plan.__version__", "another")
    cached_plan(recipe())
    assert len(list(plans.iterdir())) == 2


def test_third_party_code_is_never_kept(plans: Path) -> None:
    assert cached_plan(bare("Idle")).jobs
    assert not plans.exists()


def test_a_known_plan_needs_no_torch(plans: Path) -> None:
    code = (
        "import sys; from grb.pipeline.cached_plan import cached_plan; from grb.pipeline.recipe import read_recipe; "
        "cached_plan(read_recipe('synth-tiny')); print('torch' in sys.modules)"
    )
    first, second = (
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
        for _ in range(2)
    )
    assert (first, second) == ("True", "False")
