from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

import pytest

BENCHMARKS = sorted((Path(__file__).parents[2] / "benchmarks").glob("*.py"))


def wanted(path: Path) -> list[tuple[str, str]]:
    """Modules of the package and the names that a file takes from them."""
    found = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)]
    return [
        (str(node.module), each.name) for node in found if str(node.module).startswith("grb") for each in node.names
    ]


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_a_benchmark_takes_only_names_that_are_there(path):
    for module, name in wanted(path):
        owner = importlib.import_module(module)
        assert hasattr(owner, name) or importlib.util.find_spec(f"{module}.{name}"), f"{module} has no {name}"
