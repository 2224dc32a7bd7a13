"""Own runs beside published ones: ratios and intervals by hand, the correlation against numpy, what is left out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from grb.errors import DataError
from grb.taxonomy import Profiles, as_published, assign, compare, from_runs, published

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


def test_ratios_are_those_of_the_means() -> None:
    found = compare(from_runs(RUNS))
    enzymes = next(own for own in found.datasets if own.dataset == "ENZYMES")
    cells = {cell.perturbation: cell for cell in enzymes.cells}
    assert enzymes.original == pytest.approx(0.91) and enzymes.runs == 2
    assert cells["NoEdges"].left == pytest.approx(0.82 / 0.91)
    assert cells["NoEdges"].published == pytest.approx(2 ** published("inductive").profiles.row("ENZYMES")["NoEdges"])
    assert cells["FiedlerFrag"].runs == 1 and math.isnan(cells["FiedlerFrag"].low)


def test_intervals_have_the_variance_of_the_original_too() -> None:
    """Paired runs share a seed, so their deviations are compared one by one; otherwise variances add up."""
    paired = from_runs([row for row in RUNS if row[0] == "ENZYMES" and row[1] in ("-", "NoEdges")])
    (cell,) = compare(paired).datasets[0].cells
    apart = 0.02 / 0.82 - 0.01 / 0.91  # relative deviations of the two runs, of both signs
    half = 12.706204736 * apart * 0.82 / 0.91  # t of one degree of freedom
    assert (cell.low, cell.high) == pytest.approx((0.82 / 0.91 - half, 0.82 / 0.91 + half))

    cells = {each.perturbation: each for each in compare(from_runs(RUNS)).datasets[1].cells}  # one cell has other seeds
    variances = (0.02 / 0.82) ** 2, (0.01 / 0.91) ** 2
    freedom = sum(variances) ** 2 / sum(each**2 for each in variances)
    half = stats.t.ppf(0.975, freedom) * math.sqrt(sum(variances)) * 0.82 / 0.91
    assert cells["NoEdges"].high == pytest.approx(0.82 / 0.91 + half)


def test_a_shaky_original_makes_every_ratio_shaky() -> None:
    steady = [("ENZYMES", "NoEdges", seed, 0.8) for seed in range(3)]
    sure = compare(from_runs([*steady, *(("ENZYMES", "-", seed, 0.9) for seed in range(3))])).datasets[0].cells[0]
    shaky = compare(from_runs([*steady, *(("ENZYMES", "-", s, v) for s, v in enumerate((0.8, 0.9, 1.0)))]))
    assert sure.high == pytest.approx(sure.low) and shaky.datasets[0].cells[0].high > sure.high + 0.1


def test_compare_places_as_place_does() -> None:
    """On WebKB-Tex one said T-3 and the other T-2."""
    rows = []
    for name, value in {"-": 0.0, **published("transductive").profiles.row("WebKB-Tex")}.items():
        rows += [("WebKB-Tex", name, seed, 0.77 * 2 ** (0.8 * value) + 0.01 * (seed - 1)) for seed in range(3)]
    own = from_runs(rows)
    (compared,) = compare(own).datasets
    placed = assign(own, "transductive", exclude="WebKB-Tex")
    assert compared.placement is not None and compared.placement.group == placed.group
    assert compared.placement.probability == placed.probability
    said = compared.placed[2]
    assert said == "fits nowhere" if placed.group is None else said.startswith(placed.group)


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
