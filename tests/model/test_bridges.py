"""DGL and CogDL for real: an environment of their own is made, and the checks of bridges.py run in it.

``pytest -m slow tests/model/test_bridges.py`` (with ``GRB_BRIDGES=<directory>`` the environment is kept there and used again).
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from model.bridges import CHECKS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
WANTED = ("dgl==1.1.3", "cogdl==0.6", "matplotlib<3.9")
# of constraints.txt: what cogdl 0.6 wants in other versions
FREE = ("matplotlib", "optuna")
# cogdl compiles its kernels when it is first imported
MAKING, RUNNING = 3600, 1800


def constraints() -> str:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith(FREE))


def dependencies() -> list[str]:
    """Of this package, without extras."""
    wanted = importlib.metadata.requires("graph-robustness-benchmark") or []
    return [re.sub(r"\s", "", each) for each in wanted if "extra" not in each]


def surroundings(place: Path) -> dict[str, str]:
    """Nothing of the libraries lands in anybody's home directory."""
    own = {
        "HOME": str(place / "home"),
        "PYTHONPATH": str(ROOT / "src"),
        "DGLBACKEND": "pytorch",
        "TORCH_EXTENSIONS_DIR": str(place / "extensions"),
        "MPLCONFIGDIR": str(place / "home"),
        "GRB_OFFLINE": "1",
        "PATH": f"{place / 'env' / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}",  # cogdl compiles with ninja
    }
    return {**os.environ, **own}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory with the environment; made if it is not there, skipped if that cannot be."""
    place = Path(os.environ.get("GRB_BRIDGES") or tmp_path_factory.mktemp("bridges"))
    python = place / "env" / "bin" / "python"
    (place / "home").mkdir(parents=True, exist_ok=True)
    if not (place / "made").exists():
        venv.create(place / "env", with_pip=True, clear=True)
        (place / "constraints.txt").write_text(constraints(), encoding="utf-8")
        command = [python, "-m", "pip", "install", "-q", "-c", place / "constraints.txt", *WANTED, *dependencies()]
        made = subprocess.run(command, capture_output=True, text=True, timeout=MAKING, check=False)
        if made.returncode:
            pytest.skip(f"pip cannot install {' '.join(WANTED)}: {made.stderr.strip().splitlines()[-1][:200]}")
        (place / "made").touch()
    yield place


@pytest.fixture(scope="module")
def found(place: Path) -> dict[str, dict[str, str]]:
    """What every check of both libraries found; empty where a library does not import."""
    told: dict[str, dict[str, str]] = {}
    python = str(place / "env" / "bin" / "python")
    for library in CHECKS:
        begin = [python, "-c", f"import {library}"]
        tried = subprocess.run(
            begin, env=surroundings(place), capture_output=True, text=True, timeout=RUNNING, check=False
        )
        if tried.returncode:
            told[library] = {"": tried.stderr.strip().splitlines()[-1][:200]}
            continue
        checks = [python, str(Path(__file__).with_name("bridges.py")), library]
        run = subprocess.run(
            checks, env=surroundings(place), capture_output=True, text=True, timeout=RUNNING, check=False
        )
        assert run.returncode == 0, run.stderr
        told[library] = json.loads(run.stdout.splitlines()[-1])
    return told


@pytest.mark.parametrize(("library", "check"), [(library, check) for library in CHECKS for check in CHECKS[library]])
def test_it_holds_beside_this_torch(library: str, check: str, found: dict[str, dict[str, str]]) -> None:
    if "" in found[library]:
        pytest.skip(f"{library} does not import here: {found[library]['']}")
    assert found[library][check] == "", found[library][check]


def test_the_interpreter_is_the_one_that_runs_this(place: Path) -> None:
    version = subprocess.run(
        [place / "env" / "bin" / "python", "-V"], capture_output=True, text=True, check=True
    ).stdout
    assert version.split()[1] == ".".join(map(str, sys.version_info[:3]))
