"""Workflows of GitHub Actions: they can be read, ask for no more rights than they need, and run what exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from grb.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def commands(workflow: dict[str, Any]) -> list[str]:
    """All lines that a shell runs."""
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    return [line.strip() for step in steps for line in step.get("run", "").splitlines() if line.strip()]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_workflow_has_a_name_limited_rights_and_a_limit_of_time(path: Path) -> None:
    workflow = read(path)
    assert workflow["name"] == path.stem
    assert True in workflow, "when it runs (YAML reads the key `on` as true)"
    assert workflow["permissions"]["contents"] == "read"
    for name, job in workflow["jobs"].items():
        assert name == "publish" or job["timeout-minutes"] <= 60
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)
            assert re.fullmatch(r"[\w./-]+@v\d+", step.get("uses", "some/action@v1"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_what_a_workflow_runs_exists(path: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for line in commands(read(path)):
        if line.startswith("make "):
            assert line.split()[1] in targets
        if found := re.match(r"(?:clean/bin/)?grb (\w+)", line):
            shown = CliRunner().invoke(app, [found[1], "--help"], env={"COLUMNS": "200"}).output
            for option in re.findall(r"(?<=\s)--?[a-z][a-z-]*", line):
                assert option in shown, f"{option} of {line}"


def test_the_tests_run_on_every_python_that_the_package_declares() -> None:
    declared = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert read(ROOT / ".github" / "workflows" / "test.yml")["jobs"]["test"]["strategy"]["matrix"]["python"] == declared
