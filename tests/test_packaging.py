"""What an installed copy promises: one version, type information, a command, data files, light imports."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata, resources
from pathlib import Path

import pytest

import grb

DISTRIBUTION = "graph-robustness-benchmark"
ROOT = Path(__file__).resolve().parents[1]
OPTIONAL = ("dask", "distributed", "optuna", "ogb", "igraph", "dgl", "cogdl")


def test_metadata_and_module_agree_on_the_version():
    assert metadata.version(DISTRIBUTION) == grb.__version__


def test_version_is_a_release_number():
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc|\.dev)\d+)?", grb.__version__)


def test_package_is_marked_as_typed():
    assert resources.files("grb").joinpath("py.typed").is_file()


def test_command_grb_calls_the_main_function_of_the_cli():
    (script,) = (
        point for point in metadata.distribution(DISTRIBUTION).entry_points if point.group == "console_scripts"
    )
    assert (script.name, script.value) == ("grb", "grb.cli:main")
    assert callable(script.load())


@pytest.mark.parametrize("extra", ["dask", "automl", "ogb", "igraph", "docs", "dev", "all"])
def test_extra_is_declared(extra):
    assert extra in (metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or [])


def test_constraints_pin_every_core_dependency():
    def name(line: str) -> str:
        return re.split(r"[^A-Za-z0-9._-]", line.strip(), maxsplit=1)[0].lower().replace("_", "-")

    core = {name(line) for line in metadata.requires(DISTRIBUTION) or [] if "extra ==" not in line}
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {name(line) for line in lines if "==" in line and not line.startswith("#")}
    assert core <= pinned


def test_importing_grb_is_silent_and_loads_neither_optional_packages_nor_paper_era_paths():
    code = f"import sys, grb; print(sorted(set(sys.modules) & set({(*OPTIONAL, 'grb.utils')!r})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert done.stderr == ""
