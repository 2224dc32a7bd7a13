"""Values of the literature that every implementation must give; on stored votes and base certificates where there are any."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from grb.certificate import bismoothing, confidence, hierarchical, interception, regions, votes
from grb.certificate.collective import (
    Dimension,
    collective_attacked,
    collective_attacked_grid,
    receptive_field,
    smallest_uncertified,
    surviving,
)

ROOTS = [Path(root) for root in os.environ.get("GRB_DATA", "").split(os.pathsep) if root]
DATA = next((root / "Certificates" for root in ROOTS if (root / "Certificates").is_dir()), Path("Certificates"))
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="published certificates are not on this machine")
ALMOST_ONE = 0.01 ** (1 / 1e5)
PLUS_MINUS = {"p_add": 0.01, "p_drop": 0.6}


def _binary(low: float, **changes: int) -> bool:
    found = regions.sparse_regions(**{"add": 0, "drop": 0, **changes}, **PLUS_MINUS)
    return bool(regions.certified_binary(found, np.array([low]))[0])


def test_sparse_smoothing_certifies_6_additions_or_18_deletions():
    assert regions.largest_edit(lambda r: _binary(ALMOST_ONE, add=r)) == 6
    assert regions.largest_edit(lambda r: _binary(ALMOST_ONE, drop=r)) == 18


def test_smallest_probabilities_for_one_change():
    one_deletion = regions.sparse_regions(add=0, drop=1, **PLUS_MINUS)
    one_addition = regions.sparse_regions(add=1, drop=0, **PLUS_MINUS)
    assert round(regions.smallest_probability(one_deletion), 4) == 0.6970
    assert round(regions.smallest_probability(one_addition), 4) == 0.8250


def test_discrete_features_certify_92_per_cent_at_radius_6():
    rng = np.random.RandomState(0)
    probabilities = [0.001, 0.001, 0.998]
    pre = rng.multinomial(100_000, probabilities, size=1000)
    drawn = rng.multinomial(100_000, probabilities, size=1000)
    low = confidence.lower_bound(drawn[np.arange(1000), pre.argmax(1)], 100_000, 0.01)
    found = regions.discrete_regions(changed=6, categories=256, p=0.8)
    assert regions.certified_binary(found, low).mean() == 0.92


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({"add": 1}, 0.594), ({"add": 2}, 0.356), ({"drop": 7}, 0.643), ({"drop": 8}, 0.405)],
)
def test_deletion_only_smoothing(changes, expected):
    found = regions.sparse_regions(**{"add": 0, "drop": 0, **changes}, p_add=0.0, p_drop=0.6)
    assert float(found.lowest(np.array([0.99]))[0]) == pytest.approx(expected, abs=5e-4)


def test_symmetric_smoothing():
    one = regions.sparse_regions(add=1, drop=0, p_add=0.1, p_drop=0.1)
    both = regions.sparse_regions(add=1, drop=1, p_add=0.1, p_drop=0.1)
    assert float(one.lowest(np.array([0.99]))[0]) == pytest.approx(0.91)
    assert float(both.lowest(np.array([0.99]))[0]) == pytest.approx(0.19)


def test_clopper_pearson_equals_scipy():
    from scipy.stats import binomtest

    for successes, samples, alpha in [(990, 1000, 0.01), (0, 10, 0.05), (10, 10, 0.05), (3, 17, 0.2)]:
        exact = binomtest(successes, samples).proportion_ci(1 - 2 * alpha, method="exact")
        assert float(confidence.lower_bound(np.array(successes), samples, alpha)) == pytest.approx(exact.low)
        assert float(confidence.upper_bound(np.array(successes), samples, alpha)) == pytest.approx(exact.high)


def test_hierarchical_rows():
    assert hierarchical.largest_rows(0.81) == 3
    low, high = np.linspace(0.3, 1, 50), np.linspace(0.6, 0, 50)
    for add, drop in [(0, 1), (1, 0), (2, 3)]:
        plain = regions.certified(regions.sparse_regions(add=add, drop=drop, p_add=0.05, p_drop=0.8), low, high)
        whole = hierarchical.hierarchical_certified(low, high, p=1, rows=1, add=add, drop=drop, p_add=0.05, p_drop=0.8)
        assert (plain == whole).all()


@needs_data
def test_hierarchical_votes_certify_less_for_more_rows():
    stored = np.load(DATA / "hier_votes_GAT_cora_ml.npz")
    bounds = confidence.bounds_of(stored["votes"], 0.01, choose=stored["pre_votes"])
    ratios = [
        hierarchical.hierarchical_certified(
            bounds.low, bounds.high, p=0.81, rows=rows, add=0, drop=1, p_add=0.05, p_drop=0.8
        ).mean()
        for rows in (1, 2, 3, 4)
    ]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] > 0.75
    assert ratios[3] == 0


def test_interception_of_one_path():
    chance = {"p_delete": 0.361449, "p_ablate": 0.794}
    assert interception.arrival([1], **chance) == pytest.approx(0.131542, abs=5e-7)
    assert interception.arrival([2], **chance) == pytest.approx(0.083996, abs=5e-7)


def test_hash_votes_of_five_to_three():
    """Ties go to the smaller class, which needs one vote less."""
    assert votes.vote_budget(np.array([[5, 3], [3, 5]])).tolist() == [(5 - 3) // 2, (5 - 4) // 2]


@needs_data
def test_bi_smoothing_on_stored_votes():
    stored = np.load(DATA / "bismooth_cora_ml_pe0.9_pn0.8_n100000.npz")
    labels = np.load(DATA / "cora_ml_binary_lcc.npz")["y"]
    samples, classes, alpha = int(stored["n"]), int(labels.max()) + 1, 0.01
    low = confidence.lower_bound(stored["count1"], samples, alpha / classes)
    high = confidence.upper_bound(stored["count2"], samples, alpha / classes)
    chance = bismoothing.inert(6, p_edge=0.9, p_node=0.8)
    assert bismoothing.largest_injection(6, p_edge=0.9, p_node=0.8) == 30
    assert bismoothing.largest_injection(5, p_edge=0.8, p_node=0.9) == 71
    right = stored["top2"][:, 0] == labels
    ratios = {1: 1, 15: 0.9996, 20: 0.9968, 25: 0.9737, 30: 0.5285, 31: 0}
    accuracies = {1: 0.7591, 20: 0.7591, 25: 0.7573, 30: 0.5078, 31: 0}
    kept = {count: bismoothing.certified_included(low, high, chance**count) for count in {*ratios, *accuracies}}
    assert {count: round(float(kept[count].mean()), 4) for count in ratios} == ratios
    assert {count: round(float((kept[count] & right).mean()), 4) for count in accuracies} == accuracies


FEW = ("attr_add_1", "attr_add_5", "attr_add_9", "attr_del_4", "attr_del_32")


@needs_data
@pytest.mark.parametrize("names", [FEW, pytest.param((), marks=pytest.mark.slow, id="all")])
def test_collective_certificates_give_the_16_stored_values(names):
    graph = np.load(DATA / "cora_ml_binary_lcc.npz")
    n = len(graph["y"])
    adj = sparse.csr_array((np.ones(graph["A"].shape[1]), tuple(graph["A"])), shape=(n, n))
    field = receptive_field(adj, np.arange(n), 2)
    assert field.sum(1).mean() == pytest.approx(77.3, abs=0.05)
    grid = np.load(DATA / "collective_base_attr_grid_cora_ml.npz")["grid"]
    expected = json.loads((DATA / "collective_cora_ml_reproduced_here.json").read_text())
    assert len(expected) == 16
    expected = {name: expected[name] for name in names or expected}
    found = {}
    for name in expected:
        _, axis, budget = name.split("_")
        line = grid[:, :, 0] if axis == "add" else grid[:, 0, :]
        smallest = smallest_uncertified(line)
        lp = collective_attacked(smallest, field, int(budget))
        found[name] = [round(float((smallest > int(budget)).mean()), 4), round(surviving(n, lp) / n, 4)]
    assert found == expected


@needs_data
def test_the_general_program_equals_the_one_dimensional_one():
    graph = np.load(DATA / "cora_ml_binary_lcc.npz")
    n = len(graph["y"])
    adj = sparse.csr_array((np.ones(graph["A"].shape[1]), tuple(graph["A"])), shape=(n, n))
    some = np.arange(0, n, 9)
    field = receptive_field(adj, some, 2)
    grid = np.load(DATA / "collective_base_attr_grid_cora_ml.npz")["grid"][some]
    plain = collective_attacked(smallest_uncertified(grid[:, :, 0]), field, 4)
    general = collective_attacked_grid(grid[:, :, :1], [Dimension(field, 4), Dimension(field, 0)])
    assert general == pytest.approx(plain, abs=1e-6)
    both = collective_attacked_grid(grid, [Dimension(field, 4), Dimension(field, 4)])
    assert both >= plain - 1e-6
    one = collective_attacked_grid(grid, [Dimension(field, 4), Dimension(field, 4)], attackers=1)
    assert one <= both + 1e-6
