"""The tables of docs/attack-families.md are what benchmarks/families.py makes of the rows in docs/results."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def load(name: str) -> ModuleType:
    """A benchmark by its file: on the path, others of that folder would hide packages of the tests."""
    spec = spec_from_file_location(f"benchmark_{name}", BENCHMARKS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


families = load("families")


@pytest.mark.parametrize("name", families.TABLES)
def test_the_page_shows_the_rows(name: str) -> None:
    page = families.DOCS.read_text()
    rows = families.read(families.RESULTS / families.FILES[name])
    for table in families.TABLES[name](rows):
        assert table in page
    for sentence in families.apart(rows) if name == "queries" else ():
        assert sentence in page


def test_a_table_replaces_the_one_with_its_head() -> None:
    page = "a\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\nb\n"
    assert families.replaced(page, families.markdown(["x", "y"], [["3", "4"]])) == page.replace(
        "| 1 | 2 |", "| 3 | 4 |"
    )
    with pytest.raises(SystemExit, match="has 0 tables"):
        families.replaced(page, families.markdown(["z"], [["1"]]))


def test_intervals_are_those_of_students_t() -> None:
    low, high = families.interval([1.0, 2.0, 3.0])
    assert (round(low, 3), round(high, 3)) == (-0.484, 4.484)
