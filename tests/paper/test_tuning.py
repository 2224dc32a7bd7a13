"""The committed records of the searches for settings say what the documentation says."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import mean, stdev

import pytest

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "tune-grb-cora.jsonl"


@pytest.fixture(scope="module")
def records() -> list[dict]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()]


def test_a_search_is_not_worse_than_chance(records) -> None:
    found = {
        sampler: [row["validation"] for row in records if row["what"] == "search" and row["sampler"] == sampler]
        for sampler in ("tpe", "random")
    }
    assert all(len(values) == 5 for values in found.values())
    assert all(row["trials"] == 50 for row in records if row["what"] == "search")
    assert mean(found["tpe"]) >= mean(found["random"]) - stdev(found["random"]) / math.sqrt(5)


def test_what_is_found_is_as_good_on_test_nodes_as_the_papers_settings(records) -> None:
    tests = {
        sampler: [row["full"] for row in records if row["what"] == "test" and row["sampler"] == sampler]
        for sampler in ("tpe", "paper")
    }
    assert len(tests["tpe"]) == 25 and len(tests["paper"]) == 5
    assert mean(tests["tpe"]) >= mean(tests["paper"])
