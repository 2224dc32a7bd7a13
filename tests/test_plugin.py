"""The template of a plug-in, installed as an installer would: names, commands and the conformance suite."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TEMPLATE = Path(__file__).parents[1] / "examples" / "plugin"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What an installer leaves behind: the package, and a directory that names its entry points."""
    tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11")
    place = tmp_path_factory.mktemp("site")
    project = tomllib.loads((TEMPLATE / "pyproject.toml").read_text())["project"]
    info = place / "grb_plugin_example-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = (
        f"[{group}]\n" + "\n".join(f"{name} = {target}" for name, target in points.items())
        for group, points in project["entry-points"].items()
    )
    (info / "entry_points.txt").write_text("\n".join(groups) + "\n")
    paths = [str(place), str(TEMPLATE / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "GRB_HOME": str(place / "home")}


def grb(environment: dict[str, str], *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "grb", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=300)


def test_its_names_are_listed(environment: dict[str, str]) -> None:
    listed = grb(environment, "ls").stdout
    assert all(name in listed for name in ("star", "mean", "signs", "two-rings"))


@pytest.mark.parametrize("name", ["star", "mean", "signs"])
def test_it_keeps_the_rules(environment: dict[str, str], name: str) -> None:
    done = grb(environment, "check", name)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_model_of_it_is_trained_and_attacked(environment: dict[str, str], tmp_path: Path) -> None:
    model = tmp_path / "mean.safetensors"
    trained = grb(environment, "train", "mean", "--dataset", "synth-tiny", "--param", "epochs=20", "-o", model)
    assert trained.returncode == 0, trained.stderr
    script = """
import sys, grb
dataset = grb.load_dataset("two-rings")
model = grb.train("mean", dataset, epochs=30)
assert grb.evaluate(model, dataset)["full"] > 0.8
tiny = grb.load_dataset("synth-tiny")
print(grb.run_attack("star", None, tiny).budget)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0 and "nodes" in done.stdout, done.stderr
