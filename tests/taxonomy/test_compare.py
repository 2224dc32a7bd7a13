"""Own runs beside published ones: ratios and intervals by hand, the correlation against numpy, what is left out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grb.errors import DataError
from grb.taxonomy import Profiles, as_published, compare, from_runs, published

RUNS = [
    ("ENZYMES", "-", 0, 0.90),
    ("ENZYMES", "-", 1, 0.92),
    ("ENZYMES", "NoEdges", 0, 0.80),
    ("ENZYMES", "NoEdges", 1, 0.84),
    ("ENZYMES", "RandFtrs", 0, 0.50),
    ("ENZYMES", "RandFtrs", 1, 0.50),
    ("ENZYMES", "RandFtrs (gtaxogym)", 0, 0.66),
    ("ENZYMES", "RandFtrs (gtaxogym)", 1, 0.66),
    ("ENZYMES", "FiedlerFrag", 0, 0.1),
    ("Actor", "-", 0, 0.6),
    ("Actor", "RandFtrs", 0, 0.54),
]


def test_ratios_are_those_of_the_means_and_intervals_those_of_a_student() -> None:
    found = compare(from_runs(RUNS))
    enzymes = next(own for own in found.datasets if own.dataset == "ENZYMES")
    cells = {cell.perturbation: cell for cell in enzymes.cells}
    assert enzymes.original == pytest.approx(0.91) and enzymes.runs == 2
    assert cells["NoEdges"].left == pytest.approx(0.82 / 0.91)
    half = 12.706204736 * (0.04 / math.sqrt(2)) / math.sqrt(2)  # t of one degree of freedom, deviation over n - 1
    assert cells["NoEdges"].high == pytest.approx((0.82 + half) / 0.91)
    assert cells["NoEdges"].published == pytest.approx(2 ** published("inductive").profiles.row("ENZYMES")["NoEdges"])
    assert cells["FiedlerFrag"].runs == 1 and math.isnan(cells["FiedlerFrag"].low)


def test_what_the_published_code_does_stands_for_its_name_dataset_by_dataset() -> None:
    found = {own.dataset: {cell.perturbation: cell for cell in own.cells} for own in compare(from_runs(RUNS)).datasets}
    assert found["ENZYMES"]["RandFtrs"].left == pytest.approx(0.66 / 0.91)
    assert found["Actor"]["RandFtrs"].left == pytest.approx(0.9)
    assert not any("gtaxogym" in name for cells in found.values() for name in cells)


def test_the_correlation_is_numpys_and_leaves_fiedlerfrag_out() -> None:
    found = compare(from_runs(RUNS))
    cells = [cell for own in found.datasets for cell in own.cells if cell.perturbation != "FiedlerFrag"]
    ours, theirs = np.log2([[cell.left, cell.published] for cell in cells]).T
    assert found.pairs == 3 and found.correlation == pytest.approx(np.corrcoef(ours, theirs)[0, 1])
    assert all(own.placement is None for own in found.datasets) and found.placed() == (0, 0)


@given(st.sampled_from(["inductive", "transductive"]), st.data())
def test_the_published_results_agree_with_themselves(name: str, data: st.DataObject) -> None:
    table = published(name).profiles
    chosen = data.draw(st.lists(st.sampled_from(table.datasets), min_size=1, max_size=3, unique=True))
    found = compare(table.select(chosen), draws=2)
    assert found.correlation == pytest.approx(1)
    for own in found.datasets:
        assert own.original == own.published
        assert all(cell.left == pytest.approx(cell.published) for cell in own.cells)
        assert own.placement is not None and own.placement.nearest.dataset != own.dataset


def test_datasets_that_nobody_published_are_said_or_refused() -> None:
    rows = [("mine", "-", 0, 0.9), ("mine", "NoEdges", 0, 0.8)]
    assert compare(from_runs([*RUNS, *rows])).notes == ("not published, and left out: mine",)
    with pytest.raises(DataError, match="none of the datasets was published: mine"):
        compare(from_runs(rows))


def test_a_model_that_was_not_published_has_nothing_beside_it() -> None:
    found = compare(from_runs(RUNS), model="GIN")
    actor = next(own for own in found.datasets if own.dataset == "Actor")
    assert math.isnan(actor.published) and all(math.isnan(cell.published) for cell in actor.cells)
    enzymes = next(own for own in found.datasets if own.dataset == "ENZYMES")
    gin = published("inductive").models["GIN"].select(["ENZYMES"])
    assert gin.original is not None and enzymes.published == gin.original[0]


def test_names_without_a_twin_stay_as_they_are() -> None:
    own = Profiles(("a",), ("NoEdges", "Mine (gtaxogym)"), np.array([[-1.0, -2.0]]))
    assert as_published(own).perturbations == ("NoEdges", "Mine") and as_published(own).runs is None
