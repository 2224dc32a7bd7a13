"""The committed runs of the taxonomy say what the documentation says, and what the paper found."""

from __future__ import annotations

from pathlib import Path

import pytest

from grb.cli.taxonomy_compare import as_markdown
from grb.taxonomy import Comparison, Profiles, compare, read_profiles

RESULTS = Path(__file__).parents[2] / "docs" / "results"
NAMED = ("ENZYMES", "PROTEINS", "Actor", "CF-CiteSr")
"""Those that are compared ratio by ratio; the others are reported."""


@pytest.fixture(scope="module")
def profiles() -> Profiles:
    return read_profiles(RESULTS / "taxonomy-runs.jsonl", model="gcn")


@pytest.fixture(scope="module")
def found(profiles: Profiles) -> Comparison:
    return compare(profiles)


def test_the_page_is_what_the_command_prints(found: Comparison) -> None:
    page = (RESULTS / "taxonomy.md").read_text(encoding="utf-8")
    assert as_markdown(found) in page


def test_profiles_go_with_the_published_ones(profiles: Profiles) -> None:
    named = [name for name in NAMED if name in profiles.datasets]
    together = compare(profiles.select(named), draws=2)
    assert together.pairs > 30 and together.correlation is not None and together.correlation >= 0.8


def test_datasets_are_placed_in_their_published_group(found: Comparison) -> None:
    right, placed = found.placed()
    assert right >= 0.8 * placed
