"""The committed runs of the taxonomy say what the documentation says, and what the paper found."""

from __future__ import annotations

from pathlib import Path

import pytest

from grb.cli.taxonomy_views import groups_markdown
from grb.taxonomy import Comparison, Profiles, as_published, assign, compare, own_groups, read_profiles

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
    assert found.to_markdown() in page


def test_the_page_says_which_groups_hold(profiles: Profiles) -> None:
    page = (RESULTS / "taxonomy.md").read_text(encoding="utf-8")
    groups = own_groups(profiles)
    assert [each.taxonomy for each in groups] == ["inductive", "transductive"]
    assert all(groups_markdown(each) in page for each in groups)
    assert not any(row.stable for each in groups for row in each.stability)


def test_profiles_go_with_the_published_ones(profiles: Profiles) -> None:
    named = [name for name in NAMED if name in profiles.datasets]
    together = compare(profiles.select(named), draws=2)
    assert together.pairs > 30 and together.correlation is not None and together.correlation >= 0.8


def test_datasets_are_placed_in_their_published_group(found: Comparison) -> None:
    right, placed = found.placed()
    assert right >= 0.8 * placed


def test_enzymes_is_as_published(found: Comparison) -> None:
    """Ten folds, all epochs: the original within .02, every ratio within five points."""
    enzymes = next(own for own in found.datasets if own.dataset == "ENZYMES")
    assert enzymes.runs == 10 and abs(enzymes.original - 0.91) <= 0.02
    whole = {cell.perturbation: cell for cell in enzymes.cells if cell.runs == 10}
    assert len(whole) == 11
    assert all(abs(cell.left - cell.published) <= 0.05 for cell in whole.values())


def test_every_dataset_has_three_runs_of_every_perturbation(found: Comparison) -> None:
    assert len(found.datasets) == 10
    for own in found.datasets:
        assert own.runs >= 3 and len(own.cells) >= 11
        assert all(cell.runs >= 3 for cell in own.cells if own.dataset != "ENZYMES")


def test_the_generated_collection_fits_nowhere() -> None:
    """Its committed runs, one of each kind, are far from every published profile."""
    own = as_published(read_profiles(RESULTS / "taxonomy-synth-graphs.jsonl"))
    found = assign(own, "inductive", dataset="synth-graphs", draws=50)
    assert not found.fits and found.group is None
    page = (RESULTS.parent / "taxonomy.md").read_text(encoding="utf-8")
    assert f"nearest are {found.nearest.dataset} ({found.nearest.distance:.2f})" in page.replace("\n", " ")
